"""The search for conclusions that choose no side and earn a reward all the same."""

from __future__ import annotations

import numpy as np
import pytest

from inquitree_gym.inquiry.judges.local import local_judge
from inquitree_gym.trees import load_tree
from research.judge.gaming import BOUNDS
from research.judge.search import POOLS, SIZES, ComposedConclusions, Plan, mean_reward, search

pytestmark = pytest.mark.weights


def test_a_plan_is_paid_by_the_environment_after_a_whole_inquiry():
    env = ComposedConclusions([load_tree("paper2")])
    env.reset(seed=3)
    _, reward, terminated, _, _ = env.step(np.zeros(len(SIZES), np.int64))
    assert terminated
    assert 0 <= reward <= BOUNDS["both"][1]
    assert env.tried == [(Plan(*[0] * len(SIZES)), reward)]


@pytest.mark.e2e
def test_a_learner_that_chooses_no_side_earns_far_less_than_one_who_says_what_was_found():
    tree = load_tree("paper2")
    found = search([tree], steps=64, seed=1)
    assert found.tried == 64
    assert found.at_last <= BOUNDS["both"][1]
    said = [
        verdict.score for verdict in local_judge(tree).judge("\n".join(f"- {each.result}" for each in tree.studies))
    ]
    assert found.best < 0.6 * np.mean(said), found.plan
    assert mean_reward([tree], Plan(0, POOLS.index("results"), 0, 2, 0, 0, 0)) <= BOUNDS["both"][1]
