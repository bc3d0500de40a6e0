"""Calibration of stated beliefs: how well the stated probability that a result is fake agrees with the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from inquitree_gym.scoring.statistics import Estimate, clustered_mean

BRIER, AUC = "Brier", "AUC"


class Belief(NamedTuple):
    """A belief stated about a result."""

    fake: bool
    """True if the result was fake."""
    stated: float
    """Stated probability that it was, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Scores of stated beliefs."""

    stated: int
    """n: results with a stated belief; the others are absent from both scores."""
    brier: float | None
    """Brier score: mean squared difference of stated probability and truth, in [0, 1], 0 at best; None without n."""
    auc: float | None
    """Probability that a fake gets a higher probability than a true result, ties counting half, in [0, 1]; None without
    both kinds of results."""

    @classmethod
    def of(cls, beliefs: Sequence[Belief]) -> Self:
        """Score some beliefs."""
        fakes, trues = (np.array([each.stated for each in beliefs if each.fake == fake]) for fake in (True, False))
        brier = float(np.mean([(each.stated - each.fake) ** 2 for each in beliefs])) if beliefs else None
        higher = (np.sign(fakes[:, None] - trues) + 1) / 2
        return cls(len(beliefs), brier, float(higher.mean()) if higher.size else None)


def calibration(by_tree: Mapping[str, Sequence[Belief]]) -> dict[str, Estimate]:
    """Return Brier score and AUC by name: means over trees, each from all beliefs about its results."""
    found = {tree: Calibration.of(beliefs) for tree, beliefs in by_tree.items()}
    return {
        BRIER: clustered_mean((tree, each.brier) for tree, each in found.items()),
        AUC: clustered_mean((tree, each.auc) for tree, each in found.items()),
    }
