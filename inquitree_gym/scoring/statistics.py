"""Means with honest intervals: episodes of one tree are no independent evidence, so trees are the clusters."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

CONFIDENCE = 0.95
FEWEST_TREES = 5
"""Below so many trees a mean is shown without an interval."""


class Estimate(NamedTuple):
    """A mean over trees."""

    mean: float | None
    """Mean of the tree means; None without a value."""
    low: float | None
    high: float | None
    """95 % interval (t over tree means, G − 1 degrees of freedom); None below `FEWEST_TREES` trees."""
    trees: int
    """G: trees with at least one value."""
    episodes: int
    """n: values."""

    def __str__(self) -> str:
        if self.mean is None:
            return "–"
        interval = "" if self.low is None else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.mean:.3f}{interval}"


def clustered_mean(values: Iterable[tuple[str, float | None]]) -> Estimate:
    """Return the mean over trees of (tree id, value) pairs; a value of None is absent, not zero."""
    by_tree: dict[str, list[float]] = defaultdict(list)
    for tree, value in values:
        if value is not None:
            by_tree[tree].append(value)
    means = np.array([np.mean(found) for found in by_tree.values()], np.float64)
    episodes = sum(map(len, by_tree.values()))
    if not len(means):
        return Estimate(None, None, None, 0, 0)
    mean = float(means.mean())
    if len(means) < FEWEST_TREES:
        return Estimate(mean, None, None, len(means), episodes)
    half = _quantile(len(means) - 1) * float(means.std(ddof=1)) / math.sqrt(len(means))
    return Estimate(mean, mean - half, mean + half, len(means), episodes)


def paired_difference(
    ours: Mapping[tuple[str, int], float | None], theirs: Mapping[tuple[str, int], float | None]
) -> Estimate:
    """Return the mean of ours − theirs over the (tree id, seed) pairs that both have, clustered by tree."""
    shared = [key for key in ours if key in theirs]
    return clustered_mean((key[0], _minus(ours[key], theirs[key])) for key in shared)


def _minus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _quantile(degrees: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))
