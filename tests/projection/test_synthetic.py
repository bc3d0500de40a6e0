"""A world of its own for every episode in free text; the same worlds and rewards as in the discrete view."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from inquitree_gym.errors import OptionError
from inquitree_gym.projection.synthetic import SyntheticProjectionEnv
from inquitree_gym.seeds import splitmix64
from inquitree_gym.trees import WorldSettings, synthetic_task, tree_seed
from tests.inquiry.test_synthetic import Letters
from tests.trees.test_worlds import deduced

ID, MENU = "ProjectionBench-synthetic-v0", "ProjectionBench-synthetic-menu-v0"


def made(**keywords: Any) -> SyntheticProjectionEnv:
    env = gym.make(ID, **{"embedder": Letters(), **keywords}).unwrapped
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
    shown = [env.reset(seed=2)[0]]
    told = env.task.disclosure
    while True:
        text, _, over, _, _ = env.step("")
        if over:
            break
        shown.append(text)
    assert [told.question in text for text in shown] == [True, True, True]
    assert [told.null_hypothesis in text for text in shown] == [False, True, True]
    assert [all(step in text for step in told.procedure) for text in shown] == [False, False, True]
    assert not any(claim.text in text for claim in told.claims for text in shown)
    assert all(deduced(env.task))


def test_vectors_play_the_worlds_of_single_environments():
    vector = gym.make_vec(ID, 3, embedder=Letters(), claims=2, deducible=0.0, split="test")
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
    )
    for keywords, said in wrong:
        with pytest.raises(OptionError, match=said):
            made(**keywords)


@pytest.mark.weights
@pytest.mark.parametrize("claims", [3, 6])
def test_the_local_judge_pays_for_the_chosen_texts_as_the_discrete_view_does(claims):
    """The options of a world, one per line, are read by embeddings as they are rated without."""
    text = gym.make(ID, claims=claims, form="claims").unwrapped
    menu = gym.make(MENU, claims=claims).unwrapped
    rng = np.random.default_rng(0)
    for seed in range(4):
        text.reset(seed=seed)
        menu.reset(seed=seed)
        for _ in range(3):
            action = rng.integers(3, size=claims)
            projection = menu.projection(action)
            assert text.step(projection)[1] == pytest.approx(menu.step(action)[1]), (seed, projection)


@pytest.mark.weights
def test_the_outcome_of_a_world_earns_nearly_everything_as_a_sentence():
    env = gym.make(ID, claims=4).unwrapped
    earned = []
    for seed in range(4):
        env.reset(seed=seed)
        earned.append(sum(env.step(env.task.disclosure.outcome)[1] for _ in range(3)))
    assert np.mean(earned) >= 0.9
