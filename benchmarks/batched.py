"""Compare 64 inquiries that embed their new texts in one batch with the embedder alone."""

from __future__ import annotations

from collections.abc import Iterator

import gymnasium as gym
import torch
from measure import Row, hand_over, ratios, seconds, spread
from stepping import WORDS, new_texts

from inquitree_gym import load_embedder
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, Embedder
from inquitree_gym.errors import EmbedderError

WIDTH = 64
ROUNDS = {DEFAULT_EMBEDDER: 8, f"static:{DEFAULT_EMBEDDER}": 60}
"""Steps measured per embedder."""
TARGETS = {DEFAULT_EMBEDDER: 0.95}
"""Target: minimum ratio to the embedder's own rate on the same texts."""
STATIC_TARGET = 100
"""Target: minimum ratio to the rate of the default embedder."""


def batched() -> Iterator[Row]:
    """Step at the topic with texts that are in no cache."""
    torch.set_num_threads(1)
    rates: dict[str, float] = {}
    for name, rounds in ROUNDS.items():
        embedder = load_embedder(name)
        try:
            embedder.embed(["loads the weights"])
        except EmbedderError as error:
            yield Row(f"batched steps, {name}", f"not measured: {error}")
            continue
        ours, theirs = stepped(embedder, rounds)
        ratio = ratios(ours, theirs)
        rates[name] = spread(ours).median
        yield Row(
            f"batched text steps at {WIDTH}, new texts of {WORDS} words, {name}",
            spread(ours).show(",.0f", "/s"),
            f"the embedder alone, batches of {WIDTH}: {spread(theirs).show(',.0f', '/s')}",
            ratio.show(".3f"),
            f"≥ {TARGETS[name]}" if name in TARGETS else "–",
            ratio.median >= TARGETS[name] if name in TARGETS else None,
        )
    if len(rates) == len(ROUNDS):
        default, static = rates.values()
        yield Row(
            "batched text steps, static over the default", f"{static:,.0f} /s", f"{default:,.0f} /s",
            f"{static / default:.0f}", f"≥ {STATIC_TARGET}", static / default >= STATIC_TARGET,
        )  # fmt: skip


def stepped(embedder: Embedder, rounds: int, width: int = WIDTH) -> tuple[list[float], list[float]]:
    """Return texts per second for steps and for the embedder alone, on the same texts, by round."""
    env = gym.make_vec("InquiTree-paper12-v0", width, embedder=embedder, max_turns=None)
    env.reset(seed=0)
    texts = new_texts((rounds + 1) * width)
    batches = [tuple(texts[i : i + width]) for i in range(0, len(texts), width)]
    env.step(batches[0])
    ours, theirs = [], []
    for number, batch in enumerate(batches[1:]):
        tasks = [(ours, lambda b=batch: env.step(b)), (theirs, lambda b=batch: embedder.embed(b))]
        for rates, task in tasks if number % 2 else reversed(tasks):
            rates.append(width / seconds(task))
    return ours, theirs


if __name__ == "__main__":
    hand_over(batched())
