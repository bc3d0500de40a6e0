"""How far two judges agree, or a judge with what is expected."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.judges import FULL, NOTHING, PARTIAL
from inquitree_gym.scoring.statistics import CONFIDENCE, FEWEST_TREES

GRADES = (NOTHING, PARTIAL, FULL)
DRAWS = 1_000
"""Resamples behind an interval."""
SEED = 0
"""Of the resampling: the same pairs have the same interval."""

Pair = tuple[str, float | None, float | None]
"""Tree id, and the scores of one item by one judge and by the other; None where it is unscored."""


class Agreement(NamedTuple):
    """Agreement of two judges on conclusion items."""

    kappa: float | None
    """Cohen's κ with linear weights over the grades 0, 0.6, 1, in [-1, 1]; None where neither tells items apart."""
    low: float | None
    high: float | None
    """95 % interval: percentiles over resampled trees; None below `FEWEST_TREES` trees."""
    same: float | None
    """Share of items with the same grade, in [0, 1]."""
    difference: float | None
    """Mean absolute difference of the scores, in [0, 1]."""
    items: int
    """n: items that both scored."""
    trees: int
    """G: trees of these items."""
    unscored: int
    """Items that at least one of the two left unscored."""

    def __str__(self) -> str:
        if self.kappa is None:
            return "–"
        return f"{self.kappa:.2f}" + ("" if self.low is None else f" [{self.low:.2f}, {self.high:.2f}]")


def agreement(pairs: Iterable[Pair]) -> Agreement:
    """Return the agreement over ``pairs``, one per item; a score between two grades counts as the nearest one.

    Midway it counts as the lower one.
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
    counts = np.stack([_counts(_nearest(found)) for found in scores])
    whole, table = np.concatenate(scores), counts.sum(axis=0)
    (kappa,) = _kappas(table[None]).tolist()
    low, high = _interval(counts) if len(counts) >= FEWEST_TREES else (None, None)
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
) -> list[Pair]:
    """Pair the item scores of two judges by (tree id, name of the conclusion), where both have judged it."""
    return [
        (key[0], mine, theirs)
        for key in first
        if key in second
        for mine, theirs in zip(first[key], second[key], strict=True)
    ]


def _nearest(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the index of the nearest grade; midway the lower one, whatever floating point makes of the middle."""
    distances = np.abs(scores[..., None] - np.array(GRADES))
    return np.asarray(distances.round(9).argmin(axis=-1), np.int64)


def _counts(grades: NDArray[np.int64]) -> NDArray[np.float64]:
    """Count items by grade of the one and of the other judge, shape ``(3, 3)``."""
    counts = np.zeros((len(GRADES), len(GRADES)), np.float64)
    np.add.at(counts, (grades[:, 0], grades[:, 1]), 1)
    return counts


def _kappas(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return κ with linear weights of tables of counts, shape ``(tables, 3, 3)``; NaN where nothing is told apart.

    Many tables at once, for the resampling; scikit-learn's `cohen_kappa_score` takes one.
    """
    steps = np.arange(len(GRADES))
    weights = np.abs(steps[:, None] - steps)
    by_chance = counts.sum(axis=2)[:, :, None] * counts.sum(axis=1)[:, None, :] / counts.sum(axis=(1, 2))[:, None, None]
    expected = (weights * by_chance).sum(axis=(1, 2))
    found = (weights * counts).sum(axis=(1, 2))
    ratios: NDArray[np.float64] = np.divide(found, expected, out=np.full(len(counts), np.nan), where=expected > 0)
    return 1 - ratios


def _interval(by_tree: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """Resample the trees; ``by_tree`` holds their counts, shape ``(trees, 3, 3)``."""
    draws = np.random.default_rng(SEED).integers(len(by_tree), size=(DRAWS, len(by_tree)))
    kappas = _kappas(by_tree[draws].sum(axis=1))
    kappas = kappas[~np.isnan(kappas)]
    if not len(kappas):
        return None, None
    low, high = np.quantile(kappas, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
