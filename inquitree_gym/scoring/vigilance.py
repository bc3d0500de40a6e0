"""Signal detection of fake results: each result is a trial, and redoing its study is the answer "fake".

The sensitivity d′ measures discrimination, the criterion c the bias towards redoing:

    d′ = z(H) − z(F)        c = −(z(H) + z(F)) / 2

with H the hit rate, F the false-alarm rate and z the inverse of the normal distribution function. The log-linear
correction (Hautus 1995) keeps z finite: it adds one trial to each answer, split between fakes and true results in
proportion to their numbers. With equal numbers this adds one half to every cell; with unequal ones, as fake levels
produce, the proportional split keeps d′ at 0 for an agent that redoes fakes and true results equally often.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from inquitree_gym.scoring.statistics import Estimate, clustered_mean, minus

_NO_SPREAD = 1e-12
HITS, FALSE_ALARMS, GAP, D_PRIME, CRITERION = "hits", "false alarms", "hits − false alarms", "d′", "c"


@dataclass(frozen=True, slots=True)
class Trial:
    """One result with the answer to it."""

    tree: str
    fake: bool
    doubted: float
    """1 for redone or called invalid, else 0; a share in [0, 1] for several answers."""
    at: float = 0.0
    """Coordinate for `slopes`, such as the position in the episode."""
    level: int = 0
    """Fake level of the episode."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of trials and of answers "fake", which may be fractional."""

    fakes: float = 0
    hits: float = 0
    """Fakes answered with "fake"."""
    trues: float = 0
    false_alarms: float = 0
    """True results answered with "fake"."""

    @classmethod
    def of(cls, fake: bool, doubted: float) -> Self:
        """Return the counts of one trial; see `Trial`."""
        return cls(1, doubted) if fake else cls(trues=1, false_alarms=doubted)

    @property
    def results(self) -> float:
        """Number of results, true or fake."""
        return self.fakes + self.trues

    @property
    def redo_rate(self) -> float | None:
        """Share of results answered with "fake", in [0, 1]; None without a result."""
        return (self.hits + self.false_alarms) / self.results if self.results else None

    @property
    def hit_rate(self) -> float | None:
        """H, in [0, 1]; None without a fake."""
        return self.hits / self.fakes if self.fakes else None

    @property
    def false_alarm_rate(self) -> float | None:
        """F, in [0, 1]; None without a true result."""
        return self.false_alarms / self.trues if self.trues else None

    @property
    def gap(self) -> float | None:
        """H − F, in [-1, 1]; None if either is None."""
        return minus(self.hit_rate, self.false_alarm_rate)

    @property
    def d_prime(self) -> float | None:
        """Corrected sensitivity d′; None without both kinds of results."""
        scores = self._z_scores()
        return None if scores is None else scores[0] - scores[1]

    @property
    def criterion(self) -> float | None:
        """Corrected criterion c: negative for a bias towards redoing, positive for a bias against it."""
        scores = self._z_scores()
        return None if scores is None else -(scores[0] + scores[1]) / 2

    def __add__(self, other: Counts) -> Counts:
        fakes, trues = self.fakes + other.fakes, self.trues + other.trues
        return Counts(fakes, self.hits + other.hits, trues, self.false_alarms + other.false_alarms)

    def _z_scores(self) -> tuple[float, float] | None:
        if not self.fakes or not self.trues:
            return None
        from scipy.special import ndtri

        share = self.fakes / (self.fakes + self.trues)
        hit = (self.hits + share) / (self.fakes + 2 * share)
        false = (self.false_alarms + 1 - share) / (self.trues + 2 * (1 - share))
        return float(ndtri(hit)), float(ndtri(false))


_PROPERTIES = {
    HITS: "hit_rate", FALSE_ALARMS: "false_alarm_rate", GAP: "gap", D_PRIME: "d_prime", CRITERION: "criterion",
}  # fmt: skip
SENSITIVITY = tuple(_PROPERTIES)
"""Names of the estimates of `sensitivity`."""


def count(trials: Iterable[Trial]) -> dict[str, Counts]:
    """Return the counts by tree, pooled over its episodes: one episode has too few trials for a d′."""
    found: dict[str, Counts] = {}
    for trial in trials:
        found[trial.tree] = found.get(trial.tree, Counts()) + Counts.of(trial.fake, trial.doubted)
    return found


def sensitivity(counts: Mapping[str, Counts]) -> dict[str, Estimate]:
    """Return the rates, d′ and c by name: means over trees; see `clustered_mean`."""
    return {
        name: clustered_mean((tree, getattr(each, rate)) for tree, each in counts.items())
        for name, rate in _PROPERTIES.items()
    }


def sensitivity_difference(ours: Mapping[str, Counts], theirs: Mapping[str, Counts]) -> dict[str, Estimate]:
    """Return the means of ours − theirs by name, over the trees in both."""
    shared = [tree for tree in ours if tree in theirs]
    return {
        name: clustered_mean((tree, minus(getattr(ours[tree], rate), getattr(theirs[tree], rate))) for tree in shared)
        for name, rate in _PROPERTIES.items()
    }


def slopes(trials: Iterable[Trial]) -> dict[str, Estimate]:
    """Return the change of hits, false alarms and their gap per unit of `Trial.at`: mean slopes over trees.

    Each tree has one least-squares slope for its fakes and one for its true results, with an intercept per fake level,
    so that differences between trees and levels do not count as a change. A tree has no slope if the results of each
    level share one coordinate.
    """
    by_tree: dict[str, tuple[list[Trial], list[Trial]]] = defaultdict(lambda: ([], []))
    for trial in trials:
        by_tree[trial.tree][not trial.fake].append(trial)
    found = {tree: (_slope(fakes), _slope(trues)) for tree, (fakes, trues) in by_tree.items()}
    return {
        HITS: clustered_mean((tree, hit) for tree, (hit, _) in found.items()),
        FALSE_ALARMS: clustered_mean((tree, false) for tree, (_, false) in found.items()),
        GAP: clustered_mean((tree, minus(*both)) for tree, both in found.items()),
    }


def _slope(trials: Sequence[Trial]) -> float | None:
    at, doubted, level = (
        np.array([(trial.at, trial.doubted, trial.level) for trial in trials], np.float64).reshape(-1, 3).T
    )
    for each in np.unique(level):
        at[level == each] -= at[level == each].mean()
    spread = float(at @ at)
    return float(at @ doubted) / spread if spread > _NO_SPREAD else None
