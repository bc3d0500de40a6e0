"""A world of its own for every episode, in free text."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from inquitree_gym.errors import OptionError
from inquitree_gym.projection.synthetic import SyntheticProjectionEnv
from inquitree_gym.seeds import splitmix64
from inquitree_gym.trees import WorldSettings, synthetic_task, tree_seed
from tests.projection.tasks import reply
from tests.trees.test_worlds import deduced

ID, MENU = "ProjectionBench-synthetic-v0", "ProjectionBench-synthetic-menu-v0"


def made(**keywords: Any) -> SyntheticProjectionEnv:
    env = gym.make(ID, **keywords).unwrapped
    assert isinstance(env, SyntheticProjectionEnv)
    return env


@pytest.mark.parametrize("make", [made, lambda **keywords: gym.make(MENU, **keywords).unwrapped], ids=["text", "menu"])
def test_the_world_of_an_episode_follows_from_its_seed(make):
    env = make(split="test", claims=(2, 3), deducible=0.5)
    chosen = WorldSettings(claims=(2, 3), deducible=0.5)
    env.reset(seed=40)
    assert env.task == synthetic_task(tree_seed(40, "test"), chosen)
    for number in (1, 2):
        env.reset()
        assert env.task == synthetic_task(tree_seed(splitmix64(40, number), "test"), chosen)
    one, other = make(), make()
    for env in (one, other):
        env.reset()
    assert one.task != other.task, "without a seed episodes differ"


def test_an_episode_discloses_the_world_level_by_level_and_the_signs_with_the_procedure():
    env = made(claims=4)
    shown, over = [env.reset(seed=2)[0]], False
    told = env.task.disclosure
    while not over:
        sheet = env.step("It rises.")[0]
        assert all(text in sheet for claim in told.claims for text in (claim.text, *claim.contraries))
        text, gain, over, *_ = env.step(reply(env, (0,) * 4))
        shown.append(text)
    assert gain == 1
    assert [told.question in text for text in shown] == [True, True, True, False]
    assert [told.null_hypothesis in text for text in shown] == [False, True, True, False]
    assert [all(step in text for step in told.procedure) for text in shown] == [False, False, True, False]
    assert not any(claim.text in text for claim in told.claims for text in shown)
    assert all(deduced(env.task))
    assert {len(claim.contraries) for claim in told.claims} == {1}


def test_vectors_play_the_worlds_of_single_environments():
    vector = gym.make_vec(ID, 3, claims=2, deducible=0.0, split="test")
    texts, _ = vector.reset(seed=7)
    env = made(claims=2, deducible=0.0, split="test")
    assert list(texts) == [env.reset(seed=7 + i)[0] for i in range(3)]
    assert vector.step(("It rises.",) * 3)[4]["turn"].tolist() == [1, 1, 1]


def test_gymnasium_finds_no_fault_and_wrong_keywords_are_named():
    check_env(made(claims=2, render_mode="ansi"))
    wrong = (
        ({"deducible": 2}, "deducible must be a number from 0 to 1"),
        ({"split": "dev"}, "split must be one"),
        ({"task": "paper12"}, "a synthetic projection makes its own tasks"),
        ({"embedder": "all-MiniLM-L6-v2"}, "unknown option 'embedder'"),
    )
    for keywords, said in wrong:
        with pytest.raises(OptionError, match=said):
            made(**keywords)


def test_another_task_can_be_played_for_one_episode():
    env = made(claims=2)
    env.reset(seed=1, options={"task": "paper12", "levels": ["null"]})
    assert env.task.id == "paper12"
    env.step("It rises.")
    assert env.step(reply(env, (0,) * len(env.task.claims)))[1:3] == (1.0, True)
    env.reset()
    assert env.task.id.startswith("world-")
