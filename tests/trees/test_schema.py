"""A tree that exists is playable; everything wrong with one that is not is said at once, node by node."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from inquitree_gym.errors import TreeError
from inquitree_gym.projection.tasks import tree_task
from inquitree_gym.trees import HINT_LEVELS, Tree, dump_tree, parse_tree
from inquitree_gym.trees.document import MAX_PARAPHRASES, MAX_SUBTOPICS
from inquitree_gym.trees.fields import MAX_TEXT
from inquitree_gym.trees.schema import MAX_CYCLES
from tests.strategies import make_tree, study, trees
from tests.tasks import DISCLOSURE

Break = Callable[[dict], object]


def document() -> dict:
    """Three subtopics in a chain, the first with two studies; s1's support is given."""
    found = json.loads(dump_tree(make_tree([[], [0], [1]], [2, 1, 1])))
    found["provenance"] = {
        "sources": [{"id": "S1", "address": "https://example.org/paper", "what": "the paper"}],
        "support": [{"node": "s1", "sources": ["S1"], "facts": ["F1"], "strength": "full_text", "note": ""}],
    }
    return found


def needing(*names: str) -> list[dict]:
    return [{"id": name, "because": "It uses it."} for name in names]


def read(found: dict) -> Tree:
    return parse_tree(json.dumps(found).encode(), "broken.json")


def faults(found: dict) -> tuple[str, ...]:
    with pytest.raises(TreeError) as caught:
        read(found)
    return tuple(map(str, caught.value.faults))


SHAPE_FAULTS: list[tuple[str, Break, str]] = [
    ("another format", lambda d: d.update(format="inquitree/3"), "format: needs 'inquitree/2', not the text"),
    ("no topic", lambda d: d.pop("topic"), "topic: is missing"),
    ("no version", lambda d: d.pop("version"), "version: is missing"),
    ("no canary", lambda d: d.pop("canary"), "canary: is missing"),
    ("no provenance", lambda d: d.pop("provenance"), "provenance: is missing"),
    ("no licence", lambda d: d["paper"].pop("licence"), "paper › licence: is missing"),
    ("version 0", lambda d: d.update(version=0), "version: is 0, needs at least 1"),
    ("an extra key", lambda d: d.update(colour="red"), "colour: is an unknown field; remove it"),
    ("an extra key inside", lambda d: d["subtopics"][1].update(mood=1), "s2 › mood: is an unknown field; remove it"),
    ("an extra key deep inside", lambda d: d["subtopics"][0]["studies"][1].update(x=1),
     "s1 › s1b › x: is an unknown field"),
    ("an id in capitals", lambda d: d.update(id="Paper"), "id: 'Paper' is not an id: a lower-case letter, then"),
    ("an id with a path", lambda d: d.update(id="../up"), "id: '../up' is not an id: a lower-case"),
    ("an id too long", lambda d: d.update(id="a" * 65), f"id: '{'a' * 65}' is not an id: a lower-case"),
    ("an id with a line end", lambda d: d.update(id="made\n"), r"id: 'made\u000a' is not an id: a lower-"),
    ("no subtopics", lambda d: d.update(subtopics=[]), "subtopics: has 0 subtopics, needs at least 1"),
    ("no conclusions", lambda d: d.update(conclusions=[]), "conclusions: has 0 conclusion items, needs at least 1"),
    ("no studies", lambda d: d["subtopics"][2].update(studies=[]), "s3 › studies: has 0 studies, needs at least 1"),
    ("three hints", lambda d: d["subtopics"][2]["hints"].pop(), "s3 › hints: has 3 hints, needs 4"),
    ("five hints", lambda d: d["subtopics"][2]["hints"].append("x"), "s3 › hints: has 5 hints, needs 4"),
    ("an empty paraphrase", lambda d: d["subtopics"][0]["studies"][0].update(paraphrases=[""]),
     "s1 › s1a › paraphrases › 0: is empty"),
    ("a paraphrase too long", lambda d: d["subtopics"][0].update(paraphrases=["Why?", "x" * (MAX_TEXT + 1)]),
     "s1 › paraphrases › 1: has 4,001 characters, at most 4,000 are"),
    ("too many paraphrases",
     lambda d: d["subtopics"][0].update(paraphrases=[f"Why {i}?" for i in range(MAX_PARAPHRASES + 1)]),
     "s1 › paraphrases: has 13 paraphrases, at most 12 are allowed"),
    ("an unknown tier", lambda d: d["provenance"].update(tier="D"),
     "provenance › tier: needs 'A', 'B' or 'C', not the text 'D'"),
    ("no evidence", lambda d: d["conclusions"][0].update(needs=[]), "c1 › needs: has 0 groups, needs at least 1"),
    ("an empty group", lambda d: d["conclusions"][0].update(needs=[[]]),
     "c1 › needs › 0: has 0 studies, needs at least 1"),
    ("an empty text", lambda d: d.update(topic=""), "topic: is empty"),
    ("only white space", lambda d: d.update(topic=" \t "), "topic: text starts or ends with white space; strip it"),
    ("an untidy text", lambda d: d["subtopics"][0].update(text="What? "), "s1 › text: text starts or ends with white"),
    ("a text too long", lambda d: d.update(topic="x" * (MAX_TEXT + 1)),
     "topic: has 4,001 characters, at most 4,000 are"),
    ("a name too long", lambda d: d["subtopics"][0].update(name="x" * 61), "s1 › name: has 61 characters, at most 60"),
    ("no author", lambda d: d["paper"].update(authors=[]), "paper › authors: has 0 authors, needs at least 1"),
    ("a year out of range", lambda d: d["paper"].update(year=1500), "paper › year: is 1500, needs at least 1600"),
    ("a DOI with resolver", lambda d: d["paper"].update(doi="https://doi.org/10.1/x"),
     "paper › doi: 'https://doi.org/10.1/x' is not a DOI"),
    ("no date", lambda d: d["paper"]["published"].update(date="May 2020"),
     "paper › published › date: 'May 2020' is not a date"),
    ("no such date", lambda d: d["paper"]["published"].update(date="2021-02-30"),
     "paper › published: '2021-02-30' is not a calendar date"),
    ("digits of another script", lambda d: d["paper"]["published"].update(date="٢٠٢٠-٠١-٠١"),
     "is not a calendar date"),
    ("an unknown precision", lambda d: d["paper"]["published"].update(precision="week"),
     "paper › published › precision: needs 'day', 'month' or 'year', not the text 'week'"),
    ("an unknown strength", lambda d: d["provenance"]["support"][0].update(strength="hearsay"),
     "provenance › support › 0 › strength: needs 'full_text', 'released_material'"),
    ("an unknown kind of fact", lambda d: d["provenance"]["support"][0].update(facts=["Q1"]),
     "provenance › support › 0 › facts › 0: 'Q1' is not a fact id"),
    ("a source without address", lambda d: d["provenance"]["sources"][0].pop("address"),
     "provenance › S1 › address: is missing"),
    ("an unfinished disclosure", lambda d: d.update(disclosure={"question": "Why?"}),
     "disclosure › null_hypothesis: is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("break_it", "fault"), [case[1:] for case in SHAPE_FAULTS], ids=[c[0] for c in SHAPE_FAULTS])
def test_a_fault_of_shape_is_found_and_names_its_place(break_it: Break, fault: str):
    found = document()
    break_it(found)
    assert any(fault in each for each in faults(found))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("version", "1"), ("version", 1.0), ("version", True), ("version", None), ("topic", 3), ("topic", ["What?"]),
        ("subtopics", {}), ("subtopics", "s1"), ("conclusions", None), ("paper", []), ("canary", False),
        ("disclosure", "none"),
    ],
)  # fmt: skip
def test_types_are_strict(place: str, value: object):
    (fault,) = faults(document() | {place: value})
    assert fault.startswith(f"{place}: needs ")


UNWANTED = [*range(9), 0x0B, 0x0C, 0x0E, 0x1B, 0x7F, 0x85, 0x9B, 0x061C, 0x200E, 0x200F, 0x2028, 0x202A, 0x202E]
UNWANTED += [0x2066, 0x2069, 0xFEFF, 0xFFFF, 0xE0041]


@pytest.mark.parametrize("code", UNWANTED, ids=hex)
def test_control_bidi_and_hidden_characters_are_refused_by_code(code: int):
    found = document()
    found["subtopics"][0]["studies"][0]["text"] = f"The outcome{chr(code)}rose."
    assert faults(found) == (f"s1 › s1a › text: text holds the control character U+{code:04X}; remove it",)


@pytest.mark.parametrize(
    ("break_it", "place"),
    [
        (lambda d: d.update(canary="a\x00b"), "canary"),
        (lambda d: d["paper"].update(doi="10.1234/\x1b[31m"), "paper › doi"),
        (lambda d: d["paper"]["authors"].append("\u202eydobon"), "paper › authors › 1"),
        (lambda d: d["subtopics"][0].update(name="a\x9bb"), "s1 › name"),
        (lambda d: d["conclusions"][0]["texts"].update({"1": "a\x00b"}), "c1 › texts › 1"),
        (lambda d: d["provenance"]["support"][0].update(note="a\x00b"), "provenance › support › 0 › note"),
        (lambda d: d["provenance"]["sources"][0].update(address="a\x00b"), "provenance › S1 › address"),
    ],
    ids=["canary", "doi", "author", "name", "statement", "note", "address"],
)
def test_no_field_lets_a_control_character_through(break_it: Break, place: str):
    found = document()
    break_it(found)
    (fault,) = faults(found)
    assert fault.startswith(f"{place}: text holds the control character")


def test_a_lone_surrogate_is_refused():
    assert "Invalid JSON" in faults(document() | {"topic": "a\ud800b"})[0]


@pytest.mark.parametrize(
    "text",
    ["Β-cells, naïve µ ≈ 3 °C?", "日本語の問い", "مرحبا بالعالم", "👩‍🔬 and 🧠", "two\nlines\tand a tab", "𝛼 ≤ ½"],
)
def test_any_ordinary_script_is_welcome(text: str):
    assert read(document() | {"topic": text}).topic == text


GRAPH_FAULTS: list[tuple[str, Break, tuple[str, ...]]] = [
    ("a subtopic id twice", lambda d: d["subtopics"][2].update(id="s2", prerequisites=needing("s1")),
     ("s2: this id is used more than once; ids are unique in a tree",)),
    ("a study with a subtopic's id",
     lambda d: (d["subtopics"][1]["studies"][0].update(id="s1"), d["conclusions"][1].update(needs=[["s1"]])),
     ("s1: this id is used more than once; ids are unique in a tree",)),
    ("a conclusion with a study's id", lambda d: d["conclusions"][1].update(id="s1b"),
     ("s1b: this id is used more than once; ids are unique in a tree",)),
    ("a node with the topic's id", lambda d: d["conclusions"][1].update(id="topic"),
     ("topic: this id is used more than once; ids are unique in a tree",)),
    ("a source id twice", lambda d: d["provenance"]["sources"].append(dict(d["provenance"]["sources"][0])),
     ("provenance: source S1 is used more than once; ids are unique in a tree",)),
    ("two subtopics with one text", lambda d: d["subtopics"][2].update(text=d["subtopics"][0]["text"]),
     ("s3: has the same text as s1; no action could tell them apart",)),
    ("two studies with one text",
     lambda d: d["subtopics"][0]["studies"][1].update(text=d["subtopics"][0]["studies"][0]["text"]),
     ("s1b: has the same text as s1a; no action could tell them apart",)),
    ("a dangling prerequisite", lambda d: d["subtopics"][0].update(prerequisites=needing("s9")),
     ("s1: prerequisite 's9' is not a subtopic of this tree",)),
    ("a study as prerequisite", lambda d: d["subtopics"][1].update(prerequisites=needing("s1a")),
     ("s2: prerequisite 's1a' is not a subtopic of this tree",)),
    ("a prerequisite twice", lambda d: d["subtopics"][1]["prerequisites"].extend(needing("s1")),
     ("s2: a prerequisite is listed",)),
    ("dangling evidence", lambda d: d["conclusions"][0]["needs"].append(["s1a", "s9z"]),
     ("c1: needs 's9z', which is not a study of this tree",)),
    ("a subtopic as evidence", lambda d: d["conclusions"][0].update(needs=[["s1"]]),
     ("c1: needs 's1', which is not a study of this tree",)),
    ("support of nothing", lambda d: d["provenance"]["support"][0].update(node="s9"),
     ("provenance: supports 's9', which is not a node of this tree",)),
    ("support by no source", lambda d: d["provenance"]["support"][0].update(sources=["S1", "S7"]),
     ("provenance: s1 cites S7, which is not among the sources",)),
    ("a subtopic that needs itself", lambda d: d["subtopics"][0].update(prerequisites=needing("s1")),
     ("s1: prerequisites form a cycle: s1 → s1; none of them could ever be entered",)),
    ("a paraphrase of its own text",
     lambda d: d["subtopics"][0].update(paraphrases=["What decides QUESTION number 1?"]),
     ("s1: paraphrase 1 repeats the text of s1; reword or remove it",)),
    ("a paraphrase with a sibling's text",
     lambda d: d["subtopics"][0]["studies"][1].update(
         paraphrases=["Measure.", d["subtopics"][0]["studies"][0]["text"]]),
     ("s1b: paraphrase 2 repeats the text of s1a; reword or remove it",)),
    ("a paraphrase of two subtopics", lambda d: [d["subtopics"][i].update(paraphrases=["Why?"]) for i in (0, 2)],
     ("s3: paraphrase 1 repeats paraphrase 1 of s1; reword or remove it",)),
    ("a paraphrase twice", lambda d: d["subtopics"][0].update(paraphrases=["Why?", "How?", "Why?"]),
     ("s1: paraphrase 3 repeats paraphrase 1 of s1; reword or remove it",)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("break_it", "expected"), [case[1:] for case in GRAPH_FAULTS], ids=[case[0] for case in GRAPH_FAULTS]
)
def test_a_fault_of_the_graph_is_the_only_one_found_and_names_its_node(break_it: Break, expected: tuple[str, ...]):
    found = document()
    break_it(found)
    assert len(faults(found)) == len(expected)
    assert all(fault.startswith(start) for fault, start in zip(faults(found), expected, strict=True))


def test_a_cycle_is_told_in_full():
    found = document()
    found["subtopics"][0]["prerequisites"] = needing("s3")
    (fault,) = faults(found)
    node, path = fault.split(": ")[0], fault.split("cycle: ")[1].split(";")[0].split(" → ")
    assert path[0] == path[-1] == node
    assert set(path) == {"s1", "s2", "s3"}
    needs = {subtopic["id"]: [each["id"] for each in subtopic["prerequisites"]] for subtopic in found["subtopics"]}
    assert all(after in needs[before] for before, after in pairwise(path)), "an arrow stands for: needs"


def test_separate_cycles_are_all_told_up_to_a_limit():
    found = json.loads(dump_tree(make_tree([[] for _ in range(2 * MAX_CYCLES + 10)], [1] * (2 * MAX_CYCLES + 10))))
    for i in range(0, 8, 2):
        found["subtopics"][i]["prerequisites"] = needing(f"s{i + 2}")
        found["subtopics"][i + 1]["prerequisites"] = needing(f"s{i + 1}")
    assert len(faults(found)) == 4
    for subtopic in found["subtopics"]:
        subtopic["prerequisites"] = needing(subtopic["id"])
    assert len(faults(found)) == MAX_CYCLES


def test_every_fault_is_told_at_once():
    found = document()
    for _, break_it, _ in GRAPH_FAULTS[2:3] + GRAPH_FAULTS[4:5] + GRAPH_FAULTS[7:8] + GRAPH_FAULTS[12:14]:
        break_it(found)
    found["provenance"]["support"].append({"node": "s2", "sources": ["S8"], "strength": "abstract"})
    found["subtopics"][2]["prerequisites"] = needing("s3")
    told = faults(found)
    assert len(told) == 7
    assert {fault.split(":")[0] for fault in told} == {"s1b", "provenance", "s1", "s3"}


def test_the_message_names_the_file_and_counts_the_faults():
    found = document() | {"version": 0, "topic": ""}
    with pytest.raises(TreeError, match=r"^broken\.json: 2 faults\n  - version: .*\n  - topic: ") as caught:
        read(found)
    assert pickle.loads(pickle.dumps(caught.value)).faults == caught.value.faults


@pytest.mark.e2e
def test_a_tree_holds_at_most_a_thousand_subtopics():
    found = json.loads(dump_tree(make_tree([[]] * MAX_SUBTOPICS, [1] * MAX_SUBTOPICS)))
    assert len(read(found).subtopics) == MAX_SUBTOPICS
    extra = dict(found["subtopics"][-1], id="extra", text="One more?", studies=[study("extra-a", "a1")])
    found["subtopics"].append(extra)
    assert "subtopics: has 1,001 subtopics, at most 1,000 are allowed" in faults(found)[0]


@settings(deadline=None, max_examples=50)
@given(trees())
def test_a_tree_is_hashable_and_equal_to_its_copies(tree: Tree):
    twin = parse_tree(dump_tree(tree).encode())
    assert twin == tree, "equal whether or not cached values have been asked for"
    assert tree.digest == twin.digest
    assert hash(tree) == hash(twin)
    assert {tree: 1}[twin] == 1
    for other in (pickle.loads(pickle.dumps(tree)), copy.deepcopy(tree), copy.copy(tree)):
        assert other == tree
        assert other.digest == tree.digest


def test_nothing_in_a_tree_can_be_changed():
    tree = read(document())
    with pytest.raises(ValidationError, match="frozen"):
        tree.topic = "Another?"
    with pytest.raises(ValidationError, match="frozen"):
        tree.subtopics[0].studies[0].result = "It fell."
    with pytest.raises(ValidationError, match="frozen"):
        tree.paper.published.date = "2021-01-01"
    with pytest.raises(ValidationError, match="frozen"):
        del tree.version
    assert isinstance(tree.subtopics, tuple)
    assert isinstance(tree.subtopics[0].hints, tuple)
    assert isinstance(tree.conclusions[0].needs[0], tuple)
    assert hash(tree) == hash(read(document()))


def test_a_changed_copy_is_validated_and_has_its_own_digest():
    tree = read(document())
    before = tree.digest
    changed = tree.model_copy(update={"topic": "What else?"})
    assert (changed.topic, tree.topic) == ("What else?", "What decides the questions?")
    assert changed.digest != before == tree.digest
    assert changed.subtopics == tree.subtopics
    assert tree.model_copy() == tree
    with pytest.raises(ValidationError, match="topic"):
        tree.model_copy(update={"topic": ""})
    with pytest.raises(ValidationError, match="'s1' is not a subtopic"):
        tree.model_copy(update={"subtopics": tree.subtopics[1:], "conclusions": tree.conclusions[1:]})


CHANGES: list[Break] = [
    lambda d: d.update(id="other"),
    lambda d: d.update(version=2),
    lambda d: d.update(topic="What else?"),
    lambda d: d["paper"].update(year=2021),
    lambda d: d["subtopics"].reverse(),
    lambda d: d["subtopics"][2].update(prerequisites=[]),
    lambda d: d["subtopics"][0]["hints"].reverse(),
    lambda d: d["subtopics"][0]["studies"][0]["result"]["texts"].update({"0": ["It rose."]}),
    lambda d: d["subtopics"][0]["studies"][0]["result"].update(support="sheet"),
    lambda d: d["axes"][0].update(actual=1),
    lambda d: d["conclusions"][0]["texts"].update({"1": "It is decided by standing still."}),
    lambda d: d["provenance"]["support"][0].update(note="checked"),
    lambda d: d["provenance"].update(tier="B"),
    lambda d: d["subtopics"][0].update(paraphrases=["Why?"]),
    lambda d: d["subtopics"][0]["studies"][0].update(paraphrases=["Why?"]),
]


def test_any_change_of_content_changes_the_digest():
    digests = {read(document()).digest}
    for change in CHANGES:
        found = document()
        change(found)
        digests.add(read(found).digest)
    assert len(digests) == len(CHANGES) + 1


def test_trees_are_equal_if_their_whole_documents_are():
    told = document() | {"disclosure": DISCLOSURE}
    assert read(document()) == read(document())
    assert read(document()) != read(told) != read(told | {"topic": "Another question?"})
    assert read(document()) != document()


def test_a_disclosure_moves_the_digest_of_its_task_but_not_of_its_tree():
    plain, told, other = document(), document() | {"disclosure": DISCLOSURE}, document()
    other["disclosure"] = DISCLOSURE | {"topic": "Bread"}
    trees = [read(each) for each in (plain, told, other)]
    assert len({tree.digest for tree in trees}) == 1
    tasks = [tree_task(tree) for tree in trees]
    assert tasks[0] is None
    assert tasks[1] is not None
    assert tasks[2] is not None
    assert tasks[1].digest != tasks[2].digest
    assert tasks[1].claims[0].text == "Yeast in the dough increases the height of the dough."


def test_a_disclosed_claim_rests_on_studies_of_the_tree():
    claims = [DISCLOSURE["claims"][0] | {"evidence": ["s1a", "s9"]}]  # type: ignore[index]
    (fault,) = faults(document() | {"disclosure": DISCLOSURE | {"claims": claims}})
    assert "p1: needs 's9', which is not a study of this tree" in fault


@settings(deadline=None, max_examples=20)
@given(st.randoms(use_true_random=False))
def test_the_digest_does_not_depend_on_the_order_of_keys_or_on_defaults_left_out(chance):
    def shuffled(value: object) -> object:
        if isinstance(value, dict):
            items = [(key, shuffled(inner)) for key, inner in value.items()]
            chance.shuffle(items)
            return dict(items)
        return [shuffled(inner) for inner in value] if isinstance(value, list) else value

    found = document()
    expected = read(found).digest
    del found["disclosure"], found["subtopics"][0]["prerequisites"], found["constants"]
    assert read(shuffled(found)).digest == expected


def test_a_document_without_paraphrases_and_tier_keeps_its_canonical_form_and_its_digest():
    plain, empty = document(), document()
    empty["provenance"]["tier"] = None
    for subtopic in empty["subtopics"]:
        subtopic["paraphrases"] = []
    assert (
        read(empty).digest == read(plain).digest == "cfc6452bc45cb459f04e7c29aa295d8c8eab95e6984dad02b8d357efc288cf97"
    )
    assert dump_tree(read(empty)) == dump_tree(read(plain))
    assert not {"paraphrases", "tier"} & set(re.findall(r'"(\w+)":', dump_tree(read(plain))))


def test_paraphrases_and_tier_are_kept_in_the_canonical_form():
    found = document()
    found["subtopics"][0] |= {"paraphrases": ["Why is the first question decided so?"]}
    found["subtopics"][1]["studies"][0] |= {"paraphrases": ["Measure it.", "Measure."]}
    found["provenance"]["tier"] = "B"
    tree = read(found)
    assert parse_tree(dump_tree(tree).encode()) == tree
    assert (tree.subtopics[0].paraphrases, tree.provenance.tier) == (("Why is the first question decided so?",), "B")
    assert list(json.loads(dump_tree(tree))["subtopics"][0])[:3] == ["id", "text", "paraphrases"]
    assert tree.texts()["s1/paraphrase1"] == "Why is the first question decided so?"
    assert tree.texts()["s2/s2a/paraphrase2"] == "Measure."


@settings(deadline=None)
@given(trees())
def test_texts_gives_each_text_under_its_path(tree: Tree):
    texts = tree.texts()
    first = tree.subtopics[0]
    assert texts["topic"] == tree.topic
    assert texts[first.id] == first.text
    assert texts[f"{first.id}/hint{HINT_LEVELS}"] == first.hints[-1]
    inner = first.studies[0]
    path = f"{first.id}/{inner.id}"
    assert (texts[path], texts[f"{path}/hint1"]) == (inner.text, inner.hints[0])
    assert texts[f"{path}/result/1/1"] == inner.outcomes[1][0]
    assert texts[f"{tree.conclusions[-1].id}/1"] == tree.conclusions[-1].options[1]
    ladders = len(tree.subtopics) + len(tree.studies)
    results = sum(len(each.shown_texts) for each in tree.studies)
    items = sum(len(item.options) for item in tree.conclusions)
    assert len(texts) == 1 + ladders * (1 + HINT_LEVELS) + results + items
