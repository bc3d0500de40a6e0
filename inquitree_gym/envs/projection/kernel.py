"""One step of the discrete view of all projections at once; index i of every array is environment i."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.envs.batch.encoding import Bools, Ints
from inquitree_gym.envs.batch.seeds import EpisodeSeeds
from inquitree_gym.envs.projection.claim_options import OPTIONS, RATINGS, ClaimOptions
from inquitree_gym.envs.projection.features import OVER, ProjectionFeatures, ProjectionRow
from inquitree_gym.envs.projection.rules import ProjectionRules
from inquitree_gym.envs.projection.sources import TaskSource
from inquitree_gym.judges.projections.alignment import Floats, ProjectionScore, level_weights, projection_score
from inquitree_gym.trees.disclosure import LEVELS


class Plan(NamedTuple):
    """Rules of an episode as numbers, padded to as many turns as there are levels."""

    levels: Ints
    """Shape (4,): number of the level of every turn; `OVER` after the last turn."""
    shows_procedure: Bools
    """Shape (4,): the procedure is disclosed at that turn."""
    weights: Floats
    """Shape (3,): weight of the F1 of every turn."""
    is_late: bool
    """True if the reward comes at the end."""

    @classmethod
    def of(cls, rules: ProjectionRules) -> Plan:
        """Return rules as numbers; ``form`` is left out, since it does not affect options."""
        numbers = np.full(OVER + 1, OVER)
        numbers[: len(rules.levels)] = [LEVELS.index(level) for level in rules.levels]
        weights = np.zeros(OVER)
        weights[: len(rules.levels)] = level_weights(len(rules.levels))
        procedure = numbers == LEVELS.index("procedure")
        return cls(numbers, np.logical_or.accumulate(procedure), weights, rules.reward == "end")


class ProjectionKernel:
    """Arrays that hold the state of many projections, and the step that advances them."""

    def __init__(self, num_envs: int, slots: int) -> None:
        """Allocate the arrays, with ``slots`` for the claims of a task."""
        self.seeds = EpisodeSeeds(num_envs)
        self.turn: Ints = np.zeros(num_envs, np.int64)
        self.options = ClaimOptions(
            np.zeros(num_envs, np.int64),
            np.zeros((num_envs, slots, OPTIONS), np.int64),
            np.zeros((num_envs, slots, OPTIONS), np.int8),
            np.zeros((num_envs, slots), np.int8),
        )
        self._levels: Ints = np.full((num_envs, OVER + 1), OVER)
        self._shows: Bools = np.zeros((num_envs, OVER + 1), np.bool_)
        self._weights: Floats = np.zeros((num_envs, OVER))
        self._is_late: Bools = np.zeros(num_envs, np.bool_)
        self._earned: Floats = np.zeros(num_envs)
        self._features = ProjectionFeatures(slots)
        self._no_extras: Floats = np.zeros((num_envs, 0))
        self._envs: Ints = np.arange(num_envs)

    def start(self, envs: Ints, source: TaskSource, rules: ProjectionRules) -> None:
        """Start the episodes of these environments, whose seeds are set."""
        seeds = self.seeds.current(envs)
        held, new = self.options, ClaimOptions.shuffled(source.numbers(seeds, self._features.slots), seeds)
        held.claims[envs], held.order[envs] = new.claims, new.order
        held.directions[envs], held.given[envs] = new.directions, new.given
        plan = Plan.of(rules)
        self._levels[envs], self._shows[envs], self._weights[envs], self._is_late[envs] = plan
        self.turn[envs], self._earned[envs] = 0, 0.0

    def step(self, actions: Ints) -> tuple[Floats, Bools, ProjectionScore]:
        """Take one turn in every environment that is not over.

        Args:
            actions: shape (num_envs, slots), numbers of the options, 0 to 2; those of empty slots have no effect.

        Returns: rewards, terminations and scores, each of the shape (num_envs,).
        """
        score = projection_score(self.pairs(actions), self._no_extras, claims=self.options.claims)
        playing = self.level < OVER
        gains = np.where(playing, self._weights[self._envs, np.minimum(self.turn, OVER - 1)] * score.f1, 0.0)
        self._earned += gains
        self.turn += playing
        ended = playing & (self.level == OVER)
        return np.where(self._is_late, self._earned * ended, gains), ended, score

    @property
    def level(self) -> Ints:
        """Number of the level of every environment's next turn, shape (num_envs,); `OVER` after the last."""
        level: Ints = self._levels[self._envs, self.turn]
        return level

    @property
    def last_level(self) -> Ints:
        """Number of the level disclosed last, shape (num_envs,)."""
        last: Ints = self._levels[self._envs, self.turn - (self.level == OVER)]
        return last

    def pairs(self, actions: Ints) -> Floats:
        """Return the ratings of the chosen options, shape (num_envs, slots); NaN for nothing and for empty slots."""
        chosen = np.take_along_axis(self.options.order, actions[:, :, None], axis=2)[:, :, 0]
        return np.where(self._is_claim, RATINGS[chosen], np.nan)

    def observe(self) -> ProjectionRow:
        """Return the observations of all environments, a new array of shape (num_envs, size)."""
        return self._features.rows(self.level, self._shows[self._envs, self.turn], self.options)

    def masks(self) -> NDArray[np.int8]:
        """Return 1 for every open option, shape (num_envs, slots, 3): all three of a claim, one of an empty slot."""
        masks = np.repeat(self._is_claim[:, :, None], OPTIONS, axis=2).astype(np.int8)
        masks[:, :, 0] = 1
        return masks

    @property
    def _is_claim(self) -> Bools:
        is_claim: Bools = np.arange(self._features.slots) < self.options.claims[:, None]
        return is_claim
