"""Each rule of the linter fires on a tree broken in just that way, and on no other."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from inquitree_gym.embeddings import MiniLMEmbedder
from inquitree_gym.trees import Fault, Tree, parse_tree
from inquitree_gym.trees.lint import char_tfidf
from inquitree_gym.trees.lint import lint_tree as all_faults
from inquitree_gym.trees.meaning import ladder_faults, targets
from inquitree_gym.trees.rules import MAX_FALL
from inquitree_gym.trees.schema import Embed
from tests.strategies import make_tree, trees

Break = Callable[[dict], object]

LANTERNS = json.loads((Path(__file__).parents[1] / "data" / "lanterns.json").read_text())


def lanterns(*breaks: Break) -> Tree:
    document = copy.deepcopy(LANTERNS)
    for break_it in breaks:
        break_it(document)
    return parse_tree(json.dumps(document).encode())


def study(document: dict, identifier: str) -> dict:
    return next(each for topic in document["subtopics"] for each in topic["studies"] if each["id"] == identifier)


def lint_tree(tree: Tree, embed: Embed | None = None) -> list[Fault]:
    """Lint a tree; that it has no paraphrases, and few axes, readers and wordings, is left out."""
    return [fault for fault in all_faults(tree, embed) if fault.code != "T305" and fault.code < "T9"]


def told(faults: Iterable[Fault]) -> list[str]:
    return [str(fault) for fault in faults]


@pytest.mark.weights
def test_a_good_tree_is_clean(minilm: MiniLMEmbedder):
    assert lint_tree(lanterns(), minilm.embed) == []


RULE_FAULTS: list[tuple[Break, list[str]]] = [
    (lambda d: d["provenance"]["support"].pop(2),
     ["s1b: has no entry in provenance.support; add one with its sources and facts"]),
    (lambda d: d["provenance"]["support"][1].update(sources=[]),
     ["s1a: its entry in provenance.support names no source; add one, or call it unconfirmed"]),
    (lambda d: [each.update(strength="unconfirmed") for each in d["provenance"]["support"][:2]],
     ["s1a: is scored but unconfirmed; say what a source supports, or let the study read no axis"]),
    (lambda d: d["provenance"]["support"][6].update(strength="unconfirmed"),
     ["c2: is scored but unconfirmed; say what a source supports, or let the study read no axis"]),
    (lambda d: d["provenance"].pop("tier"), ["provenance: has no evidence tier; state A, B or C"]),
    (lambda d: d["subtopics"][1]["hints"].__setitem__(0, "Someone may be watching."),
     ["s2: hint 1 has 4 words, needs at least 5 to tell where to look"]),
]  # fmt: skip


@pytest.mark.parametrize(("break_it", "expected"), RULE_FAULTS)
def test_a_rule_of_structure_or_surface_fires_alone(break_it: Break, expected: list[str]):
    assert told(lint_tree(lanterns(break_it))) == expected


def test_a_tree_without_sources_is_fiction_and_may_be_unconfirmed():
    def invent(document: dict) -> None:
        document["provenance"]["sources"] = []
        for support in document["provenance"]["support"]:
            support.update(sources=[], strength="unconfirmed")

    assert lint_tree(lanterns(invent)) == []


def test_missing_paraphrases_are_noted_once():
    tree = lanterns(lambda d: d["subtopics"][0].update(paraphrases=["Do salty marshes glow?"]))
    (note,) = (fault for fault in all_faults(tree) if fault.code == "T305")
    assert str(note) == "4 of 5 subtopics and studies have no paraphrases; 5 to 8 each help the matcher"
    assert (note.code, note.severity, note.path, note.value, note.bound) == ("T305", "note", "subtopics", 4, 0)


def test_a_todo_is_told_with_its_place_and_the_wording_waits():
    def unfinished(document: dict) -> None:
        study(document, "s1b")["result"]["texts"]["1"] = ["TODO: a result"]
        document["paper"]["title"] = "TODO"
        document["topic"] = "Why is TODOS no TODO item?"
        document["provenance"]["support"].pop()

    faults = lint_tree(lanterns(unfinished), refuse_to_embed)
    assert [(fault.code, fault.node, fault.path) for fault in faults] == [
        ("T205", "c2", "provenance.support"),
        ("T301", "", "paper.title"),
        ("T301", "topic", "topic"),
        ("T301", "s1b", "subtopics[0].studies[1].result.texts.1[0]"),
    ]
    assert str(faults[3]) == "s1b: says 'TODO: a result'; write the text"


def refuse_to_embed(texts: object) -> np.ndarray:
    raise AssertionError("a tree with TODO texts is not embedded")


def test_an_implied_prerequisite_is_named():
    faults = lint_tree(make_tree([[], [0], [0, 1], [1, 2, 0]], [1] * 4))
    edges = [str(fault) for fault in faults if "already implied" in fault.message]
    assert edges == [
        "s3: prerequisite 's1' is already implied by another one; remove it",
        "s4: prerequisite 's1' is already implied by another one; remove it",
        "s4: prerequisite 's2' is already implied by another one; remove it",
    ]


def reachable(parents: dict[str, set[str]]) -> set[tuple[str, str]]:
    found = {(node, name) for node, names in parents.items() for name in names}
    while more := {(a, d) for a, b in found for c, d in found if b == c} - found:
        found |= more
    return found


@pytest.mark.e2e
@settings(deadline=None, max_examples=40)
@given(trees(shapes=("random",), max_subtopics=7))
def test_an_edge_is_redundant_just_when_nothing_changes_without_it(tree: Tree):
    parents = {subtopic.id: set(subtopic.requires) for subtopic in tree.subtopics}
    redundant = {
        (node, name)
        for node, names in parents.items()
        for name in names
        if reachable(parents | {node: names - {name}}) == reachable(parents)
    }
    faults = [fault for fault in lint_tree(tree) if "already implied" in fault.message]
    assert {(fault.node, fault.message.split("'")[1]) for fault in faults} == redundant


def test_a_dense_graph_is_linted_without_walking_every_path():
    # There are 2^28 paths through this graph.
    dense = lint_tree(make_tree([list(range(i)) for i in range(30)], [1] * 30))
    assert sum("already implied" in fault.message for fault in dense) == 30 * 29 / 2 - 29


def vaguer(document: dict) -> None:
    hints = study(document, "s1a")["hints"]
    hints[1], hints[2] = hints[2], hints[1]


NEEDS = r"s1a: hint 3 must be at least 0\.\d{3} closer to its target %s, got (0\.\d{3}) after (0\.\d{3}) of hint 2 "
LADDER = r"\(hints 1 to 4: (0\.\d{3}), \2, \1, (0\.\d{3})\); "
REMEDY = r"move words of the target from hint 2 to hint 3, such as (\w+)"


@pytest.mark.weights
def test_a_ladder_that_falls_is_told_with_its_similarities_and_a_remedy(minilm: MiniLMEmbedder):
    (surface,) = told(lint_tree(lanterns(vaguer)))
    both = lint_tree(lanterns(vaguer), minilm.embed)
    assert [fault.code for fault in both] == ["T501", "T502"]
    assert told(both)[0] == surface
    for message, space in zip(told(both), (r"in characters \(TF-IDF\)", "under the embedder"), strict=True):
        found = re.match(NEEDS % space + LADDER + REMEDY, message)
        assert found, message
        node = study(lanterns(vaguer).model_dump(mode="json"), "s1a")
        assert found[5] in node["text"].lower()
        assert found[5] in node["hints"][1].lower()
        assert found[5] not in node["hints"][2].lower()
    assert [fault.bound - fault.value for fault in both] == [
        pytest.approx(float(re.search(r"at least (\S+)", fault.message)[1]), abs=1e-3) for fault in both
    ]


def fall(chars: list[float], meaning: list[float] | None = None, hint: str = "Look at it.") -> list[tuple[str, str]]:
    """Return the faults of one ladder whose hints have these similarities to their target by either measure."""
    tree = lanterns(lambda d: d["subtopics"][1]["hints"].__setitem__(3, hint))
    node = tree.subtopics[1]

    def space(similarities: list[float]) -> Embed:
        known = {text: [value, np.sqrt(1 - value**2)] for text, value in zip(node.hints, similarities, strict=True)}
        return lambda texts: np.array([known.get(text, [1, 0]) for text in texts], np.float32)

    spaces = {"T501": space(chars), **({"T502": space(meaning)} if meaning else {})}
    found = list(ladder_faults(tree, spaces))
    assert all(fault.node in ("s2", *(study.id for study in tree.studies), "s1") for fault in found)
    return [(fault.code, fault.path[-8:]) for fault in found if fault.node == "s2"]


RISING = [0.1, 0.3, 0.5, 0.9]
CHARS, MEANING = MAX_FALL["T501"], MAX_FALL["T502"]


@pytest.mark.parametrize(
    ("chars", "meaning", "expected"),
    [
        pytest.param(RISING, RISING, [], id="both rise"),
        pytest.param([0.1, 0.5, 0.499, 0.9], RISING, [], id="a hair in characters"),
        pytest.param(RISING, [0.1, 0.5, 0.499, 0.9], [], id="a hair under the embedder"),
        pytest.param([0.1, 0.5, 0.51 - CHARS, 0.9], [0.1, 0.5, 0.51 - MEANING, 0.9], ["T505"], id="within tolerance"),
        pytest.param(
            [0.1, 0.5, 0.49 - CHARS, 0.9], [0.1, 0.5, 0.5, 0.9], ["T501"], id="characters fall, meaning stays"
        ),
        pytest.param([0.1, 0.5, 0.49 - CHARS, 0.9], [0.1, 0.3, 0.31 + MEANING, 0.9], [], id="other, better words"),
        pytest.param([0.1, 0.5, 0.6, 0.9], [0.1, 0.5, 0.49 - MEANING, 0.9], ["T502"], id="meaning falls alone"),
        pytest.param([0.1, 0.5, 0.49 - CHARS, 0.9], None, ["T501"], id="no embedder"),
    ],
)
def test_only_a_clear_fall_is_an_error_and_no_two_demands_contradict(
    chars: list[float], meaning: list[float] | None, expected: list[str]
):
    assert fall(chars, meaning) == [(code, "hints[2]") for code in expected]


def test_small_falls_add_up():
    step = MAX_FALL["T502"] * 0.7
    creeping = [0.6, 0.6 - step, 0.6 - 2 * step, 0.9]
    assert ("T502", "hints[2]") in fall(creeping, creeping)


QUOTED = [0.1, 0.3, 0.99, 0.5]


@pytest.mark.parametrize("lead", ["Ask: ", "Run the study: "])
def test_a_last_hint_that_quotes_its_target_cannot_fail(lead: str):
    text = lanterns().subtopics[1].text
    assert fall(QUOTED, QUOTED, lead + text) == []
    assert fall(QUOTED, QUOTED, lead + text.rsplit(" ", 1)[0]) == [("T501", "hints[3]"), ("T502", "hints[3]")]
    stray = lambda texts: np.array([[0, 1] if each == lead + text else [1, 0] for each in texts], np.float32)  # noqa: E731
    quoting = lanterns(lambda d: d["subtopics"][1]["hints"].__setitem__(3, lead + text))
    assert not {"T503", "T504"} & {each.code for each in lint_tree(quoting, stray) if each.node == "s2"}


def test_a_last_hint_that_quotes_a_sibling_as_well_is_measured():
    own, other = (subtopic.text for subtopic in lanterns().subtopics[1::-1])
    assert fall(QUOTED, QUOTED, f"{own} {other}") != []


@pytest.mark.weights
@pytest.mark.parametrize(
    ("second", "third", "under"),
    [
        ("Ask what attracts the beetles.", "Find which insects visit glowing blossoms.", "in characters (TF-IDF)"),
        (
            "Insects come to glowing blossoms.",
            "Which are drawn, by what, and from their distance?",
            "under the embedder",
        ),
    ],
)
def test_a_ladder_has_to_rise_in_letters_and_in_meaning(second: str, third: str, under: str, minilm: MiniLMEmbedder):
    def reword(document: dict) -> None:
        document["subtopics"][1]["hints"][1:3] = [second, third]

    (fault,) = told(lint_tree(lanterns(reword), minilm.embed))
    assert fault.startswith("s2: hint 3 must be at least ")
    assert under in fault


@pytest.mark.weights
def test_siblings_too_near_each_other_are_told_apart_from_the_rest(minilm: MiniLMEmbedder):
    def imitate(document: dict) -> None:
        text = (
            "row seedlings in tanks at five salt concentrations and measure how brightly they glow with a light meter."
        )
        study(document, "s1b").update(
            text=f"G{text}",
            hints=[
                "Do it with some care.",
                "Use several tanks and a meter.",
                "Grow seedlings in tanks with different salt and measure their brightness.",
                f"Run this: g{text}",
            ],
        )

    (fault,) = told(lint_tree(lanterns(imitate), minilm.embed))
    assert re.fullmatch(r"s1a: is too similar to its sibling s1b: 0\.8[12]\d > 0\.8", fault)
    assert lint_tree(lanterns(imitate)) == [], "without an embedder only structure and surface are checked"


@pytest.mark.weights
def test_a_last_hint_that_names_another_is_told_with_the_one_it_names(minilm: MiniLMEmbedder):
    def misname(document: dict) -> None:
        study(document, "s1b")["hints"][3] = study(document, "s1a")["hints"][3]

    faults = told(lint_tree(lanterns(misname), minilm.embed))
    assert any(re.match(r"s1b: its last hint is nearest to s1a \(0\.9\d\d > 0\.\d+\); name", each) for each in faults)
    assert {fault.split(":")[0] for fault in faults} == {"s1b"}


BEETLES = [
    "From how far away does the light of the flowers attract pollinating beetles, and which ones?",
    "Pollinating beetles drawn to flower light: species and distance.",
    "I wonder which beetles come to the glow of a flower, and from how many metres.",
]
SALT = [
    "Do lantern plants glow more brightly at night where the marsh water is saltier?",
    "Brightness of the nightly glow of lantern plants against salt content of marsh water.",
    "I wonder how bright lantern plants are in salty water.",
]


@pytest.mark.weights
def test_a_paraphrase_nearer_to_a_sibling_is_told_with_both_similarities(minilm: MiniLMEmbedder):
    def stray(document: dict) -> None:
        document["subtopics"][0]["paraphrases"] = [*SALT, BEETLES[0]]
        document["subtopics"][1]["paraphrases"] = BEETLES[1:]

    (warning,) = lint_tree(lanterns(stray), minilm.embed)
    assert (warning.code, warning.severity, warning.path) == ("T603", "warning", "subtopics[0].paraphrases[3]")
    assert re.fullmatch(
        r"s1: paraphrase 4 is nearer to s2 \(0\.\d{3}\) than to its own node \(0\.\d{3}\); reword it", str(warning)
    )
    assert warning.value < warning.bound
    own, sibling = re.findall(r"0\.\d{3}", warning.message)[::-1]
    assert (float(own), float(sibling)) == pytest.approx((warning.value, warning.bound), abs=5e-4)


@pytest.mark.weights
def test_a_text_that_its_paraphrases_leave_to_a_sibling_is_told(minilm: MiniLMEmbedder):
    def swap(document: dict) -> None:
        document["subtopics"][0]["paraphrases"] = BEETLES
        document["subtopics"][1]["paraphrases"] = SALT

    faults = lint_tree(lanterns(swap), minilm.embed)
    assert [str(fault)[:33] for fault in faults if fault.code == "T602"] == [
        "s1: its text is nearer to s2 (0.8",
        "s2: its text is nearer to s1 (0.8",
    ]
    assert {fault.node for fault in faults if fault.code == "T503"} == {"s1"}, "the last hint of s2 quotes its text"
    assert [fault for fault in lint_tree(lanterns(), minilm.embed) if fault.code in ("T602", "T503")] == []


def test_each_text_is_embedded_once():
    batches: list[list[str]] = []

    def embed(texts):
        batches.append(list(texts))
        return char_tfidf(texts)

    tree = lanterns()
    lint_tree(tree, embed)
    (batch,) = batches
    assert len(batch) == len(set(batch))
    assert {text for node in targets(tree) for text in (*node.hints, node.text)} < set(batch)
