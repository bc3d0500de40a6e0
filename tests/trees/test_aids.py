"""The tables for authors agree with the faults of the linter and the sets of worlds."""

from __future__ import annotations

from inquitree_gym.trees.aids import author_tables
from inquitree_gym.trees.lint import lint_tree
from tests.hashing import HashingEmbedder
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
