"""Sources of the tasks of the discrete view: given tasks or synthetic worlds, with their claims as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from inquitree_gym.envs.projection.claim_options import ClaimNumbers
from inquitree_gym.envs.text import draw_one
from inquitree_gym.errors import OptionError
from inquitree_gym.judges.projections.direction import claim_direction
from inquitree_gym.trees.disclosure import ProjectionTask
from inquitree_gym.trees.generator import WorldSettings, synthetic_task, tree_seed
from inquitree_gym.trees.generator.worlds import world_numbers
from inquitree_gym.trees.hashing import Hashes, hash_words


class TaskSource(Protocol):
    """Tasks to draw from by the seeds of episodes."""

    most_claims: int
    """Largest number of claims of a task."""

    def numbers(self, seeds: Hashes, slots: int) -> ClaimNumbers:
        """Return the claims of the tasks that ``seeds``, shape (N,), draw, in at least `most_claims` slots."""

    def task(self, seed: int) -> ProjectionTask:
        """Return the task that a seed draws."""


class WorldSource:
    """A new synthetic world for every seed."""

    def __init__(self, settings: WorldSettings, split: str) -> None:
        """Draw from a split.

        Raises:
            OptionError: the split is unknown.
        """
        self._settings, self._first = settings, tree_seed(0, split)
        self._split = split
        self.most_claims = settings.most_claims

    def numbers(self, seeds: Hashes, slots: int) -> ClaimNumbers:
        """Return the claims of the worlds of ``seeds``."""
        own = (seeds << np.uint64(2) >> np.uint64(1)) + np.uint64(self._first)  # `tree_seed` in arrays
        claims, signs, deducible = world_numbers(own, self._settings)
        empty = ((0, 0), (0, slots - self.most_claims))
        signs, given = np.pad(signs, empty), np.pad(signs * deducible, empty)
        return ClaimNumbers(claims, np.stack([signs, -signs], axis=2), given)

    def task(self, seed: int) -> ProjectionTask:
        """Return the world of a seed as a task."""
        return synthetic_task(tree_seed(seed, self._split), self._settings)


class TaskTable:
    """Given tasks, of which each seed draws one."""

    def __init__(self, tasks: Sequence[ProjectionTask]) -> None:
        """Read the directions that claims and contraries state from their words; see `claim_direction`."""
        self._tasks = tuple(tasks)
        self.most_claims = max(len(task.claims) for task in tasks)
        self._claims = np.array([len(task.claims) for task in tasks])
        self._directions = np.zeros((len(tasks), self.most_claims, 2), np.int8)
        for table, task in zip(self._directions, tasks, strict=True):
            for row, claim in zip(table, task.claims, strict=False):
                row[:] = [claim_direction(claim, text) for text in (claim.text, claim.contraries[0])]

    def numbers(self, seeds: Hashes, slots: int) -> ClaimNumbers:
        """Return the claims of the tasks that ``seeds`` draw; no direction is revealed."""
        count = np.array(len(self._tasks), np.uint64)
        drawn = hash_words(hash_words(np.zeros_like(seeds), seeds), count) % count  # `draw_one` in arrays
        directions = self._directions[drawn.astype(np.int64)]
        directions = np.pad(directions, ((0, 0), (0, slots - self.most_claims), (0, 0)))
        return ClaimNumbers(self._claims[drawn.astype(np.int64)], directions, np.zeros(directions.shape[:2], np.int8))

    def task(self, seed: int) -> ProjectionTask:
        """Return the task that a seed draws."""
        return draw_one(self._tasks, seed)


def resolve_slots(size: int | None, source: TaskSource) -> int:
    """Return ``size`` checked against the tasks, or for None the smallest that holds them.

    Raises:
        OptionError: ``size`` is not a whole number from 1, or a task has more claims.
    """
    if size is None:
        return source.most_claims
    if type(size) is not int or size < 1:
        raise OptionError(f"size is the number of slots for claims, a whole number from 1, not {size!r:.80}")
    if size < source.most_claims:
        raise OptionError(
            f"a task has {source.most_claims} claims, and the menu has {size} slots for them; make it with "
            f"size={source.most_claims} or more"
        )
    return size
