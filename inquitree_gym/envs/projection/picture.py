"""Pictures of the discrete view of projections, as arrays of pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.envs.projection.features import ProjectionRow

CELL = 16
"""Height and width of a square, in pixels."""
_GAP = 2
_EMPTY, _LIT, _NOTHING = (255, 255, 255), (0, 0, 0), (204, 204, 204)
_DIRECTIONS = np.array([(213, 94, 0), _NOTHING, (0, 114, 178)], np.uint8)
"""Colours of a fall, of no direction, and of a rise."""


def options_picture(parts: dict[str, ProjectionRow]) -> NDArray[np.uint8]:
    """Return a picture of one observation, uint8 of shape ``((slots + 1) · CELL, 4 · CELL, 3)``.

    The first row has a black square for the level. Each row below is one claim: the direction that the disclosure
    reveals, then those of its three options. Blue is a rise, orange a fall, and grey no direction.

    Args:
        parts: those of `ProjectionFeatures.split`.
    """
    slots, options = parts["directions"].shape
    cells = np.full((slots + 1, 1 + options, 3), _EMPTY, np.uint8)
    cells[0, 1:][parts["level"] > 0] = _LIT
    signs = np.concatenate([parts["given"][:, None], parts["directions"]], axis=1).astype(np.int64)
    claims = parts["claims"] > 0
    cells[1:][claims] = _DIRECTIONS[signs[claims] + 1]
    picture = cells.repeat(CELL, axis=0).repeat(CELL, axis=1)
    for edge in range(_GAP):
        picture[edge::CELL] = _EMPTY
        picture[:, edge::CELL] = _EMPTY
    return picture
