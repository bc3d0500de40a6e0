"""Measure steps with cached texts against CartPole, and with new texts against the embedder alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import gymnasium as gym
import numpy as np
import torch
from measure import Row, alternate, hand_over, ratios, seconds, spread

from inquitree_gym import load_embedder, load_tree, make_agent
from inquitree_gym.trees import builtin_ids

TREE = "InquiTree-paper12-v0"
ROUNDS = 101
STEPS = 2_000
"""Steps per round, including resets between episodes."""
NEW_TEXTS = 201
WORDS = 60
STEP_TARGET = 1.0
"""Target: minimum ratio to the step rate of CartPole."""
READ_TARGET = 1.1
"""Target: maximum ratio to the embedder's own encode."""


def seen() -> list[Row]:
    """Step with texts that are in the cache."""
    env = gym.make(TREE)
    mixes = {
        "oracle: subtopic, study, explore, …, conclude": recorded("oracle"),
        "worst case: every hint, every forced move": recorded("worst-case"),
    }
    *ours, theirs = rates_beside_cart([partial(episode_rate, env, actions) for actions in mixes.values()], ROUNDS)
    return [
        Row(
            f"steps with seen text ({mix})",
            spread(rates).show(",.0f", "/s"),
            f"CartPole-v1 {spread(theirs).show(',.0f', '/s')}",
            (ratio := ratios(rates, theirs)).show(".2f"),
            f"≥ {STEP_TARGET}",
            ratio.median >= STEP_TARGET,
        )
        for mix, rates in zip(mixes, ours, strict=True)
    ]


def recorded(name: str) -> list[str]:
    """Return the actions of one episode of a baseline."""
    env = gym.make(TREE, privileged=True)
    observation, info = env.reset(seed=0)
    agent = make_agent(name, env)
    agent.reset(0)
    actions, over = [], False
    while not over:
        actions.append(agent.act(observation, info))
        observation, _, over, _, info = env.step(actions[-1])
    return actions


def episode_rate(env: gym.Env, actions: Sequence[str]) -> float:
    """Return steps per second over whole episodes."""
    episodes = -(-STEPS // len(actions))
    begun = time.perf_counter()
    for _ in range(episodes):
        env.reset()
        for action in actions:
            over = env.step(action)[2]
        assert over
    return episodes * len(actions) / (time.perf_counter() - begun)


def rates_beside_cart(ours: Sequence[Callable[[], float]], rounds: int) -> list[list[float]]:
    """Measure rates in turn with that of CartPole, whose list comes last."""
    cart = gym.make("CartPole-v1")
    cart.reset(seed=0)
    pushes = [int(push) for push in np.random.default_rng(0).integers(2, size=4_096)]
    tasks = [*ours, partial(cart_rate, cart, pushes)]
    alternate(tasks, 1)
    return alternate(tasks, rounds)


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


def unseen() -> list[Row]:
    """Step at the topic with texts that are in no cache."""
    torch.set_num_threads(1)
    env = gym.make(TREE)
    embedder = load_embedder(env.unwrapped.embedder.name)
    texts = iter(new_texts(NEW_TEXTS + 10))
    model = embedder._model  # the very model, without anything of ours around it
    ours, theirs = [], []

    def step(text: str) -> None:
        ours.append(seconds(lambda: env.step(text)))

    def encode(text: str) -> None:
        theirs.append(seconds(lambda: model.encode(text, show_progress_bar=False)))

    for number, text in enumerate(texts):
        env.reset()
        pair: tuple[Callable[[str], None], ...] = (step, encode) if number % 2 else (encode, step)
        for task in pair:
            task(text)
    ratio = ratios(ours[10:], theirs[10:])
    return [
        Row(
            f"step with unseen text of {WORDS} words",
            spread(1e3 * took for took in ours[10:]).show(".2f", "ms"),
            f"the model's own `encode` {spread(1e3 * took for took in theirs[10:]).show('.2f', 'ms')}",
            ratio.show(".3f"),
            f"≤ {READ_TARGET}",
            ratio.median <= READ_TARGET,
        )
    ]


def new_texts(count: int) -> list[str]:
    """Return texts of `WORDS` words, each strung together from random sentences of all trees."""
    rng = np.random.default_rng(0)
    pool = sorted({text for name in builtin_ids() for text in load_tree(name).texts().values()})
    return [" ".join(" ".join(rng.choice(pool, WORDS)).split()[:WORDS]) for _ in range(count)]


if __name__ == "__main__":
    hand_over([*seen(), *unseen()])
