"""Projections one at a time, in a loop, in other processes and batched: the same episodes."""

from __future__ import annotations

from functools import partial

import gymnasium as gym
import pytest
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import VectorEnv

from inquitree_gym.embeddings import load_embedder
from inquitree_gym.envs import ProjectionEnv, ProjectionVectorEnv
from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.judging.sense import JUDGE_EMBEDDER
from inquitree_gym.projection.tasks import load_task
from tests.projection.tasks import WORDS, named_task
from tests.tasks import make_task

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
NAME = "ProjectionBench-paper12-v0"
TASK = load_task("paper12")
TRUE = [claim.text for claim in TASK.claims]


def vector(way: str, count: int) -> VectorEnv:
    """Make it through Gymnasium."""
    return gym.make_vec(NAME, count, vectorization_mode=way)


@pytest.mark.weights
def test_a_step_embeds_all_its_claims_in_one_call(monkeypatch):
    embedder = load_embedder(JUDGE_EMBEDDER)
    calls: list[list[str]] = []
    embed = type(embedder).embed
    env = vector("vector_entry_point", 4)
    env.reset(seed=0)
    env.step(("", TRUE[0], "", ""))  # the texts of the task
    monkeypatch.setattr(type(embedder), "embed", lambda self, texts: calls.append(list(texts)) or embed(self, texts))
    new = "This study finds that moths reduce the light of lamps, and that lamps increase the number of moths."
    env.step((new, "Moths increase the price of wool.", TRUE[0], "Moths increase the price of wool."))
    assert len(calls) == 1
    assert len(calls[0]) == len(set(calls[0])) == 3
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
