"""Projections one at a time, in a loop, in other processes and batched: the same episodes."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.embeddings import load_embedder
from inquitree_gym.envs import ProjectionEnv, ProjectionVectorEnv
from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.judges.sense import JUDGE_EMBEDDER
from inquitree_gym.trees.disclosure import LEVELS
from inquitree_gym.trees.tasks import load_task
from tests.envs.projection.tasks import WORDS, named_task
from tests.envs.test_inquiry import HOSTILE
from tests.envs.test_vector import rows, single
from tests.tasks import make_task

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
NAME = "ProjectionBench-paper12-v0"
TASK = load_task("paper12")
TRUE = [claim.text for claim in TASK.claims]
FALSE = [claim.contraries[0] for claim in TASK.claims]
SAYINGS = [
    "\n".join(TRUE), "\n".join(FALSE), TASK.disclosure.outcome, TASK.disclosure.question, "",
    TASK.disclosure.null_hypothesis, f"{TRUE[0]}\n{FALSE[1]}\n{TRUE[2]}", HOSTILE["injection"], HOSTILE["emoji"],
    HOSTILE["lone surrogate"], HOSTILE["template"],
    f"{TRUE[0]}\n{TRUE[0].upper()}\n{TRUE[0].lower()}", '{"projection": "It rises."}',
    "This study finds that a ring of few neurons drifts more when its excitation is stronger.",
    "This study finds that flies hold their heading in darkness, and that noise does not change it at all.",
]  # fmt: skip
MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]
WAYS = [
    ("sync", {}), ("async", {}), ("async", {"shared_memory": False}), ("vector_entry_point", {}),
]  # fmt: skip


def vector(way: str, count: int = 3, mode: Any = None, how: dict | None = None, **keywords: Any) -> VectorEnv:
    """Make it through Gymnasium."""
    autoreset = {} if mode is None else {"autoreset_mode": mode}
    if way == "vector_entry_point":
        env = gym.make_vec(NAME, count, vectorization_mode=way, **autoreset, **keywords)
        assert isinstance(env, ProjectionVectorEnv)
        return env
    return gym.make_vec(NAME, count, vectorization_mode=way, vector_kwargs={**autoreset, **(how or {})}, **keywords)


@pytest.fixture(scope="module")
def script() -> list[tuple[str, str, str]]:
    """Per step one action for each of three environments, over three episodes each."""
    count = len(SAYINGS)
    return [(SAYINGS[step % count], SAYINGS[5 * step % count], SAYINGS[-step % count]) for step in range(11)]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize(("way", "how"), WAYS, ids=str)
def test_every_way_gives_the_same_episodes(way: str, how: dict, mode: AutoresetMode, script, minilm):
    keywords: dict[str, Any] = {"privileged": True, "levels": ["null", "procedure"], "form": "claims", "reward": "end"}
    same_step = mode == AutoresetMode.SAME_STEP
    expected = [
        list(single(partial(ProjectionEnv, "paper12", **keywords), [step[i] for step in script], 40 + i, same_step))
        for i in range(3)
    ]
    env = vector(way, mode=mode, how=how, **keywords)
    assert rows(env, script, 40) == expected
    env.close()
    assert all(sum(bool(step[2]) for step in steps) >= 3 for steps in expected), "several episodes each"
    assert max(step[1] or 0 for steps in expected for step in steps) > 0


@pytest.mark.e2e
@settings(max_examples=25)
@given(
    script=st.lists(st.tuples(*[st.one_of(st.sampled_from(SAYINGS), st.text(max_size=40))] * 3), max_size=9),
    seed=st.integers(0, 2**31),
    levels=st.permutations(LEVELS).flatmap(lambda order: st.integers(1, 3).map(lambda size: order[:size])),
    reward=st.sampled_from(["each", "end"]),
    mode=st.sampled_from(MODES),
)
def test_batched_and_in_a_loop_are_alike(script, seed, levels, reward, mode, minilm):
    keywords = {"levels": levels, "reward": reward, "privileged": True}
    found, expected = (
        rows(vector(way, mode=mode, **keywords), script, seed) for way in ("vector_entry_point", "sync")
    )  # fmt: skip
    assert found == expected


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
        with pytest.raises(OptionError, match="tasks is a sequence with one task for each of the 3 environments, not"):
            ProjectionVectorEnv(3, tasks=wrong, judge=WORDS)


def test_a_vector_of_many_tasks_draws_one_for_each_environment():
    alone = gym.make("ProjectionBench-v0", task=["paper2", "paper8", "paper12"])
    for way in ("sync", "vector_entry_point"):
        env = gym.make_vec("ProjectionBench-v0", 4, way, task=["paper2", "paper8", "paper12"])
        observations, _ = env.reset(seed=[5, 6, 7, 10])
        assert list(observations) == [alone.reset(seed=seed)[0] for seed in (5, 6, 7, 10)]
        assert len(set(observations)) > 1
        env.close()


def test_options_and_masks_reach_the_environments():
    env = ProjectionVectorEnv(2, task="paper12", autoreset_mode="Disabled", judge=WORDS)
    observations, infos = env.reset(seed=3, options={"task": make_task(), "levels": ["procedure"]})
    assert all(make_task().disclosure.procedure[0] in text for text in observations)
    assert infos["level"].tolist() == ["procedure"] * 2
    ended, _, terminated, *_ = env.step(("", ""))
    assert terminated.tolist() == [True, True]
    observations, infos = env.reset(options={"reset_mask": np.array([False, True])})
    assert observations[0] == ended[0] != observations[1]
    with pytest.raises(ResetNeeded, match="the episode of environment 0 is over; call reset"):
        env.step(("", ""))


def test_wrong_actions_are_refused_before_any_turn_and_a_closed_vector_says_so():
    env = ProjectionVectorEnv(2, task=make_task(), judge=WORDS)
    env.reset(seed=1)
    for actions, told in ((("", 3), r"not int \(3, environment 1\)"), (("",), "actions are 2 strings, one for each")):
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
