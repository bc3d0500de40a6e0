"""Observations of the discrete view: what is disclosed, and what the options state, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from inquitree_gym.envs.projection.claim_options import NOTHING, OPTIONS, ClaimOptions
from inquitree_gym.trees.disclosure import LEVELS

ProjectionRow = NDArray[np.float32]
OVER = len(LEVELS)
"""Number of the level after the last projection."""
_LEVEL_ROWS = np.eye(OVER + 1, OVER, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class ProjectionFeatures:
    """Layout of an observation, float32 in [-1, 1] of shape ``(size,)``.

    | part | length | values |
    | --- | --- | --- |
    | ``level`` | 3 | question, null, procedure: 1 for the level of this turn; all 0 when the task is over |
    | ``claims`` | slots | 1 for every slot that holds a claim |
    | ``given`` | slots | direction of the claim if the disclosure reveals it: 1 a rise, -1 a fall; else 0 |
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
        self, levels: NDArray[np.int64], shows_procedure: NDArray[np.bool_], options: ClaimOptions
    ) -> ProjectionRow:
        """Return observations, shape ``(N, size)``.

        Args:
            levels: numbers of the levels, `OVER` for a task that is over, shape ``(N,)``.
            shows_procedure: the procedure is disclosed, shape ``(N,)``.
            options: those of the N tasks.
        """
        is_claim = np.arange(self.slots) < options.claims[:, None]
        leaves_out = (options.order == NOTHING) & is_claim[:, :, None]
        parts = (
            _LEVEL_ROWS.take(levels, axis=0),
            is_claim,
            options.given * shows_procedure[:, None],
            options.directions.reshape(len(levels), -1),
            leaves_out.reshape(len(levels), -1),
        )
        return np.concatenate(parts, axis=1, dtype=np.float32)

    def split(self, rows: ProjectionRow) -> dict[str, ProjectionRow]:
        """Return the parts of observations by name; those of the options have the shape ``(…, slots, 3)``.

        Args:
            rows: shape ``(…, size)``.
        """
        names = ("level", "claims", "given", "directions", "nothing")
        options = self.slots * OPTIONS
        ends = np.cumsum([len(LEVELS), self.slots, self.slots, options])
        parts = dict(zip(names, np.split(rows, ends, axis=-1), strict=True))
        for name in ("directions", "nothing"):
            parts[name] = parts[name].reshape(*rows.shape[:-1], self.slots, OPTIONS)
        return parts
