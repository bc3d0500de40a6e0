"""Measure steps with new texts against the embedder alone."""

from __future__ import annotations

from collections.abc import Callable

import gymnasium as gym
import numpy as np
import torch
from measure import Row, hand_over, ratios, seconds, spread

from inquitree_gym import load_embedder, load_tree
from inquitree_gym.trees import builtin_ids

TREE = "InquiTree-paper12-v0"
NEW_TEXTS = 201
WORDS = 60
READ_TARGET = 1.1
"""Target: maximum ratio to the embedder's own encode."""


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
    hand_over(unseen())
