"""Ours: the paper 12 tree as text, as a menu, as a batch, and as text that has to be read anew."""

from __future__ import annotations

import sys
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from pace import Stretch, serve

sys.path.insert(1, str(Path(__file__).parents[1]))
from single import recorded
from stepping import TREE, WORDS, new_texts

MENU = "InquiTree-paper12-menu-v0"
EPISODES = 16
"""Episodes of random menu actions that are drawn beforehand and played in turn."""
WIDTH = 1_024
"""Inquiries of the batch environment."""
ROWS = 64
"""Rows of random actions for it that are drawn beforehand and taken in turn."""


def text() -> Stretch:
    """Say what the oracle says: texts that have been read before."""
    env, actions = gym.make(TREE), recorded("oracle")

    def episode() -> int:
        env.reset()
        for action in actions:
            env.step(action)
        return len(actions)

    return episode


def menu() -> Stretch:
    """Take actions again that were drawn at random among those which the mask allowed."""
    env, draw = gym.make(MENU), np.random.default_rng(0)
    masks = env.get_wrapper_attr("action_masks")
    episodes: list[list[int]] = []
    for _ in range(EPISODES):
        env.reset()
        actions, over = [], False
        while not over:
            actions.append(int(draw.choice(np.flatnonzero(masks()))))
            over = env.step(actions[-1])[2]
        episodes.append(actions)
    numbers = count()

    def episode() -> int:
        env.reset()
        actions = episodes[next(numbers) % EPISODES]
        for action in actions:
            env.step(action)
        return len(actions)

    return episode


def batch(**keywords: Any) -> Stretch:
    """Take random actions, whether the mask allows them or not, in every inquiry of the batch environment.

    Played for a while beforehand: the first conclusions that are drawn have to be embedded.
    """
    env = gym.make_vec(MENU, num_envs=WIDTH, vectorization_mode="vector_entry_point", **keywords)
    env.reset(seed=0)
    env.action_space.seed(0)
    rows, at = [env.action_space.sample() for _ in range(ROWS)], 0
    for row in rows * 4:
        env.step(row)

    def step() -> int:
        nonlocal at
        env.step(rows[at % ROWS])
        at += 1
        return WIDTH

    return step


def unseen() -> Stretch:
    """Propose what was never said before, at the topic: every step embeds its text with MiniLM, on one thread."""
    env, words, starts = gym.make(TREE), " ".join(new_texts(100)).split(), count()

    def step() -> int:
        start = next(starts)
        if start + WORDS > len(words):
            raise RuntimeError(f"out of new texts after {start}; measure for fewer seconds")
        env.reset()
        env.step(" ".join(words[start : start + WORDS]))
        return 1

    return step


SETTINGS = {
    "text": text,
    "menu": menu,
    "batch": batch,
    "batch-index": partial(batch, observation="index", infos=False),
    "unseen": unseen,
}

if __name__ == "__main__":
    serve(SETTINGS, ["inquitree-gym", "gymnasium", "numpy", "torch", "sentence-transformers"])
