"""A tree with worlds that exists is playable in all of them; what is wrong with a document is said with its place."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.errors import Fault, TreeError, UnknownTreeError
from inquitree_gym.trees import load_tree, parse_tree
from inquitree_gym.trees.document import MAX_AXES, MAX_WORDINGS
from inquitree_gym.trees.reading import dump_document
from inquitree_gym.trees.schema import Tree
from tests.tasks import DISCLOSURE
from tests.worlds import read, world_document, world_trees

Break = Callable[[dict], object]


def document() -> dict[str, Any]:
    """Two subtopics with a control and a result of two axes, the second axis with three poles."""
    return world_document([2, 3], [[[0], []], [[0, 1], [1]]], [[0], [0, 1]])


def result(found: dict, subtopic: int, study: int) -> dict:
    return found["subtopics"][subtopic]["studies"][study]["result"]


def faults(found: dict) -> list[str]:
    with pytest.raises(TreeError) as caught:
        read(found)
    return [f"{fault.code} {fault.path} {fault}" for fault in caught.value.faults]


@given(world_trees())
def test_what_is_dumped_is_read_again_to_the_same_tree_and_bytes(tree: Tree):
    text = dump_document(tree)
    again = parse_tree(text.encode())
    assert (again, dump_document(again), again.digest) == (tree, text, tree.digest)
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert hash(again) == hash(tree)


def test_a_disclosure_is_outside_the_digest_and_rests_on_studies_of_the_tree():
    plain = read(document())
    told = copy.deepcopy(DISCLOSURE)
    for claim in told["claims"]:
        claim["evidence"] = ["s2a"]
    tree = read(document() | {"disclosure": told})
    assert (tree.digest, tree == plain) == (plain.digest, False)
    told["claims"][0]["evidence"] = ["s9a"]
    assert "needs 's9a', which is not a study" in faults(document() | {"disclosure": told})[0]


def test_texts_gives_each_text_under_its_path():
    texts = read(document()).texts()
    assert texts["s2/s2a/result/12/3"] == "In some third run, reading A fell and reading B held."
    assert texts["s1/s1b/result/1"] == "In the first run, all held."
    assert texts["c2/10"] == "Everywhere reading A fell and reading B rose."
    assert texts["s1/hint1"] == "Think, step by step, of Which"


PLACE = "subtopics[1].studies[0].result"
FAULTS: list[tuple[Break, str]] = [
    (lambda d: d["axes"].append(d["axes"][0]), "T111 axes[2].id a1: this id is used more than once"),
    (lambda d: d["axes"].append(d["axes"][0] | {"id": "s1"}), "T111 axes[2].id s1: this id is used more than once"),
    (lambda d: d["axes"][0].update(actual=2), "T121 axes[0].actual a1: its actual pole is 2, needs 0 to 1"),
    (lambda d: d["axes"][0].update(actual=-1), "T121 axes[0].actual a1: its actual pole is -1, needs 0 to 1"),
    (lambda d: d["axes"][1].update(actual=None), "T121 axes[1].actual a2: a2 have no actual pole, the other axes have"),
    (lambda d: d["axes"][0].pop("actual"), "T102 axes[0].actual a1 › actual: is missing"),
    (lambda d: d["axes"][0].update(poles=["one"]), "T102 axes[0].poles a1 › poles: has 1 pole, needs at least 2"),
    (lambda d: d["axes"][0].update(poles=list("abcd")), "a1 › poles: has 4 poles, at most 3 are allowed"),
    (lambda d: d["axes"][0].update(settled_by="taste"), "needs 'data', 'simulation' or 'paper', not the text 'taste'"),
    (lambda d: d.update(axes=[]), "T102 axes axes: has 0 axes, needs at least 1"),
    (lambda d: d.update(axes=d["axes"] * 7), f"axes: has 14 axes, at most {MAX_AXES} are allowed"),
    (lambda d: result(d, 0, 0).update(axes=["a1", "a2", "a1"]), "s1a › result › axes: has 3 axes, at most 2"),
    (lambda d: result(d, 1, 0).update(axes=["a1", "a9"]),
     f"T119 {PLACE}.axes[1] s2a: reads 'a9', which is not an axis of this tree"),
    (lambda d: result(d, 1, 0).update(axes=["a1", "a1"]), f"T119 {PLACE}.axes s2a: reads an axis twice; name it once"),
    (lambda d: d["conclusions"][1].update(axes=["a1", "a1"]), "T119 conclusions[1].axes c2: reads an axis twice"),
    (lambda d: d["conclusions"][0].update(axes=[]), "c1 › axes: has 0 axes, needs at least 1"),
    (lambda d: result(d, 1, 0)["texts"].pop("12"), f"T120 {PLACE}.texts s2a: has no text for '12'; write"),
    (lambda d: result(d, 1, 0)["texts"].update({"20": ["x"] * 3}),
     f"T120 {PLACE}.texts s2a: has texts for '20', but its axes need '00', '01', '02', '10', '11', '12'"),
    (lambda d: result(d, 0, 1).update(texts={}), "T120 subtopics[0].studies[1].result.texts s1b: has no text for ''"),
    (lambda d: result(d, 0, 1)["texts"].update({"0\u202e": ["x"] * 3}), "'0\\u202e', but its axes need ''"),
    (lambda d: d["conclusions"][1]["texts"].pop("00"), "T120 conclusions[1].texts c2: has no text for '00'"),
    (lambda d: result(d, 1, 1)["texts"]["2"].pop(),
     "s2b: its result has 3 for '0', 3 for '1', 2 for '2'; every key needs the same number of wordings"),
    (lambda d: result(d, 1, 1)["texts"].update({"2": []}), "s2b › result › texts › 2: has 0 wordings, needs"),
    (lambda d: result(d, 0, 1)["texts"].update({"": ["x"] * 13}),
     f"has 13 wordings, at most {MAX_WORDINGS} are allowed"),
    (lambda d: result(d, 1, 1)["texts"].update({"2": "held"}), "s2b › result › texts › 2: needs a list, not the text"),
    (lambda d: result(d, 1, 1).update(texts=["held"]), "s2b › result › texts: needs an object, not a list"),
    (lambda d: result(d, 1, 1).pop("support"), "s2b › result › support: is missing"),
    (lambda d: d["subtopics"][1].update(prerequisites=["s1"]), "s2 › prerequisites › 0: needs an object, not the text"),
    (lambda d: d["subtopics"][1]["prerequisites"][0].pop("because"), "s1 › because: is missing"),
    (lambda d: d["subtopics"][1]["prerequisites"][0].update(id="s9"),
     "T114 subtopics[1].prerequisites[0] s2: prerequisite 's9' is not a subtopic"),
    (lambda d: d["subtopics"][0].update(prerequisites=[{"id": "s2", "because": "Round."}]),
     "prerequisites form a cycle: s1 → s2 → s1"),
    (lambda d: d["conclusions"][0].update(needs=[["s9a"]]), "c1: needs 's9a', which is not a study of this tree"),
    (lambda d: d["subtopics"][0]["studies"][0].update(fakes=[]), "s1a › fakes: is an unknown field; remove it"),
]  # fmt: skip


@pytest.mark.parametrize(("break_it", "told"), FAULTS)
def test_a_fault_is_found_alone_and_names_its_place(break_it: Break, told: str):
    found = document()
    break_it(found)
    (fault,) = faults(found)
    assert told in fault


def outcome(found: dict) -> Tree | tuple[Fault, ...]:
    try:
        return read(found)
    except TreeError as error:
        return error.faults


def paths_of(value: Any, path: tuple = ()) -> list[tuple]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, each in inner for found in paths_of(each, (*path, key)))]


@settings(deadline=None)
@given(st.data())
def test_a_document_changed_anywhere_is_read_or_refused_with_places(data: st.DataObject):
    found = document()
    *path, last = data.draw(st.sampled_from([path for path in paths_of(found)[1:] if path[-1] != "paraphrases"]))
    place = found
    for key in path:
        place = place[key]
    place[last] = data.draw(st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just([]) | st.just({}))
    read_or_refused = outcome(found)
    if isinstance(read_or_refused, Tree):
        found["provenance"] = {"sources": [], "support": []} | found["provenance"]
        assert json.loads(dump_document(read_or_refused)) == found | {"disclosure": None}
    else:
        assert read_or_refused
        assert all(fault.path and fault.message for fault in read_or_refused)


def test_a_tree_is_read_from_its_file(tmp_path: Path):
    file = tmp_path / "made.json"
    file.write_text(dump_document(read(document())))
    tree = load_tree(file)
    assert tree.digest == read(document()).digest
    assert load_tree(tree) is tree
    with pytest.raises(UnknownTreeError, match="no tree file at"):
        load_tree(tmp_path / "none.json")


def test_the_schema_for_editors_holds_every_field_and_the_document_keeps_to_it():
    jsonschema = pytest.importorskip("jsonschema")
    schema = Tree.model_json_schema()
    jsonschema.validate(json.loads(dump_document(read(document()))), schema)
    broken = copy.deepcopy(document())
    broken["axes"][0]["poles"] = ["one"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)
