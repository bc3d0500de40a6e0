"""Alignment of a projection with the true claims, and its score (ProjectionBench, arXiv:2605.30284, section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.projection.settings import Area, Variant

Floats = NDArray[np.float64]

MAX_EXTRAS = 3
"""Largest number of extraneous claims of a projection."""
ORDERS = 2
"""Number of orders in which a pair of claims is rated. The ratings are averaged."""


class ProjectionScore(NamedTuple):
    """Score of one or many projections. Each field is a float, or an array of the shape of the leading axes."""

    true_positives: Floats
    """TP ≥ 0."""
    false_positives: Floats
    """FP ≥ 0."""
    relevant: Floats
    """RE: true claims, and extraneous claims that are right."""
    precision: Floats
    """P = TP/(TP + FP) in [0, 1]. 0 without true positives."""
    recall: Floats
    """R = TP/RE in [0, 1]."""
    f1: Floats
    """F1 = 2PR/(P + R) in [0, 1]. 0 without true positives."""


def projection_score(
    pairs: Floats, extras: Floats, *, claims: NDArray[np.int64] | int | None = None, variant: Variant = "paper"
) -> ProjectionScore:
    """Score one alignment, or many at once.

    With M true claims, pair i rated a_i, and the mean rating ā_j of an extraneous claim over the true ones:
    TP = Σ max(a_i, 0) + Σ max(ā_j, 0). FP = −Σ min(a_i, 0) − Σ min(ā_j, 0). RE = M + #{j: ā_j > 0}.

    Args:
        pairs: shape (…, M), ratings in [-1, 1] of each true claim with its analogous claim. NaN where there is no
            analogous claim, and after the last claim of a task with fewer than M.
        extras: shape (…, E), mean ratings in [-1, 1] of the extraneous claims. NaN for none.
        claims: numbers of true claims, of the leading shape. M if absent.
        variant: ``"strict"`` counts paired claims alone: P = TP over all projected claims, R = TP/M.
    """
    true = np.asarray(pairs.shape[-1] if claims is None else claims, dtype=np.float64)
    right, wrong = _positive_part(pairs), _positive_part(-pairs)
    if variant == "strict":
        projected = _count(~np.isnan(pairs)) + _count(~np.isnan(extras))
        return _scores(right, projected - right, true)
    right, wrong = right + _positive_part(extras), wrong + _positive_part(-extras)
    return _scores(right, wrong, true + _count(extras > 0))


def _positive_part(ratings: Floats) -> Floats:
    """Return the sum of the positive ratings along the last axis."""
    total: Floats = np.fmax(ratings, 0.0).sum(axis=-1)
    return total


def _count(flags: NDArray[np.bool_]) -> Floats:
    count: Floats = flags.sum(axis=-1).astype(np.float64)
    return count


def _scores(right: Floats, wrong: Floats, relevant: Floats) -> ProjectionScore:
    some = right > 0
    precision = np.divide(right, right + wrong, out=np.zeros_like(right), where=some)
    recall = right / relevant
    f1 = np.divide(2 * precision * recall, precision + recall, out=np.zeros_like(right), where=some)
    return ProjectionScore(right, wrong, relevant, precision, recall, f1)


def level_weights(levels: int) -> Floats:
    """Return the weights of the F1 of each level, which sum to 1: the trapezoid with unit steps, scaled.

    Three levels weigh ¼, ½, ¼, so that the return of an episode is AUC/2. A single level weighs 1.
    """
    if levels == 1:
        return np.ones(1)
    weights = np.full(levels, 1.0)
    weights[[0, -1]] = 0.5
    share: Floats = weights / weights.sum()
    return share


def area_under_levels(f1: Floats, auc: Area = "trapezoid") -> Floats:
    """Return the area under the F1 of the levels, along the last axis, by the trapezoid with unit steps.

    It lies in [0, K − 1] for K levels, so in [0, 2] for three (AUC in the paper's Table 2). One level gives its F1.
    With ``auc="mean"`` it is the mean of the levels, in [0, 1].
    """
    if auc == "mean":
        mean: Floats = f1.mean(axis=-1)
        return mean
    levels = f1.shape[-1]
    area: Floats = (f1 * level_weights(levels)).sum(axis=-1) * max(1, levels - 1)
    return area


@dataclass(frozen=True, eq=False)
class Alignment:
    """Ratings of the claims of one projection against the M true claims of a task."""

    analogous: tuple[str | None, ...]
    """The analogous claim of each true claim. None for a true claim without one."""
    extraneous: tuple[str, ...]
    """Extraneous claims: projected claims that are in no pair, at most `MAX_EXTRAS`."""
    pair_ratings: Floats
    """Shape (M, `ORDERS`): −1 for opposed directions, 0 another effect, 1 the same direction. NaN for no pair."""
    extra_ratings: Floats
    """Shape (E, M, `ORDERS`): ratings of each extraneous claim against every true claim."""
    reasons: tuple[str, ...] = ()
    """Reasons of the pairs' ratings, one per true claim. Empty if the judge gives none."""

    @cached_property
    def pairs(self) -> Floats:
        """Shape (M,): ratings averaged over the orders, NaN without an analogous claim."""
        mean: Floats = self.pair_ratings.mean(axis=-1)
        return mean

    @cached_property
    def extras(self) -> Floats:
        """Shape (E,): ratings averaged over orders and true claims."""
        mean: Floats = self.extra_ratings.mean(axis=(1, 2))
        return mean

    @cached_property
    def complete(self) -> bool:
        """True if no rating is missing. A projection with a missing rating is unscored."""
        due = np.array([claim is not None for claim in self.analogous], np.bool_)
        return not (np.isnan(self.pair_ratings[due]).any() or np.isnan(self.extra_ratings).any())

    def score(self, variant: Variant = "paper") -> ProjectionScore:
        """Return the score. See `projection_score`."""
        return projection_score(self.pairs, self.extras, variant=variant)


class ProjectionJudge(Protocol):
    """Judge of projections about one task."""

    @property
    def name(self) -> str:
        """Name by which the judge was requested."""

    @property
    def version(self) -> int:
        """Version of its ratings."""

    def judge(self, projection: str) -> Alignment:
        """Align a projection, one sentence or one claim per line, with the true claims."""
