"""Strategies that say nothing, under the judge as shipped: mean scores over a third of the trees, or over all."""

from __future__ import annotations

import os

import pytest

from inquitree_gym.inquiry.judges.local import local_judge
from inquitree_gym.trees import builtin_ids, load_tree
from research.judge.gaming import BOUNDS, gaming_table


@pytest.fixture(scope="module")
def table() -> dict[tuple[str, str], float]:
    step = 1 if "INQUITREE_STRATEGIES" in os.environ else 3  # all trees take 100 seconds
    trees = [load_tree(name) for name in builtin_ids()[::step]]
    return gaming_table(trees, local_judge, trained_forms=False)


@pytest.mark.e2e
def test_no_strategy_earns_what_it_did_not_say(table: dict[tuple[str, str], float]):
    outside = {}
    for (kind, name), score in table.items():
        low, high = BOUNDS.get(kind, (0.0, 1.0))
        if not low <= score <= high:
            outside[kind, name] = round(score, 3)
    assert not outside


@pytest.mark.e2e
def test_true_results_earn_far_more_than_fakes(table: dict[tuple[str, str], float]):
    assert table["true", "all true results"] > table["false", "all first fakes"] + 0.5
    assert table["half", "half of the results true, half fake"] < table["true", "all true results"] / 2
