"""What a program can mend is mended. Tables for authors agree with the faults of the linter and the sets of worlds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.errors import TreeError
from inquitree_gym.trees import Tree, dump_tree, load_tree
from inquitree_gym.trees.aids import author_tables, mended
from inquitree_gym.trees.lint import lint_tree
from tests.contract.command_line import inquitree
from tests.hashing import HashingEmbedder
from tests.tasks import TASK
from tests.worlds import clean_document, read, world_document

WORLDS, READINGS, COURSE, HINTS = (
    "Worlds",
    "Axes that each study reads",
    "A course of 2n turns",
    "Hints, and what their similarities must exceed",
)


def test_sets_that_a_tree_lacks_are_left_out():
    tree = read(world_document([2, 2, 3], [[[0], [1, 2]]], [[0]]))
    assert author_tables(tree)[WORLDS] == [["set", "worlds"], ["any", "12"], ["actual", "1"], ["complement", "2"]]


def test_readings_are_counted_by_axis():
    tree = read(world_document([2, 2], [[[0]], [[0, 1], []]], [[0], [0, 1]]))
    assert author_tables(tree)[READINGS] == [
        ["study", "a1", "a2", "support"],
        ["s1a", "●", "", "sheet"],
        ["s2a", "●", "●", "sheet"],
        ["s2b", "", "", "sheet"],
        ["studies", "2", "1", ""],
        ["subtopics", "2", "1", ""],
        ["items", "2", "1", ""],
    ]
    assert author_tables(tree)[COURSE][1][:2] == ["1", "1"]


def test_the_table_of_hints_shows_which_hints_are_at_fault():
    document = clean_document()
    document["subtopics"][1]["hints"][2] = "Think of nothing at all."
    document["subtopics"][2]["hints"][3] = document["subtopics"][0]["text"]
    tree = read(document)
    embed = HashingEmbedder().embed
    heading, *rows = author_tables(tree, embed)[HINTS]
    similarities = ["TF-IDF", "more than", "embedder", "more than", "margin", "to its text", "at least"]
    assert heading == ["node", "hint", *similarities, "text"]
    assert [len(rows), len({(row[0], row[1]) for row in rows})] == [4 * 21, 4 * 21]
    faults = lint_tree(tree, embed)
    falling = {row[0] for row in rows if row[5] and float(row[4]) <= float(row[5])}
    assert falling == {fault.node for fault in faults if fault.code == "T502"} >= {"s2"}
    strayed = {row[0] for row in rows if row[1] == "4" and float(row[6]) < 0}
    assert strayed == {fault.node for fault in faults if fault.code == "T503"} >= {"s3"}
    weak = {row[0] for row in rows if row[8] and float(row[7]) < float(row[8])}
    assert weak - strayed == {fault.node for fault in faults if fault.code == "T504"}
    assert [len(row) for row in author_tables(tree)[HINTS]] == [5] * (4 * 21 + 1)


# Mending

FIELDS = ("id", "axes", "poles", "texts", "hints", "studies", "result", "prerequisites")


def mended_document(change: Callable[[dict[str, Any]], object]) -> tuple[Tree, list[str]]:
    document = clean_document()
    change(document)
    return mended(json.dumps(document).encode(), "mine.json")


def test_a_clean_tree_is_only_written_in_canonical_form():
    assert mended_document(lambda document: None) == (read(clean_document()), [])


def test_missing_texts_get_stubs_that_the_check_lists():
    def change(document: dict[str, Any]) -> None:
        subtopic = document["subtopics"][1]
        del subtopic["hints"][2:], subtopic["prerequisites"][0]["because"], document["conclusions"][0]["texts"]["1"]
        del subtopic["studies"][0]["hints"], subtopic["studies"][3]["result"]["texts"]["10"]

    tree, changes = mended_document(change)
    assert changes == [
        "s2: hint 3 added", "s2: hint 4 added", "s2: reason of prerequisite s1 added",
        *(f"s2a: hint {level} added" for level in range(1, 5)), "s2d: text for '10' added", "c1: text for '1' added",
    ]  # fmt: skip
    found = [fault for fault in lint_tree(tree) if fault.code == "T301"]
    assert len(found) == 7 + 3 + 1, "a result has three wordings"


def test_an_implied_prerequisite_is_removed():
    def change(document: dict[str, Any]) -> None:
        document["subtopics"][2]["prerequisites"] = [{"id": "s2", "because": "x"}, {"id": "s1", "because": "y"}]

    tree, changes = mended_document(change)
    assert tree.graph["s3"] == ("s2",)
    assert "s3: prerequisite s1 removed, since another one implies it" in changes
    assert not [fault for fault in lint_tree(tree) if fault.code == "T201"]


@given(place=st.sampled_from(["axes", "subtopics", "conclusions"]), value=st.recursive(
    st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(FIELDS), inner, max_size=3
    ), max_leaves=12,
))  # fmt: skip
def test_any_other_fault_is_left_to_the_check(place: str, value: object):
    with pytest.raises(TreeError):
        mended_document(lambda document: document.update({place: value}))


def test_check_mends_a_file_first(tmp_path: Path):
    file, document = tmp_path / "made.json", clean_document()
    del document["subtopics"][0]["hints"][3]
    file.write_text(json.dumps(document))
    untouched = inquitree("check", file, "--embedder", "none")
    assert "T102" in untouched.out
    done = inquitree("check", file, "--fix", "--embedder", "none")
    assert f"{file}: s1: hint 4 added" in done.err
    assert "T301" in done.out
    assert file.read_text() == dump_tree(load_tree(file))
    file.write_text(json.dumps(clean_document()))
    assert "written in canonical form" in inquitree("check", file, "--fix", "--embedder", "none").err
    assert "written" not in inquitree("check", file, "--fix", "--embedder", "none").err


def test_only_files_of_trees_are_mended(tmp_path: Path):
    assert "--fix must be given files, got 'paper2'" in inquitree("check", "paper2", "--fix").said
    file = tmp_path / "task.json"
    file.write_text(json.dumps(TASK))
    assert "has no mended form; leave out --fix" in inquitree("check", file, "--fix").said
    file.write_text('{"format": "inquitree/2", "id": 3}')
    assert inquitree("check", file, "--fix", "--embedder", "none").status == 1
    assert file.read_text() == '{"format": "inquitree/2", "id": 3}'
