"""Tabular Q-learning (Watkins 1989) on index observations: a state is a text and the subtopics visited.

The reward is shaped by a potential on coverage (Ng, Harada & Russell 1999), which keeps optimal policies.

python examples/q_table.py --tree paper12 --turns 24
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from typing import NamedTuple

import gymnasium as gym
import numpy as np

import inquitree_gym  # noqa: F401  (registers the environments)

INQUIRIES = 256


def make(tree: str, turns: int, world: str) -> gym.vector.VectorEnv:
    """Return many inquiries that show numbers: of the text, and of what was visited."""
    return gym.make_vec(
        f"InquiTree-{tree}-menu-v0", INQUIRIES, vectorization_mode="vector_entry_point", autoreset_mode="SameStep",
        observation="index", max_turns=turns, infos=False, world=world,
    )  # fmt: skip


class QTable:
    """Values of actions, by state."""

    def __init__(self, actions: int, hope: float) -> None:
        self.values: defaultdict[bytes, np.ndarray] = defaultdict(lambda: np.full(actions, hope, np.float64))

    def rows(self, observations: np.ndarray) -> list[np.ndarray]:
        return [self.values[row.tobytes()] for row in observations]


class Settings(NamedTuple):
    """What one training run is made of."""

    tree: str = "paper12"
    turns: int = 24
    steps: int = 300_000
    seed: int = 1
    rate: float = 0.5
    gamma: float = 0.95
    explore: float = 0.1
    """Share of random actions, falling to 0."""
    hope: float = 0.3
    """What an action never tried is taken to be worth."""
    world: str = "any"
    """Worlds to play in. In ``actual`` alone a table learns the answers by heart."""


def train(settings: Settings) -> list[float]:
    """Return the mean return of the episodes that ended in each hundredth of the steps."""
    env, rng = make(settings.tree, settings.turns, settings.world), np.random.default_rng(settings.seed)
    observations, _ = env.reset(seed=settings.seed * 100_000)
    table = QTable(int(env.single_action_space.n), settings.hope)
    rounds = settings.steps // INQUIRIES
    curve: list[list[float]] = [[] for _ in range(100)]
    states, potential = table.rows(observations), coverage(observations)
    for turn in range(rounds):
        chosen = choose(np.stack(states), env.action_masks(), settings.explore * (1 - turn / rounds), rng)
        observations, rewards, over, _, _ = env.step(chosen)
        following, reached = table.rows(observations), coverage(observations)
        shaped = rewards + settings.gamma * np.where(over, 0, reached) - potential
        for values, action, reward, ended, after in zip(states, chosen, shaped, over, following, strict=True):
            target = reward if ended else reward + settings.gamma * after.max()
            values[action] += settings.rate * (target - values[action])
        states, potential = following, reached
        curve[100 * turn // rounds] += rewards[over].tolist()
    env.close()
    return [float(np.mean(part)) if part else float("nan") for part in curve]


def choose(values: np.ndarray, masks: np.ndarray, explore: float, rng: np.random.Generator) -> np.ndarray:
    """Return the best open action of each row, ties by chance, and for a share of the rows any open one."""
    chance = rng.random(masks.shape)
    best = np.where(masks, values + 1e-6 * chance, -np.inf).argmax(axis=1)
    return np.where(rng.random(len(values)) < explore, (chance * masks).argmax(axis=1), best)


def coverage(observations: np.ndarray) -> np.ndarray:
    """Return the number of subtopics visited, over ten. Their bits stand in the first word behind the text."""
    return np.bitwise_count(observations[:, 1]) / 10


def main() -> None:
    """Train once from flags and print the curve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("tree", "turns", "steps", "seed", "world"):
        default = Settings._field_defaults[name]
        parser.add_argument(f"--{name}", type=type(default), default=default)
    settings = Settings(**vars(parser.parse_args()))
    curve = train(settings)
    for part in range(4, 100, 5):
        print(f"{settings.steps * (part + 1) // 100:>10,} steps   return {curve[part]:.3f}")


if __name__ == "__main__":
    main()
