"""Projections one at a time, in a loop, in other processes and batched: the same episodes."""

from __future__ import annotations

from functools import partial

import gymnasium as gym
import pytest
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import VectorEnv

from inquitree_gym.envs import ProjectionEnv, ProjectionVectorEnv
from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.trees.disclosure import LEVELS
from tests.projection.tasks import WORDS, named_task, reply
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
        for actions in (
            ("It rises.", "1 A"),
            tuple(reply(each, [i] * len(TASK.claims)) for i, each in enumerate(alone)),
        ):
            texts, rewards, over, *_ = env.step(actions)
            steps = [each.step(action) for each, action in zip(alone, actions, strict=True)]
            assert (list(texts), rewards.tolist(), over.tolist()) == tuple(map(list, zip(*(s[:3] for s in steps))))
    assert over.all()
    assert rewards[0] == 1
    env.close()


def test_each_environment_can_have_a_task_of_its_own():
    tasks = [named_task("rye"), make_task(), named_task("rye")]
    env = ProjectionVectorEnv(3, tasks=tasks, judge=WORDS)
    for _ in range(2):
        observations, _ = env.reset(seed=0)
        topics = [text.split("Topic: ")[1].split("\n")[0] for text in observations]
        assert topics == [task.disclosure.topic for task in tasks]
    for wrong in (tasks[:2], "abc", 3):
        with pytest.raises(
            OptionError, match="tasks must be a sequence with one task for each of the 3 environments, got"
        ):
            ProjectionVectorEnv(3, tasks=wrong, judge=WORDS)


def test_a_vector_of_many_tasks_draws_one_for_each_environment():
    alone = gym.make("ProjectionBench-v0", task=["paper2", "paper8", "paper12"])
    for way in ("sync", "vector_entry_point"):
        env = gym.make_vec("ProjectionBench-v0", 4, way, task=["paper2", "paper8", "paper12"])
        observations, _ = env.reset(seed=[5, 6, 7, 10])
        assert list(observations) == [alone.reset(seed=seed)[0] for seed in (5, 6, 7, 10)]
        assert len(set(observations)) > 1
        env.close()


def test_wrong_actions_are_refused_before_any_turn_and_a_closed_vector_says_so():
    env = ProjectionVectorEnv(2, task=make_task(), judge=WORDS)
    env.reset(seed=1)
    for actions, told in (
        (("", 3), r"must be a string, got int \(3, environment 1\)"),
        (("",), "actions must be 2 strings, one for each"),
    ):
        with pytest.raises(ActionError, match=told):
            env.step(actions)
    assert [one.state.turn for one in env.envs] == [0, 0]
    env.close()
    with pytest.raises(ClosedEnvironmentError, match="make another one"):
        env.step(("", ""))


def test_what_makes_one_environment_can_be_another_class():
    env = ProjectionVectorEnv(2, task=make_task(), env_fn=partial(ProjectionEnv, judge=WORDS, form="claims"))
    env.reset(seed=1)
    assert [one.episode_rules.form for one in env.envs] == ["claims"] * 2
