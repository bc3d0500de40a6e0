"""Projections one at a time, in a loop, in other processes and batched: the same episodes."""

from __future__ import annotations

from functools import partial

import gymnasium as gym
import pytest
from gymnasium.vector import VectorEnv

from inquitree_gym.envs import ProjectionEnv, ProjectionVectorEnv
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.trees.disclosure import LEVELS
from tests.projection.tasks import WORDS, reply
from tests.tasks import make_task

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
NAME = "ProjectionBench-paper12-v0"
TASK = load_task("paper12")


def vector(way: str, count: int) -> VectorEnv:
    """Make it through Gymnasium."""
    return gym.make_vec(NAME, count, vectorization_mode=way)


@pytest.mark.parametrize("way", ["sync", "async", "vector_entry_point"])
def test_a_vector_answers_sheets_as_single_environments_do(way: str):
    env, alone = vector(way, 2), [ProjectionEnv(TASK) for _ in range(2)]
    seen = [list(env.reset(seed=3)[0])]
    assert seen[0] == [each.reset(seed=3 + i)[0] for i, each in enumerate(alone)]
    for _ in LEVELS:
        sheets = tuple(reply(each, [i] * len(TASK.claims)) for i, each in enumerate(alone))
        for actions in (("It rises.", "1 A"), sheets):
            texts, rewards, over, *_ = env.step(actions)
            for i, each in enumerate(alone):
                assert each.step(actions[i])[:3] == (texts[i], rewards[i], over[i])
    assert over.all()
    assert rewards[0] == 1
    env.close()


def test_what_makes_one_environment_can_be_another_class():
    env = ProjectionVectorEnv(2, task=make_task(), env_fn=partial(ProjectionEnv, judge=WORDS, form="claims"))
    env.reset(seed=1)
    assert [one.episode_rules.form for one in env.envs] == ["claims"] * 2
