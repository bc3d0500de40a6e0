"""What `InquiryBatchEnv` says besides its observations, in the form that Gymnasium gives the infos of a vector."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.envs.batch.encoding import Bools, Ints
from inquitree_gym.envs.batch.kernel import Core
from inquitree_gym.envs.batch.tables import Tables
from inquitree_gym.envs.runtime import PHASE_NAMES

Infos = dict[str, Any]

_NAMES = np.array(PHASE_NAMES, object)
_PLACED = np.dtype([("hint_level", np.int64), ("accepted", np.bool_), ("forced", np.bool_), ("", np.void, 6)])
"""What a place says; padded to a size that is copied fast."""


class Said:
    """What the places of some tables say."""

    def __init__(self, tables: Tables) -> None:
        """Prepare ``tables``."""
        self.tables = tables
        self._names = _NAMES.take(tables.places.phase)
        self._placed = np.zeros(len(self._names), _PLACED)
        for name in ("hint_level", "accepted", "forced"):
            self._placed[name] = getattr(tables.places, name)

    def infos(self, core: Core, rows: Ints | None = None) -> Infos:
        """Return the infos of all inquiries; or of ``rows``, and nothing (None, 0, False) elsewhere.

        They share one mask, which tells whose they are.
        """
        if rows is None:
            found, mask = self._said(core.place, core.turn.copy()), np.ones(core.inquiries, np.bool_)
        else:
            mask = mask_of(rows, core.inquiries)
            found = self._said(core.place.take(rows), core.turn.take(rows))
            found = {name: _spread(values, mask) for name, values in found.items()}
        return found | dict.fromkeys([f"_{name}" for name in found], mask)

    def _said(self, places: Ints, turns: Ints) -> Infos:
        placed = self._placed.take(places)
        return {
            "state": self._names.take(places),
            "turn": turns,
            "accepted": placed["accepted"],
            "hint_level": placed["hint_level"],
            "forced": placed["forced"],
        }


def mask_of(rows: Ints, inquiries: int) -> Bools:
    """Return which inquiries are among ``rows``."""
    mask = np.zeros(inquiries, np.bool_)
    mask[rows] = True
    return mask


def _spread(values: NDArray[Any], mask: Bools) -> NDArray[Any]:
    found = np.full(len(mask), None) if values.dtype == object else np.zeros(len(mask), values.dtype)
    found[mask] = values
    return found
