"""Baselines on synthetic worlds: none is above chance where no sign can be known."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from inquitree_gym import make_agent
from inquitree_gym.errors import OptionError
from inquitree_gym.rollout import play

WORLDS = 300


@pytest.mark.e2e
@pytest.mark.parametrize("deducible", [0.0, 1.0])
def test_baselines_earn_the_computed_chance_over_hundreds_of_worlds(deducible: float):
    env = gym.make("ProjectionBench-synthetic-v0", split="test", claims=4, deducible=deducible, privileged=True)
    returns: dict[str, list[float]] = {"coin": [], "null": [], "oracle": []}
    for name, found in returns.items():
        for seed in range(WORLDS):
            env.reset(seed=seed)
            found.append(play(env, make_agent(name, env), seed).footer.episode_return)
    coin = np.array(returns["coin"])
    assert abs(coin.mean()) < 2.6 * coin.std() / np.sqrt(WORLDS)
    assert coin.std() == pytest.approx(np.sqrt((1 / 16 + 1 / 4 + 1 / 16) / 4), rel=0.15)
    assert (set(returns["null"]), set(returns["oracle"])) == ({0.0}, {1.0})


def test_an_agent_for_worlds_is_made_after_a_reset():
    env = gym.make("ProjectionBench-synthetic-v0", privileged=True)
    with pytest.raises(OptionError, match=r"call env\.reset"):
        make_agent("oracle", env)
    observation, info = env.reset(seed=5)
    assert make_agent("oracle", env).act(observation, info) == env.unwrapped.task.disclosure.outcome
