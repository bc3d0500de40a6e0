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


class Contrast(NamedTuple):
    """A difference of two groups of trees."""

    estimate: Estimate
    """Mean of the one group − mean of the other; ``trees`` and ``episodes`` are those of both."""
    degrees: float | None
    """Welch's degrees of freedom; None without an interval, and where neither group varies."""


def clustered_mean(values: Iterable[tuple[str, float | None]]) -> Estimate:
    """Return the mean over trees of (tree id, value) pairs; a value of None is absent, not zero."""
    by_tree = _by_tree(values)
    means = np.array([np.mean(found) for found in by_tree.values()], np.float64)
    episodes = sum(map(len, by_tree.values()))
    if not len(means):
        return Estimate(None, None, None, 0, 0)
    mean = float(means.mean())
    if len(means) < FEWEST_TREES:
        return Estimate(mean, None, None, len(means), episodes)
    half = quantile(len(means) - 1) * float(means.std(ddof=1)) / math.sqrt(len(means))
    return Estimate(mean, mean - half, mean + half, len(means), episodes)


def paired_difference(
    ours: Mapping[tuple[str, int], float | None], theirs: Mapping[tuple[str, int], float | None]
) -> Estimate:
    """Return the mean of ours − theirs over the (tree id, seed) pairs that both have, clustered by tree."""
    shared = [key for key in ours if key in theirs]
    return clustered_mean((key[0], minus(ours[key], theirs[key])) for key in shared)


def minus(one: float | None, other: float | None) -> float | None:
    """Return one − other; None where one of them is absent."""
    return None if one is None or other is None else one - other


def unpaired_difference(
    ones: Iterable[tuple[str, float | None]], others: Iterable[tuple[str, float | None]]
) -> Contrast:
    """Return the mean of ones − the mean of others, over (tree id, value) pairs of two groups of trees.

    Welch's interval over the tree means, where each group has `FEWEST_TREES` trees or more.

    Raises:
        ValueError: a tree is in both groups; such values are to be paired.
    """
    groups = [_by_tree(values) for values in (ones, others)]
    if shared := groups[0].keys() & groups[1].keys():
        raise ValueError(f"{', '.join(sorted(shared))} in both groups; pair them by `paired_difference`")
    means = [np.array([np.mean(found) for found in group.values()], np.float64) for group in groups]
    trees, episodes = sum(map(len, means)), sum(len(found) for group in groups for found in group.values())
    if not all(map(len, means)):
        return Contrast(Estimate(None, None, None, trees, episodes), None)
    difference = float(means[0].mean() - means[1].mean())
    if min(map(len, means)) < FEWEST_TREES:
        return Contrast(Estimate(difference, None, None, trees, episodes), None)
    parts = [float(found.var(ddof=1)) / len(found) for found in means]
    if not sum(parts):
        return Contrast(Estimate(difference, difference, difference, trees, episodes), None)
    degrees = sum(parts) ** 2 / sum(part**2 / (len(found) - 1) for part, found in zip(parts, means, strict=True))
    half = quantile(degrees) * math.sqrt(sum(parts))
    return Contrast(Estimate(difference, difference - half, difference + half, trees, episodes), degrees)


def quantile(degrees: float) -> float:
    """Return the factor of the 95 % interval: the quantile of a t distribution with so many degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))


def _by_tree(values: Iterable[tuple[str, float | None]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for tree, value in values:
        if value is not None:
            found[tree].append(value)
    return found
