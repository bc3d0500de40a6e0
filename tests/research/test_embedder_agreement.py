"""How near one embedder's readings come to another's."""

from __future__ import annotations

import numpy as np
import pytest

from inquitree_gym.trees.document import Candidate
from research.proposals import MatchingCase, ProposalKind
from research.static.distillation import (
    REFUSED,
    THRESHOLD_GRID,
    choices,
    matching_threshold,
    measure_agreement,
    similarities,
)


def question(tree: str, right: int = 0, kind: ProposalKind = "right", candidates: int = 2) -> MatchingCase:
    nodes = tuple(Candidate(id=f"s{index}", text=f"candidate {index}") for index in range(candidates))
    return MatchingCase(tree, f"s{right}", False, kind, "a proposal", nodes, right)


def rows(*values: list[float]) -> list[np.ndarray]:
    return [np.array(value, np.float32) for value in values]


def test_similarities_are_those_of_the_trees_own_vectors():
    turned = {"a proposal": np.array([0, 1]), "candidate 0": np.array([0.6, 0.8]), "candidate 1": np.array([1, 0])}
    plain = turned | {"a proposal": np.array([1, 0])}
    found = similarities([question("a"), question("b")], {"a": turned, "b": plain})
    assert [each.tolist() for each in found] == [[0.8, 0.0], [0.6, 1.0]]


def test_the_matching_threshold_lies_amid_those_that_read_most_alike():
    ours = rows([0.7, 0.1], [0.2, 0.6], [0.3, 0.1])
    assert matching_threshold(ours, np.array([0, 1, REFUSED])) == pytest.approx(0.45, abs=0.01)
    assert matching_threshold(ours, np.array([0, REFUSED, REFUSED])) == pytest.approx(0.65, abs=0.01)
    assert matching_threshold(ours, np.array([0, 1, 0])) == pytest.approx((THRESHOLD_GRID[0] + 0.3) / 2, abs=0.01)


def test_every_figure_tells_its_own_difference():
    asked = [question("a"), question("b"), question("b", candidates=1)]
    theirs = rows([0.7, 0.1], [0.7, 0.1], [0.9])
    ours = rows([0.7, 0.1], [0.1, 0.7], [0.9])
    found = measure_agreement(asked, ours, theirs, choices(theirs, 0.5))
    assert found.right == pytest.approx(2 / 3)
    assert found.nearest == 0.5, "one candidate is always the nearest"
    assert found.correlation < 1
    assert found.read_alike == pytest.approx(2 / 3)


def test_the_threshold_of_a_tree_is_chosen_on_the_others():
    asked = [question("a"), question("b")]
    theirs = rows([0.6, 0.1], [0.2, 0.1])  # accepted in a, refused in b
    ours = rows([0.4, 0.1], [0.35, 0.1])  # 0.375 reads both alike; each tree alone gives another threshold
    assert matching_threshold(ours, choices(theirs, 0.5)) == pytest.approx(0.375, abs=0.005)
    assert measure_agreement(asked, ours, theirs, choices(theirs, 0.5)).read_alike == 0
