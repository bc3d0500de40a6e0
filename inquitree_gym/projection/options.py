"""The discrete view's options as numbers, and the menu of single and array environments.

It plays synthetic worlds alone: their claims are signs, so numbers say all that the texts say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from inquitree_gym.envs.spaces import Bools, Ints
from inquitree_gym.errors import ActionError
from inquitree_gym.fiction.documents import tree_seed
from inquitree_gym.projection.keywords import projection_rules
from inquitree_gym.projection.settings import ProjectionRules
from inquitree_gym.projection.sheets import LAYOUT
from inquitree_gym.projection.worlds import WorldSettings, synthetic_task, world_numbers
from inquitree_gym.seeds import Hashes, hash_words
from inquitree_gym.trees.disclosure import LEVELS, Level, ProjectionTask

ProjectionRow = NDArray[np.float32]
Signs = NDArray[np.int8]
"""1 for a rise, -1 for a fall, 0 for neither."""
STATEMENTS = 2
"""Statements of a claim: a rise and a fall."""
OPTIONS = STATEMENTS + 1
"""Options for every claim: its statements by their letters, and nothing."""
OVER = len(LEVELS)
"""Number of the level after the last sheet."""
_LEVEL_ROWS = np.eye(OVER + 1, OVER, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class ProjectionFeatures:
    """Layout of an observation, float32 in [-1, 1] of shape ``(size,)``.

    | part | length | values |
    | --- | --- | --- |
    | ``level`` | 3 | question, null, procedure: 1 for the level of this turn. All 0 when the task is over |
    | ``claims`` | slots | 1 for every slot that holds a claim |
    | ``given`` | slots | direction of the claim if the disclosure reveals it: 1 a rise, -1 a fall, else 0 |
    | ``directions`` | slots × 2 | direction that the statement of each letter gives |
    """

    slots: int

    @property
    def size(self) -> int:
        """Length of an observation."""
        return len(LEVELS) + self.slots * (2 + STATEMENTS)

    @property
    def space(self) -> spaces.Box:
        """Space of one observation."""
        return spaces.Box(-1, 1, (self.size,), np.float32)

    def rows(self, levels: Ints, *, is_claim: Bools, given: Signs, directions: Signs) -> ProjectionRow:
        """Return observations, shape ``(N, size)``.

        Args:
            levels: numbers of the levels, `OVER` for a task that is over, shape ``(N,)``.
            is_claim: the slot holds a claim, shape ``(N, slots)``.
            given: directions that the disclosure reveals, shape ``(N, slots)``.
            directions: directions that the statements give, shape ``(N, slots, 2)``.
        """
        stated = directions.reshape(len(levels), -1)
        return np.concatenate([_LEVEL_ROWS.take(levels, axis=0), is_claim, given, stated], axis=1, dtype=np.float32)

    def split(self, rows: ProjectionRow) -> dict[str, ProjectionRow]:
        """Return the parts of observations, shape ``(…, size)``, by name. Directions are ``(…, slots, 2)``."""
        names = ("level", "claims", "given", "directions")
        parts = dict(zip(names, np.split(rows, np.cumsum([len(LEVELS), self.slots, self.slots]), axis=-1), strict=True))
        parts["directions"] = parts["directions"].reshape(*rows.shape[:-1], self.slots, STATEMENTS)
        return parts


class ClaimNumbers(NamedTuple):
    """Claims of N worlds as numbers, in a fixed number of slots."""

    claims: Ints
    """Shape (N,): number of claims M. The slots after them are empty."""
    signs: Signs
    """Shape (N, slots): direction of the claim. 0 for an empty slot."""
    given: Signs
    """Shape (N, slots): direction that the procedure reveals. 0 for none."""


def true_first(seeds: Hashes, level: int, slots: int) -> Bools:
    """Return whether the true statement of each claim has the letter A at a level, shape (N, slots).

    It is the order of `draw_layout` for claims with one contrary.
    """
    roots = hash_words(hash_words(np.zeros_like(seeds), seeds), np.array(LAYOUT, np.uint64))
    roots = hash_words(roots, np.array(level, np.uint64))
    places = hash_words(np.repeat(roots[:, None], slots, axis=1), np.arange(slots, dtype=np.uint64))
    first: Bools = hash_words(places, np.array(0, np.uint64)) < hash_words(places, np.array(1, np.uint64))
    return first


@dataclass(frozen=True, slots=True)
class WorldSource:
    """A new synthetic world for every seed."""

    settings: WorldSettings
    split: str

    def __post_init__(self) -> None:
        """Raise `OptionError` for an unknown split."""
        tree_seed(0, self.split)

    def numbers(self, seeds: Hashes) -> ClaimNumbers:
        """Return the claims of the worlds of ``seeds``, shape (N,)."""
        own = (seeds << np.uint64(2) >> np.uint64(1)) + np.uint64(tree_seed(0, self.split))  # `tree_seed` in arrays
        claims, signs, deducible = world_numbers(own, self.settings)
        return ClaimNumbers(claims, signs, signs * deducible)

    def task(self, seed: int) -> ProjectionTask:
        """Return the world of a seed as a task."""
        return synthetic_task(tree_seed(seed, self.split), self.settings)


class MenuKeywords(TypedDict, total=False):
    """Keywords of every discrete view of projections. `ProjectionMenu.of` has the defaults."""

    levels: Sequence[Level]


@dataclass(frozen=True, slots=True)
class ProjectionMenu:
    """Worlds and rules of a discrete view."""

    source: WorldSource
    rules: ProjectionRules

    @classmethod
    def of(cls, source: WorldSource, *, levels: Sequence[Level] = LEVELS) -> ProjectionMenu:
        """Return a menu of the worlds of ``source``.

        Args:
            source: worlds to draw from.
            levels: levels in the order of disclosure. See `ProjectionRules`.

        Raises:
            OptionError: a value is out of range.
        """
        return cls(source, ProjectionRules(levels=levels))

    @property
    def slots(self) -> int:
        """Slots for claims, so that worlds with different numbers of claims share one action space."""
        return self.source.settings.most_claims

    @property
    def features(self) -> ProjectionFeatures:
        """Layout of the observations."""
        return ProjectionFeatures(self.slots)

    @property
    def action_space(self) -> spaces.MultiDiscrete:
        """Space of the actions: an option for every slot."""
        return spaces.MultiDiscrete([OPTIONS] * self.slots)

    def resolve_options(self, options: Mapping[str, Any] | None) -> ProjectionRules:
        """Return the rules of an episode with these `reset` options. Raise `OptionError` for an invalid one."""
        return projection_rules(self.rules, options, ("levels",)) if options else self.rules

    def check_actions(self, actions: Any, shape: tuple[int, ...]) -> Ints:
        """Return actions as an int64 array. Raise `ActionError` unless they are numbers of ``shape`` from 0 to 2."""
        try:
            chosen = np.asarray(actions)
        except ValueError as error:  # rows of different lengths
            raise ActionError(f"options must be integers of shape {shape}, got rows of different lengths") from error
        if chosen.dtype.kind not in "iu" or chosen.shape != shape:
            raise ActionError(f"options must be integers of shape {shape}, got {chosen.dtype} of shape {chosen.shape}")
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < OPTIONS:
            wrong = chosen[(chosen < 0) | (chosen >= OPTIONS)][0]
            raise ActionError(f"an option must lie in 0 to {OPTIONS - 1}, got {wrong}")
        return chosen.astype(np.int64, copy=False)
