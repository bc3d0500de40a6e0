"""Compare one environment, in text and with numbered actions, with CartPole; everything said has been seen before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import gymnasium as gym
import numpy as np
from measure import Row, alternate, ratios, spread

from inquitree_gym import make_agent

TREE = "InquiTree-paper12"
ROUNDS = 5
STEPS = 20_000
"""Least steps of a round, including resets between episodes."""
TEXT_TARGET, MENU_TARGET = 2.0, 1.0
"""Targets: minimum ratios to the step rate of CartPole."""
MENU_STEPS = 2_000
"""Least number of menu actions that are drawn; each is played before it is timed."""


def singles() -> Iterator[Row]:
    """Measure text and menu in turn with CartPole."""
    text, menu, cart = gym.make(f"{TREE}-v0"), gym.make(f"{TREE}-menu-v0"), gym.make("CartPole-v1")
    cart.reset(seed=0)
    pushes = [int(push) for push in np.random.default_rng(0).integers(2, size=4_096)]
    ways = {
        "steps with seen text (oracle: subtopic, study, explore, …, conclude)": (text, [recorded("oracle")]),
        "steps with seen text (worst case: every hint, every forced move)": (text, [recorded("worst-case")]),
        "menu steps through `gym.make`, random valid actions": (menu, drawn(menu)),
    }
    tasks: list[Callable[[], float]] = [partial(episode_rate, *way) for way in ways.values()]
    tasks.append(partial(cart_rate, cart, pushes))
    alternate(tasks, 1)
    *ours, theirs = alternate(tasks, ROUNDS)
    for (what, (env, _)), rates in zip(ways.items(), ours, strict=True):
        ratio, target = ratios(rates, theirs), TEXT_TARGET if env is text else MENU_TARGET
        yield Row(
            what, spread(rates).show(",.0f", "/s"), f"CartPole-v1 {spread(theirs).show(',.0f', '/s')}",
            ratio.show(".2f"), f"≥ {target}", ratio.median >= target,
        )  # fmt: skip


def recorded(name: str) -> list[str]:
    """Return the actions of one episode of a baseline."""
    env = gym.make(f"{TREE}-v0", privileged=True)
    observation, info = env.reset(seed=0)
    agent = make_agent(name, env)
    agent.reset(0)
    actions, over = [], False
    while not over:
        actions.append(agent.act(observation, info))
        observation, _, over, _, info = env.step(actions[-1])
    return actions


def drawn(env: gym.Env) -> list[list[int]]:
    """Return the actions of whole episodes under random allowed actions; without fakes no seed matters."""
    rng, episodes, steps = np.random.default_rng(0), [], 0
    while steps < MENU_STEPS:
        actions, over = [], False
        env.reset()
        while not over:
            actions.append(int(rng.choice(np.flatnonzero(env.get_wrapper_attr("action_masks")()))))
            over = env.step(actions[-1])[2]
        episodes.append(actions)
        steps += len(actions)
    return episodes


def episode_rate(env: gym.Env, episodes: Sequence[Sequence[str] | Sequence[int]]) -> float:
    """Return steps per second over whole episodes."""
    steps, times = sum(map(len, episodes)), -(-STEPS // sum(map(len, episodes)))
    begun = time.perf_counter()
    for _ in range(times):
        for actions in episodes:
            env.reset()
            for action in actions:
                over = env.step(action)[2]
            assert over
    return times * steps / (time.perf_counter() - begun)


def cart_rate(env: gym.Env, pushes: Sequence[int]) -> float:
    """Return steps per second under random pushes, over whole episodes."""
    steps = 0
    begun = time.perf_counter()
    while steps < STEPS:
        env.reset()
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(pushes[steps % len(pushes)])
            over = terminated or truncated
            steps += 1
    return steps / (time.perf_counter() - begun)
