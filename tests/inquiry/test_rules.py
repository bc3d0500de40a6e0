"""Wrappers that set a rule, and all wrappers together in any order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

from inquitree_gym import InquiryEnv, load_tree
from inquitree_gym.errors import OptionError
from inquitree_gym.wrappers import FakeResults, LogEpisodes, RewardShaping, Transcript, TurnLimit
from tests.inquiry.test_inquiry import script, trajectory

ACTIONS = script(load_tree("paper12"))
CHAIN = {
    FakeResults: {"level": 7},
    TurnLimit: {"turns": 9},
    RewardShaping: {"gamma": 0.9, "coverage": 0.5, "hint": 0.25, "turn": 0.125, "spotted_fake": 2.0},
    Transcript: {"system": "You are a scientist.", "keep": 2},
    LogEpisodes: {"agent": {"name": "script"}},
}


def wrapped(order: list[type], env: gym.Env | None = None) -> gym.Env:
    """Wrap an inquiry, the first of ``order`` innermost."""
    env = gym.make("InquiTree-paper12-v0", privileged=True) if env is None else env
    for wrapper in order:
        env = wrapper(env, **CHAIN[wrapper])
    return env


def layer(env: gym.Env, kind: type) -> Any:
    while not isinstance(env, kind):
        env = env.env
    return env


@pytest.mark.parametrize(
    ("wrapper", "value", "rule"),
    [
        (FakeResults, 10, "fake_level"), (FakeResults, 4, "fake_level"), (FakeResults, 0, "fake_level"),
        (TurnLimit, 3, "max_turns"), (TurnLimit, 12, "max_turns"), (TurnLimit, None, "max_turns"),
        (TurnLimit, "n+2", "max_turns"),
    ],
)  # fmt: skip
def test_a_wrapper_means_the_same_as_keyword_and_option(wrapper: type, value: Any, rule: str, reader):
    keyword = trajectory(InquiryEnv("paper12", privileged=True, **{rule: value}), 3, ACTIONS)
    option = trajectory(InquiryEnv("paper12", privileged=True), 3, ACTIONS, {rule: value})
    other = {"fake_level": 2, "max_turns": 5}[rule]
    over = wrapper(InquiryEnv("paper12", privileged=True, **{rule: other}), value)
    assert trajectory(over, 3, ACTIONS) == keyword == option
    assert over.unwrapped.episode_rules.as_dict()[rule] == value


@pytest.mark.parametrize("wrapper", [FakeResults, TurnLimit])
def test_an_option_goes_before_a_wrapper_for_one_episode(wrapper: type, reader):
    rule = {FakeResults: "fake_level", TurnLimit: "max_turns"}[wrapper]
    env = wrapper(InquiryEnv("paper12"), 6)
    env.reset(seed=1, options={rule: 2})
    assert env.unwrapped.episode_rules.as_dict()[rule] == 2
    env.reset()
    assert env.unwrapped.episode_rules.as_dict()[rule] == 6
    env.reset(options={"reruns": "match"})
    assert env.unwrapped.episode_rules.as_dict()[rule] == 6
    assert env.unwrapped.episode_rules.reruns == "match"


def test_the_outer_of_two_wrappers_of_a_kind_goes_first(reader):
    env = FakeResults(FakeResults(InquiryEnv("paper12"), 9), 1)
    env.reset(seed=1)
    assert env.unwrapped.episode_rules.fake_level == 1


@pytest.mark.parametrize(
    ("wrapper", "value", "told"),
    [
        *(
            (FakeResults, level, "fake_level must be an integer from 0 to 10")
            for level in (-1, 11, 2.0, "3", True, None)
        ),
        *((TurnLimit, turns, "max_turns must be an integer from 1") for turns in (0, -3, 2.5, "many", False)),
    ],
)
def test_a_value_out_of_range_is_refused_at_once(wrapper: type, value: Any, told: str):
    with pytest.raises(OptionError, match=f"{told}.* (not|got) {value!r}"):
        wrapper(InquiryEnv("paper12"), value)


ORDERS = {
    "as listed": list(CHAIN),
    "reversed": list(CHAIN)[::-1],
    "mixed": [LogEpisodes, RewardShaping, TurnLimit, Transcript, FakeResults],
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
@pytest.mark.parametrize("seed", [3, 8])
def test_all_wrappers_together_do_what_each_does_alone(order: list[type], seed: int, reader):
    bare = trajectory(InquiryEnv("paper12", privileged=True, fake_level=7, max_turns=9), seed, ACTIONS)
    shaping = RewardShaping(
        InquiryEnv("paper12", privileged=True, fake_level=7, max_turns=9), **CHAIN[RewardShaping]
    )  # fmt: skip
    shaped = trajectory(shaping, seed, ACTIONS)
    env = wrapped(order)
    assert trajectory(env, seed, ACTIONS) == shaped
    assert [(step[0], *step[2:]) for step in shaped[1:]] == [(step[0], *step[2:]) for step in bare[1:]]
    outside = order.index(LogEpisodes) > order.index(RewardShaping)
    logged = layer(env, LogEpisodes).episode
    assert [turn.reward for turn in logged.turns] == [step[1] for step in (shaped if outside else bare)[1:]]
    assert logged.header.rules["fake_level"] == 7
    assert logged.header.agent == {"name": "script"}
    assert logged.status == "concluded"
    messages = layer(env, Transcript).messages
    assert [message["content"] for message in messages] == [
        "You are a scientist.", bare[0][0], *(x for i in (-2, -1) for x in (ACTIONS[len(bare) - 1 + i], bare[i][0])),
    ]  # fmt: skip


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
def test_a_spec_with_wrappers_makes_them_again(order: list[type], reader):
    env = wrapped(order)
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert trajectory(again, 3, ACTIONS) == trajectory(env, 3, ACTIONS)
    assert layer(again, Transcript).messages == layer(env, Transcript).messages
    assert str(again) == str(env)
    assert [type(one) for one, _ in pairwise_layers(again)] == [type(one) for one, _ in pairwise_layers(env)]


def pairwise_layers(env: gym.Env) -> list[tuple[gym.Env, gym.Env]]:
    layers = [env]
    while isinstance(layers[-1], gym.Wrapper):
        layers.append(layers[-1].env)
    return list(pairwise(layers))
