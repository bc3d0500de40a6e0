"""A small library and one of its tasks, for tests of all parts."""

from __future__ import annotations

from functools import cache

from inquitree_gym.exploration.building.navigation import HOPS, Index, navigation_task
from inquitree_gym.exploration.library import Library, LibrarySpec
from inquitree_gym.exploration.providers import local_library
from inquitree_gym.exploration.schema import ExplorationTask

SPEC = LibrarySpec(seed=1, size=200)


def make_library() -> Library:
    return local_library(SPEC).library


def navigation_tasks(library: Library) -> list[ExplorationTask]:
    """Return a task for each number of records."""
    index = Index(library)
    return [navigation_task(index, number, depth) for number, depth in enumerate(HOPS)]


@cache
def make_question() -> ExplorationTask:
    """Return a task of two records whose answer is a number."""
    return next(task for task in navigation_tasks(make_library()) if task.gold.parts[0].unit)
