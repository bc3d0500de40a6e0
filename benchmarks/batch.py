"""Compare the array environment with Gymnasium's vectorised CartPole, and measure how its cost grows.

Actions are drawn beforehand from the whole menu, masked or not. Before anything is timed the environment is played for
a while, since a conclusion that is said too early for the first time has to be embedded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from measure import Row, Spread, alternate, hand_over, ratios, seconds, spread

from inquitree_gym import load_tree
from inquitree_gym.trees import Difficulty, Tree, synthetic_tree

TREE = load_tree("paper12")
WIDTHS = (1_024, 16_384)
GROWING_WIDTHS = (1, 16, 256, 1_024, 4_096, 16_384)
SIZES = (5, 50, 500)
"""Numbers of subtopics at which the cost of a larger tree is measured."""
ROUNDS = 41
INQUIRIES_A_ROUND = 100_000
"""Minimum of steps times inquiries in a round; a round has at least ten steps."""
WARM_UP = 300
ROWS = 64
"""Number of random action arrays, used in rotation."""
VIEWS: dict[str, tuple[dict[str, Any], float | None]] = {
    "index observations, infos=False": ({"observation": "index", "infos": False}, 1.0),
    "index observations": ({"observation": "index"}, None),
    "features, infos=False": ({"infos": False}, 0.5),
    "features": ({}, None),
    "features of 64 coefficients, infos=False, copy=False": ({"text_dim": 64, "infos": False, "copy": False}, 0.5),
}
"""Keywords, each with its target as a multiple of CartPole's rate."""


class Words:
    """A nearly free embedder; the time of a step does not depend on the vectors."""

    name, dim, threshold, digest = "words", 64, 0.6, "4" * 64

    def __init__(self) -> None:
        self._rows: dict[str, np.ndarray] = {}

    def embed(self, texts: list[str]) -> np.ndarray:
        """See `Embedder.embed`."""
        rows = np.array([sum(map(self._row, text.split()), np.full(self.dim, 1e-3)) for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def _row(self, word: str) -> np.ndarray:
        if word not in self._rows:
            self._rows[word] = np.random.default_rng(list(word.encode())).standard_normal(self.dim)
        return self._rows[word]


def made(width: int, tree: Tree = TREE, **keywords: Any) -> gym.vector.VectorEnv:
    """Make and reset an environment."""
    env = gym.make_vec("InquiTree-menu-v0", width, vectorization_mode="vector_entry_point", tree=tree, **keywords)
    env.reset(seed=0)
    return env


def stepping(env: gym.vector.VectorEnv, actions: int) -> Callable[[], float]:
    """Return a function that plays one round of random actions and returns single-inquiry steps per second."""
    rows = np.random.default_rng(0).integers(actions, size=(ROWS, env.num_envs))
    steps = max(10, INQUIRIES_A_ROUND // env.num_envs)

    def go(count: int) -> None:
        for number in range(count):
            env.step(rows[number % ROWS])

    go(WARM_UP)
    return lambda: steps * env.num_envs / seconds(partial(go, steps))


def against_cart() -> Iterator[Row]:
    """Compare with CartPole at equal numbers of environments, in alternating rounds."""
    for width in WIDTHS:
        cart = gym.make_vec("CartPole-v1", width, vectorization_mode="vector_entry_point")
        cart.reset(seed=0)
        envs = [made(width, **keywords) for keywords, _ in VIEWS.values()]
        tasks = [stepping(cart, 2), *(stepping(env, int(env.single_action_space.n)) for env in envs), copying(width)]
        theirs, *ours, copied = alternate(tasks, ROUNDS)
        for (what, (_, target)), rates in zip(VIEWS.items(), ours, strict=True):
            ratio = ratios(rates, theirs)
            yield Row(
                f"batch of {width:,}, {what}",
                millions(spread(rates)),
                f"CartPole-v1, same width: {millions(spread(theirs))}",
                ratio.show(".2f"),
                "–" if target is None else f"≥ {target}",
                None if target is None else ratio.median >= target,
            )
        yield Row(
            f"{width:,} feature rows copied from a table by NumPy alone",
            millions(spread(copied)),
            "CartPole-v1, same width",
            ratios(copied, theirs).show(".2f"),
        )


def copying(width: int) -> Callable[[], float]:
    """Return a function that only writes full-feature observations for a round, the upper limit of any environment."""
    rng = np.random.default_rng(0)
    table = rng.random((64, made(1).single_observation_space.shape[0]), np.float32)
    texts, out = rng.integers(64, size=width), np.empty((width, table.shape[1]), np.float32)
    steps = max(10, INQUIRIES_A_ROUND // width)

    def go() -> None:
        for _ in range(steps):
            table.take(texts, axis=0, out=out, mode="clip")

    return lambda: steps * width / seconds(go)


def millions(rates: Spread) -> str:
    """Format rates in millions per second."""
    return Spread(*(rate / 1e6 for rate in rates)).show(".1f", "M/s")


def growing() -> Iterator[Row]:
    """Measure steps with more inquiries and with larger trees."""
    keywords = {"observation": "index", "infos": False}
    tasks = [stepping(made(width, **keywords), TREE_ACTIONS) for width in GROWING_WIDTHS]
    for width, rates in zip(GROWING_WIDTHS, alternate(tasks, ROUNDS), strict=True):
        yield Row(f"step of {width:,} inquiries into {TREE.id}", took(rates, width))
    trees = [synthetic_tree(1, Difficulty(subtopics=size)) for size in SIZES]
    envs = [made(WIDTHS[-1], tree, embedder=Words(), **keywords) for tree in trees]
    # Without the conclusion: in a large tree nearly every one is new, and what that takes is for the embedder to say.
    tasks = [stepping(env, int(env.single_action_space.n) - 1) for env in envs]
    for size, rates in zip(SIZES, alternate(tasks, ROUNDS // 4), strict=True):
        yield Row(f"step of {WIDTHS[-1]:,} inquiries into a tree of {size} subtopics", took(rates, WIDTHS[-1]))


TREE_ACTIONS = len(TREE.subtopics) + len(TREE.studies) + 4


def took(rates: list[float], width: int) -> str:
    """Format the time of one step, for all inquiries and for a single one."""
    whole = spread(1e6 * width / rate for rate in rates).show(",.0f", "µs")
    return f"{whole}; {spread(1e9 / rate for rate in rates).median:,.0f} ns for each"


def memory() -> Iterator[Row]:
    """Report the memory of one inquiry."""
    for tree in (TREE, *(synthetic_tree(1, Difficulty(subtopics=size)) for size in SIZES)):
        env = made(WIDTHS[0], tree, embedder=Words(), observation="index")
        nodes = f"{len(tree.subtopics)} subtopics and {len(tree.studies)} studies"
        shown = env.single_observation_space.shape[0] * 8
        yield Row(
            f"memory per inquiry into a tree of {nodes}",
            f"{env.unwrapped.nbytes / env.num_envs:,.0f} B, and {shown} B of index observation",
        )


if __name__ == "__main__":
    hand_over([*against_cart(), *growing(), *memory()])
