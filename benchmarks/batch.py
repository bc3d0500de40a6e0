"""Compare the array environment and single ones with CartPole, and measure starts, fakes, growth and memory.

Actions are drawn beforehand and uniformly from the whole menu, masked or not. Every environment is played for 300 steps
before it is timed, so that its inquiries stand at different turns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

# Before NumPy: where other work takes the cores, threads of small products wait for each other.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import gymnasium as gym
import numpy as np
from measure import Row, Spread, alternate, fresh, hand_over, ratios, seconds, spread
from single import singles

from inquitree_gym import load_tree
from inquitree_gym.trees import Difficulty, Tree, synthetic_tree

TREE = load_tree("paper12")
WIDTHS = (1_024, 16_384)
GROWING_WIDTHS = (1, 16, 256, 1_024, 4_096, 16_384)
SIZES = (5, 50, 500)
"""Numbers of subtopics at which the cost of a larger tree is measured."""
ROUNDS = 5
INQUIRIES_A_ROUND = 1_000_000
"""Minimum of steps times inquiries in a round; a round has 10 to 10,000 steps."""
WARM_UP = 300
ROWS = 64
"""Number of random action arrays, used in rotation."""
VIEWS: dict[str, tuple[dict[str, Any], tuple[float, float] | None]] = {
    "index observations, infos=False": ({"observation": "index", "infos": False}, None),
    "index observations": ({"observation": "index"}, (3.0, 1.7)),
    "index observations, threads=2": ({"observation": "index", "threads": 2}, None),
    "features, infos=False": ({"infos": False}, None),
    "features": ({}, (1.5, 0.85)),
    "features of 64 coefficients, infos=False, copy=False": ({"text_dim": 64, "infos": False, "copy": False}, None),
}
"""Keywords, each with its targets as multiples of CartPole's rate, by width. Infos have the masks."""
FAKE_LEVEL, FAKE_TARGET = 3, 0.9
FIRST_TARGETS = {"code cached": 0.3, "code not cached": 25.0}
"""Targets in seconds."""
FIRST_ROUNDS = 3
MEMORY_TARGET, MEMORY_SUBTOPICS = 2_000, 10
"""Most bytes of an inquiry, for trees of so many subtopics."""
FIRST = """
import json, sys, time
import gymnasium as gym, numpy as np
import inquitree_gym
env = gym.make_vec("InquiTree-paper12-menu-v0", 1_024, vectorization_mode="vector_entry_point")
begun = time.perf_counter()
env.reset(seed=0)
reset = time.perf_counter()
env.step(np.zeros(1_024, np.int64))
print(json.dumps([reset - begun, time.perf_counter() - reset, "torch" in sys.modules]))
"""


def made(width: int, tree: Tree = TREE, **keywords: Any) -> gym.vector.VectorEnv:
    """Make and reset an environment."""
    env = gym.make_vec("InquiTree-menu-v0", width, vectorization_mode="vector_entry_point", tree=tree, **keywords)
    env.reset(seed=0)
    return env


def stepping(env: gym.vector.VectorEnv, actions: int) -> Callable[[], float]:
    """Return a function that plays one round of random actions and returns single-inquiry steps per second."""
    rows = np.random.default_rng(0).integers(actions, size=(ROWS, env.num_envs))
    steps = min(max(10, INQUIRIES_A_ROUND // env.num_envs), 10_000)

    def go(count: int) -> None:
        for number in range(count):
            env.step(rows[number % ROWS])

    go(WARM_UP)
    return lambda: steps * env.num_envs / seconds(partial(go, steps))


def against_cart() -> Iterator[Row]:
    """Compare with CartPole at equal numbers of environments, in alternating rounds."""
    for place, width in enumerate(WIDTHS):
        cart = gym.make_vec("CartPole-v1", width, vectorization_mode="vector_entry_point")
        cart.reset(seed=0)
        envs = [made(width, **keywords) for keywords, _ in VIEWS.values()]
        tasks = [stepping(cart, 2), *(stepping(env, int(env.single_action_space.n)) for env in envs), copying(width)]
        theirs, *ours, copied = alternate(tasks, ROUNDS)
        for (what, (_, targets)), rates in zip(VIEWS.items(), ours, strict=True):
            ratio, target = ratios(rates, theirs), None if targets is None else targets[place]
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


def fakes() -> Iterator[Row]:
    """Compare inquiries with fake results with inquiries without, both from the first 300 steps on."""
    for width in WIDTHS:
        envs = [made(width, observation="index", fake_level=level) for level in (FAKE_LEVEL, 0)]
        ours, theirs = alternate([stepping(env, int(env.single_action_space.n)) for env in envs], ROUNDS)
        ratio = ratios(ours, theirs)
        yield Row(
            f"batch of {width:,}, index observations, fake level {FAKE_LEVEL}", millions(spread(ours)),
            f"fake level 0: {millions(spread(theirs))}", ratio.show(".2f"), f"≥ {FAKE_TARGET}",
            ratio.median >= FAKE_TARGET,
        )  # fmt: skip


def first_steps() -> Iterator[Row]:
    """Time the first reset and the first step of fresh processes: both load code, or compile it."""
    found: dict[str, list[list[float]]] = {name: [] for name in FIRST_TARGETS}
    before = os.environ.get("INQUITREE_CACHE")
    for _ in range(FIRST_ROUNDS):
        with TemporaryDirectory() as folder:
            os.environ["INQUITREE_CACHE"] = folder
            for name in ("code not cached", "code cached"):
                found[name].append(fresh(FIRST))
    os.environ.pop("INQUITREE_CACHE") if before is None else os.environ.update(INQUITREE_CACHE=before)
    for name, target in FIRST_TARGETS.items():
        resets, steps, torch = zip(*found[name], strict=True)
        both = spread(map(sum, zip(resets, steps, strict=True)))
        yield Row(
            f"first reset and step of a process, 1,024 inquiries, {name}",
            f"{both.show('.2f', 's')}; of it the step {spread(steps).median:.2f} s; torch "
            f"{'' if any(torch) else 'not '}loaded",
            target=f"≤ {target} s", met=both.median <= target,
        )  # fmt: skip


def growing() -> Iterator[Row]:
    """Measure steps with more inquiries, and steps and memory with larger trees."""
    keywords = {"observation": "index", "infos": False}
    envs = [made(width, **keywords) for width in GROWING_WIDTHS]
    tasks = [stepping(env, int(env.single_action_space.n)) for env in envs]
    for width, rates in zip(GROWING_WIDTHS, alternate(tasks, ROUNDS), strict=True):
        yield Row(f"step of {width:,} inquiries into {TREE.id}", took(rates, width))
    yield memory(TREE, envs[-1])
    # The vectors don't matter for a step, and a real embedder would take minutes.
    trees = [synthetic_tree(1, Difficulty(subtopics=size)) for size in SIZES]
    envs = [made(WIDTHS[-1], tree, embedder="hashed-words", **keywords) for tree in trees]
    tasks = [stepping(env, int(env.single_action_space.n)) for env in envs]
    for size, rates in zip(SIZES, alternate(tasks, ROUNDS), strict=True):
        yield Row(f"step of {WIDTHS[-1]:,} inquiries into a tree of {size} subtopics", took(rates, WIDTHS[-1]))
    yield from map(memory, trees, envs)


def took(rates: list[float], width: int) -> str:
    """Format the time of one step, for all inquiries and for a single one."""
    whole = spread(1e6 * width / rate for rate in rates).show(",.0f", "µs")
    return f"{whole}; {spread(1e9 / rate for rate in rates).median:,.0f} ns for each"


def memory(tree: Tree, env: gym.vector.VectorEnv) -> Row:
    """Report the memory of one inquiry, with its observation left out."""
    size = len(tree.subtopics)
    shown, kept = env.single_observation_space.shape[0] * 8, env.unwrapped.nbytes / env.num_envs
    return Row(
        f"memory per inquiry into a tree of {size} subtopics and {len(tree.studies)} studies",
        f"{kept:,.0f} B, and {shown} B of index observation",
        target=f"≤ {MEMORY_TARGET:,} B" if size <= MEMORY_SUBTOPICS else "–",
        met=kept <= MEMORY_TARGET if size <= MEMORY_SUBTOPICS else None,
    )


if __name__ == "__main__":
    hand_over([*singles(), *first_steps(), *against_cart(), *fakes(), *growing()])
