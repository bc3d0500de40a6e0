"""Environments of every kind under Gymnasium's interface: alone, in a loop, in other processes and batched."""

from __future__ import annotations

import copy
import pickle
import sys
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from inquitree_gym import FreeText
from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.text_limits import MAX_OBSERVATION
from tests.contract.conftest import SEED, KindCase
from tests.inquiry.test_batch import LETTERS
from tests.inquiry.test_vector import rows, single

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def episode(env: Any, seed: int | None, actions: Any, options: Any = None) -> list[tuple]:
    """What reset and every step returned, up to the end of the episode."""
    steps: list[tuple] = [env.reset(seed=seed, options=options)]
    for action in actions:
        steps.append(env.step(action))
        if steps[-1][2] or steps[-1][3]:
            break
    return steps


def header(env: Any) -> Any:
    return env.unwrapped.records.header(agent={}, versions={}, started="")


def test_the_checker_finds_no_fault(kind_case: KindCase, capsys: pytest.CaptureFixture[str]):
    check_env(kind_case.make(), skip_render_check=True)
    assert capsys.readouterr().err == ""


def test_the_checker_of_a_registered_environment_needs_no_matplotlib(monkeypatch: pytest.MonkeyPatch):
    for name in list(sys.modules):
        if name.partition(".")[0] == "matplotlib":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    env = gym.make("InquiTree-paper2-v0", embedder=LETTERS)
    check_env(env.unwrapped)
    assert env.unwrapped.metadata["render_modes"] == ["ansi", "human"]
    drawn = gym.make("InquiTree-paper2-v0", embedder=LETTERS, render_mode="rgb_array")
    assert "rgb_array" in drawn.metadata["render_modes"], "the advice comes from render()"


def test_actions_and_observations_are_free_text_and_infos_plain_and_fresh(kind_case: KindCase):
    env = kind_case.make()
    assert isinstance(env.action_space, FreeText)
    assert env.observation_space.max_length <= MAX_OBSERVATION
    steps = episode(env, SEED, kind_case.actions)
    assert len(steps) == len(kind_case.actions) + 1
    assert steps[-1][2]
    for step in steps:
        assert step[0] in env.observation_space
        assert all(type(value) in (str, int, float, bool, type(None)) for value in step[-1].values())
        assert {"state", "turn"} <= step[-1].keys()
    assert [step[-1]["turn"] for step in steps] == list(range(len(steps)))
    assert len({id(step[-1]) for step in steps}) == len(steps)
    assert 0 < sum(step[1] for step in steps[1:]) <= 1
    assert env.action_space.contains("")


def test_one_seed_gives_one_episode_and_an_unseeded_one_can_be_had_again(kind_case: KindCase):
    env, other = kind_case.make(), kind_case.make()
    first = episode(env, SEED, kind_case.actions)
    episode(env, SEED + 1, kind_case.actions)
    assert episode(env, SEED, kind_case.actions) == first == episode(other, SEED, kind_case.actions)
    unseeded = kind_case.make()
    played = episode(unseeded, None, kind_case.actions)
    assert episode(other, header(unseeded).seed, kind_case.actions) == played
    assert unseeded.records.agent_seed == other.records.agent_seed


@pytest.mark.parametrize("how", [lambda env: pickle.loads(pickle.dumps(env)), copy.deepcopy], ids=["pickle", "copy"])
@pytest.mark.parametrize("taken", [None, 0, 2])
def test_a_copy_goes_on_identically(kind_case: KindCase, how: Any, taken: int | None):
    env = kind_case.make()
    if taken is not None:
        episode(env, SEED, kind_case.actions[:taken])
    other = how(env)
    rest = () if taken is None else kind_case.actions[taken:]
    assert [other.step(action) for action in rest] == [env.step(action) for action in rest]
    assert episode(other, 5, kind_case.actions) == episode(env, 5, kind_case.actions)


def test_options_hold_for_one_episode_go_before_keywords_and_are_never_changed(kind_case: KindCase):
    rules = dict(kind_case.other_rules)
    env, as_keyword = kind_case.make(), kind_case.make(**rules)
    plain = episode(env, SEED, kind_case.actions)
    changed = episode(env, SEED, kind_case.actions, rules)
    assert rules == kind_case.other_rules
    assert header(env).rules.items() >= rules.items()
    assert changed == episode(as_keyword, SEED, kind_case.actions)
    assert episode(env, SEED, kind_case.actions) == plain
    assert header(env).rules != header(as_keyword).rules


def test_what_is_refused_changes_nothing(kind_case: KindCase):
    env = kind_case.make()
    env.reset(seed=SEED)
    with pytest.raises(OptionError, match="unknown option 'gravity'"):
        env.reset(options={"gravity": 9.81})
    for action in (3, None, b"text"):
        with pytest.raises(ActionError, match=f"an action must be a string, got {type(action).__name__}"):
            env.step(action)
    steps = [env.step(action) for action in kind_case.actions]
    assert steps == episode(kind_case.make(), SEED, kind_case.actions)[1:]


def test_before_reset_after_the_end_and_after_close_the_error_says_what_to_do(kind_case: KindCase):
    env = kind_case.make()
    with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
        env.step("")
    episode(env, SEED, kind_case.actions)
    with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
        env.step("")
    env.reset(seed=SEED)
    env.close()
    for use in (lambda: env.reset(), lambda: env.step("")):
        with pytest.raises((ClosedEnvironmentError, ResetNeeded)):
            use()
    with pytest.raises(ClosedEnvironmentError, match="make another one"):
        env.reset()


def vector(case: KindCase, way: str, mode: AutoresetMode) -> VectorEnv:
    makers = [partial(case.make_env, case.task)] * 3
    if way == "own":
        assert case.make_vector is not None
        return case.make_vector(3, autoreset_mode=mode)
    return {"sync": SyncVectorEnv, "async": AsyncVectorEnv}[way](makers, autoreset_mode=mode)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP], ids=str)
@pytest.mark.parametrize("way", ["sync", "async", "own"])
def test_every_way_gives_the_same_episodes(kind_case: KindCase, way: str, mode: AutoresetMode):
    if way == "own" and kind_case.make_vector is None:
        pytest.skip("has no vector environment of its own")
    course = [*kind_case.actions, "", *kind_case.actions, "x"]
    script = [(course[i], course[i // 2], course[-i]) for i in range(len(course))]
    same_step = mode == AutoresetMode.SAME_STEP
    expected = [list(single(kind_case.make, [step[i] for step in script], SEED + i, same_step)) for i in range(3)]
    env = vector(kind_case, way, mode)
    assert rows(env, script, SEED) == expected
    env.close()
    assert max(step[1] or 0 for steps in expected for step in steps) > 0
    assert sum(bool(step[2]) for step in expected[0]) >= 2


@pytest.mark.parametrize("way", ["sync", "own"])
def test_options_and_masks_reach_every_environment_of_a_vector(kind_case: KindCase, way: str):
    if way == "own" and kind_case.make_vector is None:
        pytest.skip("has no vector environment of its own")
    env = vector(kind_case, way, AutoresetMode.DISABLED)
    observations, _ = env.reset(seed=SEED, options=dict(kind_case.other_rules))
    assert observations[0] == kind_case.make(**kind_case.other_rules).reset(seed=SEED)[0]
    moved, *_ = env.step((kind_case.actions[0],) * 3)
    again, _ = env.reset(options={"reset_mask": np.array([False, True, False])})
    assert (again[0], again[2]) == (moved[0], moved[2])
    assert again[1] == kind_case.make().reset(seed=SEED)[0]
    env.close()


def test_gymnasium_makes_it_by_its_id(kind_case: KindCase):
    name = {
        "inquiry": "InquiTree-v0",
        "projection": "ProjectionBench-v0",
        "exploration": "SciExplore-v0",
        "toy": "Toy-v0",
    }[kind_case.name]
    env = gym.make(name)
    assert env.unwrapped.kind == kind_case.name
    assert env.reset(seed=1)[0] == env.reset(seed=1)[0]
    env.close()
