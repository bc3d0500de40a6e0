"""Options of the discrete view as numbers, the sources that the tasks come from, and the menu of both.

The options of a claim are the claim itself, its first contrary, and nothing. A seed shuffles them claim by claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, NamedTuple, Protocol, TypedDict

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from inquitree_gym.envs.spaces import Bools, Ints
from inquitree_gym.envs.text import draw_one
from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.fiction.documents import tree_seed
from inquitree_gym.projection.judges.direction import claim_direction
from inquitree_gym.projection.keywords import load_tasks, projection_rules
from inquitree_gym.projection.settings import ProjectionRules, RewardTime
from inquitree_gym.projection.worlds import WorldSettings, synthetic_task, world_numbers
from inquitree_gym.seeds import Hashes, hash_words
from inquitree_gym.trees.disclosure import LEVELS, Level, ProjectionTask

ProjectionRow = NDArray[np.float32]
Signs = NDArray[np.int8]
"""1 for a rise, -1 for a fall, 0 for neither."""
OPTIONS = 3
"""Options for every claim."""
OVER = len(LEVELS)
"""Number of the level after the last projection."""
_LEVEL_ROWS = np.eye(OVER + 1, OVER, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class ProjectionFeatures:
    """Layout of an observation, float32 in [-1, 1] of shape ``(size,)``.

    | part | length | values |
    | --- | --- | --- |
    | ``level`` | 3 | question, null, procedure: 1 for the level of this turn. All 0 when the task is over |
    | ``claims`` | slots | 1 for every slot that holds a claim |
    | ``given`` | slots | direction of the claim if the disclosure reveals it: 1 a rise, -1 a fall, else 0 |
    | ``directions`` | slots × 3 | direction that each option states, in the order of the actions |
    | ``nothing`` | slots × 3 | 1 for the option that leaves the claim out |
    """

    slots: int

    @property
    def size(self) -> int:
        """Length of an observation."""
        return len(LEVELS) + 2 * self.slots * (1 + OPTIONS)

    @property
    def space(self) -> spaces.Box:
        """Space of one observation."""
        return spaces.Box(-1, 1, (self.size,), np.float32)

    def rows(
        self, levels: Ints, *, is_claim: Bools, given: Signs, directions: Signs, is_nothing: Bools
    ) -> ProjectionRow:
        """Return observations, shape ``(N, size)``.

        Args:
            levels: numbers of the levels, `OVER` for a task that is over, shape ``(N,)``.
            is_claim: the slot holds a claim, shape ``(N, slots)``.
            given: directions that the disclosure reveals, shape ``(N, slots)``.
            directions: directions that the options state, shape ``(N, slots, 3)``.
            is_nothing: the option leaves its claim out, shape ``(N, slots, 3)``.
        """
        options = (part.reshape(len(levels), -1) for part in (directions, is_nothing & is_claim[:, :, None]))
        return np.concatenate([_LEVEL_ROWS.take(levels, axis=0), is_claim, given, *options], axis=1, dtype=np.float32)

    def split(self, rows: ProjectionRow) -> dict[str, ProjectionRow]:
        """Return the parts of observations, shape ``(…, size)``, by name. Those of options are ``(…, slots, 3)``."""
        names = ("level", "claims", "given", "directions", "nothing")
        options = self.slots * OPTIONS
        ends = np.cumsum([len(LEVELS), self.slots, self.slots, options])
        parts = dict(zip(names, np.split(rows, ends, axis=-1), strict=True))
        for name in ("directions", "nothing"):
            parts[name] = parts[name].reshape(*rows.shape[:-1], self.slots, OPTIONS)
        return parts


ITSELF, CONTRARY, NOTHING = range(3)
RATINGS = np.array([1.0, -1.0, np.nan])
"""Alignment a of each option with its claim. NaN for nothing, which has no analogous claim."""
MENU_RULES = ("levels", "reward")
"""Rules that a reset takes. The others are about text."""
_ORDERS = np.array(list(permutations(range(OPTIONS))))
_SHUFFLE = 1 << 32
"""First of the words that extend a seed's hash to shuffle the options of each claim."""


class ClaimNumbers(NamedTuple):
    """Claims of N tasks as numbers, in a fixed number of slots."""

    claims: Ints
    """Shape (N,): number of claims M. The slots after them are empty."""
    directions: Signs
    """Shape (N, slots, 2): direction that the claim and its contrary state, 1 a rise, -1 a fall, 0 neither."""
    given: Signs
    """Shape (N, slots): direction that the procedure reveals. 0 for none."""


def shuffled(seeds: Hashes, slots: int) -> NDArray[np.int64]:
    """Return the order of the options that ``seeds``, shape (N,), draw for each claim, shape (N, slots, 3)."""
    words = np.arange(_SHUFFLE, _SHUFFLE + slots, dtype=np.uint64)
    roots = hash_words(np.zeros_like(seeds), seeds)
    draws = hash_words(np.repeat(roots[:, None], slots, axis=1), words)
    order: NDArray[np.int64] = _ORDERS[(draws % np.uint64(len(_ORDERS))).astype(np.int64)]
    return order


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
        """Draw from a split. Raise `OptionError` for an unknown one."""
        self._settings, self._split, self._first = settings, split, tree_seed(0, split)
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
        """Read the directions that claims and contraries state from their words. See `claim_direction`."""
        self._tasks = tuple(tasks)
        self.most_claims = max(len(task.claims) for task in tasks)
        self._claims = np.array([len(task.claims) for task in tasks])
        self._directions = np.zeros((len(tasks), self.most_claims, 2), np.int8)
        for table, task in zip(self._directions, tasks, strict=True):
            for row, claim in zip(table, task.claims, strict=False):
                row[:] = [claim_direction(claim, text) for text in (claim.text, claim.contraries[0])]

    def numbers(self, seeds: Hashes, slots: int) -> ClaimNumbers:
        """Return the claims of the tasks that ``seeds`` draw. No direction is revealed."""
        count = np.array(len(self._tasks), np.uint64)
        hashes = hash_words(hash_words(np.zeros_like(seeds), seeds), count)
        drawn = (hashes % count).astype(np.int64)  # `draw_one` in arrays
        directions = np.pad(self._directions[drawn], ((0, 0), (0, slots - self.most_claims), (0, 0)))
        return ClaimNumbers(self._claims[drawn], directions, np.zeros(directions.shape[:2], np.int8))

    def task(self, seed: int) -> ProjectionTask:
        """Return the task that a seed draws."""
        return draw_one(self._tasks, seed)


class MenuKeywords(TypedDict, total=False):
    """Keywords of every discrete view of projections. `ProjectionMenu.of` has the defaults."""

    levels: Sequence[Level]
    reward: RewardTime
    size: int | None


@dataclass(frozen=True, slots=True)
class ProjectionMenu:
    """Tasks, rules and slots of a discrete view."""

    source: TaskSource
    rules: ProjectionRules
    slots: int
    """Slots for claims, so that tasks with different numbers of claims share one action space."""

    @classmethod
    def of(
        cls,
        source: TaskSource,
        *,
        levels: Sequence[Level] = LEVELS,
        reward: RewardTime = "each",
        size: int | None = None,
    ) -> ProjectionMenu:
        """Return a menu of the tasks of ``source``.

        Args:
            source: tasks to draw from.
            levels: levels in the order of disclosure. See `ProjectionRules`.
            reward: time of the reward. See `ProjectionRules`.
            size: number of slots for claims. None takes the number of claims of the largest task.

        Raises:
            OptionError: a value is out of range, or a task has more claims than there are slots.
        """
        rules = ProjectionRules(levels=levels, reward=reward)
        if size is not None and (type(size) is not int or size < 1):
            raise OptionError(f"size must be the number of slots for claims, an integer from 1, got {size!r:.80}")
        menu = cls(source, rules, source.most_claims if size is None else size)
        menu._check_fit(source)
        return menu

    @property
    def features(self) -> ProjectionFeatures:
        """Layout of the observations."""
        return ProjectionFeatures(self.slots)

    @property
    def action_space(self) -> spaces.MultiDiscrete:
        """Space of the actions: an option for every slot."""
        return spaces.MultiDiscrete([OPTIONS] * self.slots)

    def resolve_options(self, options: Mapping[str, Any] | None) -> tuple[TaskSource, ProjectionRules]:
        """Return the tasks to draw from and the rules of an episode with these `reset` options.

        Raise `OptionError` for an invalid option or a task that does not fit into the slots. See `load_tasks`.
        """
        if not options:
            return self.source, self.rules
        rules = projection_rules(self.rules, options, MENU_RULES)
        if "task" not in options:
            return self.source, rules
        source = TaskTable(load_tasks(options["task"]))
        self._check_fit(source)
        return source, rules

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

    def _check_fit(self, source: TaskSource) -> None:
        if self.slots < source.most_claims:
            raise OptionError(
                f"a task has {source.most_claims} claims, and the menu has {self.slots} slots for them; make it with "
                f"size={source.most_claims} or more"
            )
