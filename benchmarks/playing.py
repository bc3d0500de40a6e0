"""Measure episodes per second of the baselines; each episode is logged to a file, read back and scored."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import gymnasium as gym
from measure import Row, alternate, hand_over, spread

import inquitree_gym as it
from inquitree_gym.baselines import BASELINE_NAMES

TREES = ("paper8", "paper10", "paper12")
ROUNDS = 7
"""Each round plays every tree once per baseline, with a seed of its own; the model is loaded before."""


class Table:
    """One baseline with its environments and judges."""

    def __init__(self, name: str, folder: str) -> None:
        """Set up the environments and agents; write logs into ``folder``."""
        self.name = name
        self.folder = Path(folder)
        self.seed = 0
        self.turns = 0
        self.sets = []
        for tree in TREES:
            env = gym.make(f"InquiTree-{tree}-v0", privileged=True)
            env.reset(seed=0)
            self.sets.append((env, it.make_agent(name, env)))

    def round(self) -> float:
        """Return episodes per second over one episode per tree."""
        self.seed += 1
        begun = time.perf_counter()
        for env, agent in self.sets:
            tree = env.unwrapped.tree
            file = self.folder / f"{tree.id}-{self.name}-{self.seed}.jsonl"
            it.play(env, agent, self.seed, file=file)
            episode = it.read_episode(file)
            it.score_episode(episode, tree)
            self.turns += len(episode.turns)
        return len(TREES) / (time.perf_counter() - begun)

    def row(self, rates: list[float]) -> Row:
        """Return the line of the table for these rates."""
        turns = self.turns / (self.seed * len(TREES))
        return Row(
            f"episodes of `{self.name}`, logged and scored ({turns:.0f} turns each)", spread(rates).show(".3g", "/s")
        )


def baselines() -> list[Row]:
    with TemporaryDirectory() as folder:
        tables = [Table(name, folder) for name in BASELINE_NAMES]
        rounds = [partial(Table.round, table) for table in tables]
        alternate(rounds, 1)
        rates = alternate(rounds, ROUNDS)
    return [table.row(values) for table, values in zip(tables, rates, strict=True)]


if __name__ == "__main__":
    hand_over(baselines())
