"""Agreement of two judges on conclusion items, with an interval over trees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.results.statistics import CONFIDENCE, FEWEST_TREES

GRADES = (0.0, 0.6, 1.0)
RESAMPLES = 1_000
"""Bootstrap resamples of the trees for the interval of κ."""
SEED = 0
"""Seed of the bootstrap, so that equal scores have equal intervals."""

ScorePair = tuple[str, float | None, float | None]
"""Tree id and the scores of one item by two judges. None for unscored."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two judges on conclusion items."""

    kappa: float | None
    """Cohen's κ with linear weights over the grades 0, 0.6, 1, in [-1, 1]. None if both give one and the same grade."""
    low: float | None
    high: float | None
    """95 % interval: percentiles over resampled trees. None below `FEWEST_TREES` trees."""
    same: float | None
    """Share of items with equal grades, in [0, 1]."""
    difference: float | None
    """Mean absolute difference of the scores, in [0, 1]."""
    items: int
    """n: items scored by both."""
    trees: int
    """G: trees of these items."""
    unscored: int
    """Items left unscored by at least one of the two."""

    def __str__(self) -> str:
        if self.kappa is None:
            return "–"
        return f"{self.kappa:.2f}" + ("" if self.low is None else f" [{self.low:.2f}, {self.high:.2f}]")


def agreement(pairs: Iterable[ScorePair]) -> Agreement:
    """Return the agreement over ``pairs``, one per item.

    A score between two grades counts as the nearest one, midway as the lower one.
    """
    by_tree: dict[str, list[tuple[float, float]]] = defaultdict(list)
    unscored = 0
    for tree, first, second in pairs:
        if first is None or second is None:
            unscored += 1
        else:
            by_tree[tree].append((first, second))
    if not by_tree:
        return Agreement(None, None, None, None, None, 0, 0, unscored)
    scores = [np.array(found, np.float64) for found in by_tree.values()]
    counts = np.stack([_grade_counts(_nearest_grades(found)) for found in scores])
    whole, table = np.concatenate(scores), counts.sum(axis=0)
    (kappa,) = _kappas(table[None]).tolist()
    low, high = _bootstrap(counts) if len(counts) >= FEWEST_TREES else (None, None)
    return Agreement(
        kappa=None if np.isnan(kappa) else kappa,
        low=low,
        high=high,
        same=float(np.trace(table) / table.sum()),
        difference=float(np.abs(whole[:, 0] - whole[:, 1]).mean()),
        items=len(whole),
        trees=len(scores),
        unscored=unscored,
    )


def item_pairs(
    first: Mapping[tuple[str, str], Sequence[float | None]], second: Mapping[tuple[str, str], Sequence[float | None]]
) -> list[ScorePair]:
    """Pair the item scores of two judges, given by (tree id, name of the conclusion), on the conclusions of both."""
    return [
        (key[0], mine, theirs)
        for key in first
        if key in second
        for mine, theirs in zip(first[key], second[key], strict=True)
    ]


def _nearest_grades(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the index of the nearest grade. Rounding makes a score midway count as the lower one."""
    distances = np.abs(scores[..., None] - np.array(GRADES))
    return np.asarray(distances.round(9).argmin(axis=-1), np.int64)


def _grade_counts(grades: NDArray[np.int64]) -> NDArray[np.float64]:
    """Count items by the grades of the two judges, shape ``(3, 3)``."""
    counts = np.zeros((len(GRADES), len(GRADES)), np.float64)
    np.add.at(counts, (grades[:, 0], grades[:, 1]), 1)
    return counts


def _kappas(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the linearly weighted κ of each table of counts, shape ``(tables, 3, 3)``. NaN where it is undefined.

    Unlike scikit-learn's `cohen_kappa_score` it takes many tables at once, for the bootstrap.
    """
    steps = np.arange(len(GRADES))
    weights = np.abs(steps[:, None] - steps)
    by_chance = counts.sum(axis=2)[:, :, None] * counts.sum(axis=1)[:, None, :] / counts.sum(axis=(1, 2))[:, None, None]
    expected = (weights * by_chance).sum(axis=(1, 2))
    found = (weights * counts).sum(axis=(1, 2))
    ratios: NDArray[np.float64] = np.divide(found, expected, out=np.full(len(counts), np.nan), where=expected > 0)
    return 1 - ratios


def _bootstrap(by_tree: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """Return the interval of κ over resampled trees, from their counts, shape ``(trees, 3, 3)``."""
    draws = np.random.default_rng(SEED).integers(len(by_tree), size=(RESAMPLES, len(by_tree)))
    kappas = _kappas(by_tree[draws].sum(axis=1))
    kappas = kappas[~np.isnan(kappas)]
    if not len(kappas):
        return None, None
    low, high = np.quantile(kappas, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def agreement_table(found: Mapping[tuple[str, str], Agreement]) -> list[list[str]]:
    """Return the agreement of each pair of judges as lines of cells, the heading first."""
    lines = [["judge", "with", "κ (linear)", "same grade", "mean difference", "items (trees)", "unscored"]]
    for (one, other), each in found.items():
        shares = ("–" if share is None else f"{share:.3f}" for share in (each.same, each.difference))
        lines.append([one, other, str(each), *shares, f"{each.items} ({each.trees})", str(each.unscored)])
    return lines


def agreements_as_plain(found: Mapping[tuple[str, str], Agreement]) -> list[dict[str, Any]]:
    """Return the agreement of each pair of judges as plain values, for JSON."""
    return [{"judge": one, "with": other, **asdict(each)} for (one, other), each in found.items()]


def two_digits(value: float | None) -> str:
    """Format a mean for a table."""
    return "–" if value is None else f"{value:.2f}"
