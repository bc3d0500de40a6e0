"""The frozen tasks: drawn over five test libraries, each in a world of its own, and kept as a file of the package."""

from __future__ import annotations

from inquitree_gym.exploration.building.generate import build_library
from inquitree_gym.exploration.building.navigation import HOPS, Index, navigation_task
from inquitree_gym.exploration.library import LibrarySpec
from inquitree_gym.exploration.schema import ExplorationTask
from inquitree_gym.seeds import splitmix64

SEEDS = (1, 3, 5, 7, 9)
"""Seeds of the libraries: odd, as all tests."""
SIZE = 2_000
WORLDS = 8
"""Worlds that a library draws its own from."""


def frozen_specs() -> list[LibrarySpec]:
    """Return the five libraries."""
    return [LibrarySpec(seed=seed, world=splitmix64(seed, WORLDS) % WORLDS, size=SIZE) for seed in SEEDS]


def draw_frozen() -> list[ExplorationTask]:
    """Return the frozen tasks, one library after the other."""
    indexes = [Index(build_library(spec)) for spec in frozen_specs()]
    return [navigation_task(indexes[number % len(SEEDS)], number, depth) for number, depth in enumerate(HOPS)]


def frozen_lines(tasks: list[ExplorationTask]) -> str:
    """Return tasks as JSON lines."""
    return "".join(f"{task.model_dump_json()}\n" for task in tasks)
