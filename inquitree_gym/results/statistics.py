"""Means over clusters, with intervals that treat each cluster as one observation.

The episodes of one cluster are not independent. The cluster of an inquiry is its tree. The cluster of an episode of
projections is its paper.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

CONFIDENCE = 0.95
FEWEST_TREES = 5
"""Fewest trees for which an interval is given."""


class Estimate(NamedTuple):
    """Mean over clusters with its 95 % interval."""

    mean: float | None
    """Mean of the cluster means. None without values."""
    low: float | None
    high: float | None
    """The t interval over cluster means, with G − 1 degrees of freedom. None below `FEWEST_TREES` clusters."""
    trees: int
    """G: clusters, such as trees, with at least one value."""
    episodes: int
    """n: values."""
    values: tuple[float, ...] = ()
    """Tree means by tree id, shown in place of an interval below `FEWEST_TREES` trees. Empty otherwise."""

    def __str__(self) -> str:
        if self.mean is None:
            return "–"
        interval = "" if self.low is None else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.mean:.3f}{interval}"


@dataclass(frozen=True, slots=True)
class Contrast:
    """Difference between the means of two groups of trees."""

    estimate: Estimate
    """Mean of the first group − mean of the second. ``trees`` and ``episodes`` count both."""
    degrees: float | None
    """Welch's degrees of freedom. None without an interval, or if neither group varies."""


def clustered_mean(values: Iterable[tuple[str, float | None]]) -> Estimate:
    """Return the mean over clusters of (cluster, value) pairs. A value of None is absent, not zero."""
    by_tree = _by_tree(values)
    means = np.array([np.mean(found) for found in by_tree.values()], np.float64)
    episodes = sum(map(len, by_tree.values()))
    if not len(means):
        return Estimate(None, None, None, 0, 0)
    mean = float(means.mean())
    if len(means) < FEWEST_TREES:
        shown = [value for _, value in sorted(zip(by_tree, means.tolist(), strict=True))]
        return Estimate(mean, None, None, len(means), episodes, tuple(shown))
    half = quantile(len(means) - 1) * float(means.std(ddof=1)) / math.sqrt(len(means))
    return Estimate(mean, mean - half, mean + half, len(means), episodes)


def ratio_of_means(parts: Mapping[str, tuple[float, float]]) -> Estimate:
    """Return the mean of the first numbers over clusters, divided by that of the second ones. None where that is 0.

    Unlike a mean of ratios, it is not biased by clusters whose second number is small or depends on the first. Its
    interval is that of the clusters' residuals around the ratio, which is exact to first order (Cochran 1977, *Sampling
    Techniques*, chapter 6); ``values`` are ratio plus residual. Clusters with 0 of both are left out.
    """
    known = {cluster: pair for cluster, pair in parts.items() if any(pair)}
    part, whole = np.mean(list(known.values()), axis=0) if known else (0.0, 0.0)
    if not whole:
        return Estimate(None, None, None, 0, 0)
    ratio = part / whole
    return clustered_mean((cluster, float(ratio + (a - ratio * b) / whole)) for cluster, (a, b) in known.items())


def stratified_mean(strata: Sequence[Iterable[tuple[str, float | None]]]) -> Estimate:
    """Return the mean of the means of strata of (cluster, value) pairs, each stratum with the same weight.

    It has no interval, except that a single stratum gives `clustered_mean`. Strata without values are left out.
    """
    estimates = [clustered_mean(values) for values in strata]
    if len(estimates) == 1:
        return estimates[0]
    means = [estimate.mean for estimate in estimates if estimate.mean is not None]
    return Estimate(
        mean=fmean(means) if means else None,
        low=None,
        high=None,
        trees=sum(estimate.trees for estimate in estimates),
        episodes=sum(estimate.episodes for estimate in estimates),
    )


def paired_difference(
    ours: Mapping[tuple[str, int], float | None], theirs: Mapping[tuple[str, int], float | None]
) -> Estimate:
    """Return the mean of ours − theirs over the (cluster, seed) pairs in both."""
    shared = [key for key in ours if key in theirs]
    return clustered_mean((key[0], minus(ours[key], theirs[key])) for key in shared)


def minus(one: float | None, other: float | None) -> float | None:
    """Return one − other. None if either is None."""
    return None if one is None or other is None else one - other


def unpaired_difference(
    ones: Iterable[tuple[str, float | None]], others: Iterable[tuple[str, float | None]]
) -> Contrast:
    """Return the difference of two groups of (tree id, value) pairs, with Welch's interval over the tree means.

    The interval needs `FEWEST_TREES` trees in each group. Raise `ValueError` for a tree in both groups.
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
    """Return the factor of the 95 % interval: the 0.975 quantile of a t distribution with these degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))


def _by_tree(values: Iterable[tuple[str, float | None]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for tree, value in values:
        if value is not None:
            found[tree].append(value)
    return found
