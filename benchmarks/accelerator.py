"""Compare steps whose texts are embedded on a CUDA device with the embedder alone, and its vectors with the CPU's."""

from __future__ import annotations

from collections.abc import Iterator

import gymnasium as gym
import numpy as np
from batched import stepped
from measure import Row, hand_over, ratios, seconds, spread
from stepping import WORDS, new_texts

from inquitree_gym import load_embedder, load_tree
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, Embedder
from inquitree_gym.errors import EmbedderError

WIDTH, BATCHES, STEPS = 1_024, 8, 200
BATCHED_TARGET, SINGLE_TARGET, DIFFERENCE_TARGET = 0.95, 0.9, 1e-5


def accelerated() -> Iterator[Row]:
    """Measure the default embedder on CUDA; one row says so if there is no device."""
    try:
        embedder = load_embedder(DEFAULT_EMBEDDER, device="cuda")
        embedder.embed(["loads the weights"])
    except EmbedderError as error:
        yield Row("steps on an accelerator", f"not measured: {error}")
        return
    ours, theirs = stepped(embedder, BATCHES, WIDTH)
    ratio = ratios(ours, theirs)
    yield Row(
        f"batched text steps at {WIDTH:,} on CUDA, new texts of {WORDS} words", spread(ours).show(",.0f", "/s"),
        f"the embedder alone: {spread(theirs).show(',.0f', '/s')}", ratio.show(".3f"), f"≥ {BATCHED_TARGET}",
        ratio.median >= BATCHED_TARGET,
    )  # fmt: skip
    ours, theirs = single(embedder)
    ratio = ratios(ours, theirs)
    yield Row(
        f"single text steps on CUDA, new texts of {WORDS} words", spread(ours).show(",.0f", "/s"),
        f"the embedder alone: {spread(theirs).show(',.0f', '/s')}", ratio.show(".3f"), f"≥ {SINGLE_TARGET}",
        ratio.median >= SINGLE_TARGET,
    )  # fmt: skip
    largest = difference(embedder, load_embedder(DEFAULT_EMBEDDER))
    yield Row(
        "largest difference of a similarity, CUDA and CPU", f"{largest:.1e}", target=f"≤ {DIFFERENCE_TARGET:g}",
        met=largest <= DIFFERENCE_TARGET,
    )  # fmt: skip


def single(embedder: Embedder) -> tuple[list[float], list[float]]:
    """Return texts per second for single steps and for the embedder alone, on different new texts."""
    env = gym.make("InquiTree-paper12-v0", embedder=embedder, max_turns=None)
    env.reset(seed=0)
    texts = iter(new_texts(2 * STEPS + 1))
    env.step(next(texts))
    ours, theirs = [], []
    for number in range(STEPS):
        tasks = [(ours, env.step), (theirs, lambda text: embedder.embed([text]))]
        for rates, task in tasks if number % 2 else reversed(tasks):
            text = next(texts)
            rates.append(1 / seconds(lambda task=task, text=text: task(text)))
    return ours, theirs


def difference(one: Embedder, other: Embedder) -> float:
    """Return the largest difference of the similarities of all texts of a tree."""
    texts = list(load_tree("paper12").texts().values())
    first, second = one.embed(texts), other.embed(texts)
    return float(np.abs(first @ first.T - second @ second.T).max())


if __name__ == "__main__":
    hand_over(accelerated())
