"""Baselines on synthetic worlds: none is above chance where no sign can be known."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from inquitree_gym import make_agent
from inquitree_gym.errors import OptionError
from inquitree_gym.projection.agents import ProjectingBaseline
from inquitree_gym.projection.judges.alignment import projection_score
from inquitree_gym.projection.judges.chance import chance_f1
from inquitree_gym.projection.settings import ProjectionRules
from inquitree_gym.trees import WorldSettings, synthetic_task, tree_seed
from inquitree_gym.trees.disclosure import ProjectionTask
from tests.inquiry.test_synthetic import Letters

WORLDS = 1_000


def rated(task: ProjectionTask, projection: str) -> float:
    """The F1 of lines that are claims, contraries or something else, as an exact judge rates them."""
    lines = set(projection.split("\n"))
    pairs = [1.0 if claim.text in lines else -1.0 if lines & set(claim.contraries) else np.nan for claim in task.claims]
    return float(projection_score(np.array(pairs), np.zeros(0)).f1)


@pytest.mark.e2e
@pytest.mark.parametrize(("name", "expected"), [("coin", chance_f1(4)), ("optimist", chance_f1(4)), ("null", 0.0)])
def test_baselines_earn_the_computed_chance_over_a_thousand_worlds(name, expected):
    found = []
    for number in range(WORLDS):
        task = synthetic_task(tree_seed(number, "test"), WorldSettings(claims=4, deducible=0.0))
        agent = ProjectingBaseline(name, task, ProjectionRules(form="claims"))
        agent.reset(number)
        told = {"level": "procedure", "privileged": {}}
        found.append(rated(task, agent.act("", told)))
    assert np.mean(found) == pytest.approx(expected, abs=0.02)


def test_an_agent_for_worlds_is_made_after_a_reset():
    env = gym.make("ProjectionBench-synthetic-v0", embedder=Letters(), privileged=True)
    with pytest.raises(OptionError, match=r"call env\.reset"):
        make_agent("oracle", env)
    observation, info = env.reset(seed=5)
    assert make_agent("oracle", env).act(observation, info) == env.unwrapped.task.disclosure.outcome
