"""All 30 papers of the pool are known; 12 of them answer with what to do instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from inquitree_gym.errors import UnknownTreeError
from inquitree_gym.trees import CATALOGUE, dump_tree, load_tree
from inquitree_gym.trees.catalogue import RESTRICTED, TREES_VARIABLE
from tests.strategies import make_tree

SUBTOPICS = {
    1: 8, 2: 4, 3: 7, 4: 10, 5: 7, 7: 7, 8: 5, 10: 7, 11: 6, 12: 7, 17: 4, 18: 6, 20: 8, 24: 6, 25: 8, 27: 7, 28: 5,
    29: 8,
}  # fmt: skip
JOURNALS = {
    "Nature Neuroscience", "Nature Human Behaviour", "Nature Communications", "Communications Biology", "Science",
    "Current Biology", "Cell",
}  # fmt: skip
MAY_NOT_BE_SHARED = (6, 9, 13, 14, 15, 16, 19, 21, 22, 23, 26, 30)


def test_the_pool_has_30_papers_in_order():
    assert list(CATALOGUE) == [f"paper{number}" for number in range(1, 31)]
    assert all(entry.id == name for name, entry in CATALOGUE.items())


def test_18_papers_may_be_shared_and_have_120_subtopics():
    shared = {name: entry.subtopics for name, entry in CATALOGUE.items() if entry.distributable}
    assert shared == {f"paper{number}": n for number, n in SUBTOPICS.items()}
    assert sum(SUBTOPICS.values()) == 120


WITHHELD = {6: 12, 9: 6, 13: 7, 14: 13, 15: 6, 16: 7, 19: 9, 21: 7, 22: 12, 23: 5, 26: 7, 30: 7}


def test_the_other_12_are_named_with_the_size_of_their_trees():
    assert {f"paper{number}" for number in MAY_NOT_BE_SHARED} == set(RESTRICTED)
    assert {name: CATALOGUE[name].subtopics for name in RESTRICTED} == {f"paper{i}": n for i, n in WITHHELD.items()}
    assert not any(CATALOGUE[name].distributable for name in RESTRICTED)
    assert CATALOGUE["paper26"][2:4] == (
        "Stress-Induced Metabolic Disorder in Peripheral CD4+ T Cells Leads to Anxiety-like Behavior", "Cell",
    )  # fmt: skip


def test_every_paper_has_a_title_and_a_journal_and_a_shared_one_a_doi_of_its_own():
    assert all(entry.journal in JOURNALS for entry in CATALOGUE.values())
    assert len({entry.title for entry in CATALOGUE.values()}) == len(CATALOGUE)
    shared = [entry for entry in CATALOGUE.values() if entry.distributable]
    assert all(entry.doi and entry.doi.startswith("10.") for entry in shared)
    assert len({entry.doi for entry in shared}) == len(shared)
    assert all(entry.journal == load_tree(entry.id).paper.journal for entry in shared)


@pytest.mark.parametrize("number", MAY_NOT_BE_SHARED)
def test_a_paper_that_may_not_be_shared_says_so_and_what_to_do(number: int):
    for name in (f"paper{number}", str(number)):
        with pytest.raises(
            UnknownTreeError, match=f"^'paper{number}' is in the paper pool but its tree may not be d"
        ) as e:
            load_tree(name)
        assert f"'paper{number}.json' in a folder named by {TREES_VARIABLE}" in str(e.value)
        assert "pass its path" in str(e.value)


def test_one_s_own_file_for_such_a_paper_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    own = make_tree([[], [0]], [1, 2], tree_id="paper6")
    (tmp_path / "paper6.json").write_text(dump_tree(own))
    assert load_tree(tmp_path / "paper6.json") == own
    monkeypatch.setenv(TREES_VARIABLE, str(tmp_path))
    assert load_tree("paper6") == load_tree("6") == own
    with pytest.raises(UnknownTreeError, match="'paper9' is in the paper pool"):
        load_tree("paper9")
