"""Agreement of two trees: all of a tree with itself, and less by what a copy lacks or has too much."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from inquitree_gym.embeddings import Embedder
from inquitree_gym.embeddings.protocol import embedded
from inquitree_gym.trees import Tree, dump_tree, load_tree
from inquitree_gym.trees.load import parse_tree
from research.agreement_of_trees import Shared, _studies, _written, agreement_of_trees, app, paired
from tests.authoring.replies import PAPER, good
from tests.authoring.test_author import write
from tests.contract.command_line import run_tool
from tests.hashing import HashingEmbedder
from tests.servers import Service

BY_HAND = PAPER.with_name("pipers-by-hand.json")
EMBED = partial(HashingEmbedder("hashed").embed)


@pytest.fixture(scope="module")
def tree() -> Tree:
    return load_tree("paper12")


def shared(first: Tree, second: Tree) -> dict[str, Shared]:
    return {each.part: each for each in agreement_of_trees(first, second, EMBED, 0.9)}


def test_a_tree_shares_all_with_itself(tree: Tree):
    found = shared(tree, tree)
    assert {(each.precision, each.recall) for each in found.values()} == {(1.0, 1.0)}
    assert found["studies"].first == len(tree.studies)


def test_a_dropped_subtopic_lowers_the_recall_and_ids_make_no_difference(tree: Tree):
    needed = {name for subtopic in tree.subtopics for name in subtopic.requires}
    dropped = next(subtopic for subtopic in tree.subtopics if subtopic.id not in needed)
    kept = [
        each.model_copy(update={"studies": tuple(s.model_copy(update={"id": f"x{s.id}"}) for s in each.studies)})
        for each in tree.subtopics
        if each.id != dropped.id
    ]
    found = shared(Tree.model_construct(**{**dict(iter(tree)), "subtopics": tuple(kept)}), tree)
    n, studies = len(tree.subtopics), len(tree.studies)
    assert found["subtopics"] == Shared("subtopics", n - 1, n - 1, n)
    assert found["studies"][1:] == (studies - len(dropped.studies), studies - len(dropped.studies), studies)
    assert (found["readings"].precision, found["prerequisites"].recall) == (1.0, 1.0)


def test_an_added_prerequisite_lowers_the_precision(tree: Tree):
    last = tree.subtopics[-1]
    free = next(each.id for each in tree.subtopics[:-1] if each.id not in last.requires)
    edge = tree.subtopics[-1].prerequisites[0] if last.prerequisites else None
    edge = edge or next(each.prerequisites[0] for each in tree.subtopics if each.prerequisites)
    more = last.model_copy(update={"prerequisites": (*last.prerequisites, edge.model_copy(update={"id": free}))})
    found = shared(tree.model_copy(update={"subtopics": (*tree.subtopics[:-1], more)}), tree)["prerequisites"]
    assert (found.first, found.both, found.recall) == (found.second + 1, found.second, 1.0)


def test_the_command_prints_what_two_files_share(tree: Tree, tmp_path: Path):
    (tmp_path / "mine.json").write_text(dump_tree(tree), "utf-8")
    done = run_tool(
        app, tmp_path / "mine.json", "paper12", "--embedder", "hashed-words", "--threshold", "0.95", "--json"
    )
    assert done.status == 0, done.said
    assert json.loads(done.out)["threshold"] == 0.95
    refused = run_tool(app, "paper12", "paper12", "--threshold", "7")
    assert (refused.status, "from -1 to 1, got 7" in refused.said) == (2, True)


@pytest.mark.weights
@pytest.mark.e2e
def test_two_trees_of_the_made_up_paper_by_two_hands(service: Service, reader: Embedder):
    """The figures of the page about authoring, under the default embedder, whatever the ids are."""
    service.begin(good)
    written, text = write(service).tree, BY_HAND.read_text("utf-8")
    by_hand = load_tree(BY_HAND)
    renamed = parse_tree(re.sub(r'"q(\d)', lambda found: f'"z{6 - int(found[1])}', text).encode(), by_hand.id)
    assert [each.id for each in renamed.subtopics] == ["z5", "z4", "z3", "z2", "z1"]
    found = [agreement_of_trees(written, other, partial(embedded, reader), 0.55) for other in (by_hand, renamed)]
    assert found[0] == found[1]
    rows = [[each.part, *map(str, each[1:]), *map(_written, (each.precision, each.recall))] for each in found[0]]
    page = Path(__file__).parents[2].joinpath("docs", "authoring.md").read_text("utf-8")
    assert [row for row in rows if f"| {' | '.join(row)} |" not in page] == []


@pytest.mark.weights
@pytest.mark.e2e
def test_studies_of_two_hands_are_paired_as_a_reader_pairs_them(service: Service, reader: Embedder):
    service.begin(good)
    pairs = paired(_studies(write(service).tree), _studies(load_tree(BY_HAND)), partial(embedded, reader), 0.55)
    assert [f"{one} {other}" for one, other in pairs.items()] == [
        "s1a q1a", "s1b q2c", "s1c q4a", "s1d q1c", "s2a q2a", "s2b q2b", "s2c q5b", "s3a q3a", "s3b q3c", "s3c q4b",
        "s3d q3b", "s4a q5a", "s4b q4c", "s4c q5c", "s4d q5d",
    ]  # fmt: skip
