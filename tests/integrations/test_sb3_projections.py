"""Stable-Baselines3 on the discrete view of projections."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3 import A2C
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env

from inquitree_gym.integrations.sb3 import BatchVecEnv

pytestmark = pytest.mark.weights

ID = "ProjectionBench-synthetic-menu-v0"


def batch(count: int, **keywords) -> BatchVecEnv:
    return BatchVecEnv(
        gym.make_vec(ID, count, vectorization_mode="vector_entry_point", autoreset_mode="SameStep", **keywords)
    )


@pytest.mark.parametrize("name", [ID, "ProjectionBench-menu-v0", "ProjectionBench-paper3-menu-v0"])
def test_the_checker_of_stable_baselines3_passes(name):
    check_env(gym.make(name).unwrapped)


@pytest.mark.parametrize("as_arrays", [False, True], ids=["single", "arrays"])
def test_masks_close_all_but_one_option_of_empty_slots(as_arrays):
    env = batch(3, claims=(1, 4)) if as_arrays else make_vec_env(ID, 3, env_kwargs={"claims": (1, 4)})
    env.seed(5)
    claims = env.reset()[:, 3:7].sum(axis=1)
    assert len(set(claims)) > 1
    np.testing.assert_array_equal(get_action_masks(env).sum(axis=1), 4 + 2 * claims)
    model = MaskablePPO("MlpPolicy", env, n_steps=8, batch_size=8, n_epochs=1, seed=1, device="cpu").learn(24)
    action, _ = model.predict(env.reset(), action_masks=np.array([[True, False, False] * 4] * 3))
    assert not action.any()


def test_models_train_on_many_projections_and_play_one():
    env = batch(4, claims=2)
    env.seed(1)
    model = A2C("MlpPolicy", env, n_steps=4, seed=1, device="cpu").learn(32)
    single = gym.make(ID, claims=2, split="test")
    rows, _ = single.reset(seed=0)
    over, info = False, {}
    while not over:
        rows, _, over, _, info = single.step(model.predict(rows)[0])
    assert info["turn"] == 3


def test_a_batch_tells_the_last_observation_of_an_episode():
    env = batch(2, claims=3)
    env.seed(4)
    rows = env.reset()
    first = rows[:, :3]
    for _ in range(3):
        env.step_async(np.zeros((2, 3), np.int64))
        rows, rewards, over, infos = env.step_wait()
    assert over.all()
    assert rewards.dtype == np.float32
    for info in infos:
        assert not info["terminal_observation"][:3].any()
        assert info["TimeLimit.truncated"] is False
    np.testing.assert_array_equal(rows[:, :3], first)
