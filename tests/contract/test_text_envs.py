"""Promises of `TextEnv` to the kinds that stand on it: seeds, and calls that are refused without any effect."""

from __future__ import annotations

import gymnasium as gym
import pytest

from inquitree_gym.envs.text import TextEnv
from inquitree_gym.errors import OptionError
from inquitree_gym.seeds import seed_of_agent, splitmix64
from tests.contract.conftest import CASES, KindCase

TEXT_CASES = [case for case in CASES.values() if issubclass(type(case.make()), TextEnv)]


@pytest.fixture(params=TEXT_CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> KindCase:
    return request.param


def test_the_kth_unseeded_episode_is_seeded_by_the_first_seed_and_k(case: KindCase):
    env = case.make()
    for first in (7, 2**63, 8):
        env.reset(seed=first)
        assert env.state.seed == env.episode_seed == first
        for k in (1, 2, 3):
            env.step(case.actions[0])
            env.reset()
            assert env.state.seed == splitmix64(first, k)
            assert env.agent_seed == seed_of_agent(env.state.seed, case.task.id)


def test_a_refused_reset_is_no_episode(case: KindCase):
    env = case.make()
    env.reset(seed=3)
    env.step(case.actions[0])
    with pytest.raises(OptionError):
        env.reset(options=dict.fromkeys(case.other_rules, "of no kind"))
    with pytest.raises(gym.error.Error, match="-1"):
        env.reset(seed=-1)
    assert env.step(case.actions[1])[4]["turn"] == 2
    env.reset()
    assert env.state.seed == splitmix64(3, 1)


def test_unknown_names_and_render_modes_are_refused(case: KindCase):
    with pytest.raises(OptionError, match=r"render_mode must be one of .*ansi.* got 'svg'"):
        case.make(render_mode="svg")
    with pytest.raises(
        OptionError, match=r"unknown option 'promts' \(did you mean 'prompts'\?\); the environment takes: "
    ):
        case.make(promts="paper")
    for name in ("embedder", "privileged", "seed", "judge"):
        with pytest.raises(OptionError, match=f"unknown option '{name}'.*reset takes: {case.make().task_option}, "):
            case.make().reset(options={name: "x"})
