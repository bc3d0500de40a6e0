"""Telling fake results from true ones, as signal detection: a result is a trial, to redo its study is to say "fake".

The sensitivity d′ says how well the two are told apart, the criterion c how readily anything is redone:

    d′ = z(H) − z(F)        c = −(z(H) + z(F)) / 2

with H the hit rate, F the false-alarm rate and z the inverse of the normal distribution. Rates of 0 and 1, for which z
is infinite, are kept off by the log-linear correction (Hautus 1995) of every pair of rates: one trial is added to each
answer, split between fakes and true results as the trials are. With as many of the one as of the other this adds one
half to every cell; with unequal numbers, which fake levels bring, the split makes d′ 0 for whoever redoes both alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from inquitree_gym.scoring.statistics import Estimate, clustered_mean, minus

_NO_SPREAD = 1e-12
HITS, FALSE_ALARMS, GAP, D_PRIME, CRITERION = "hits", "false alarms", "hits − false alarms", "d′", "c"


class Trial(NamedTuple):
    """One result, and what was said of it."""

    tree: str
    fake: bool
    doubted: float
    """1 where it was redone, or called wrong; 0 where not; a share where it was asked about several times."""
    at: float = 0.0
    """Where it stood, on an axis such as the position in the episode."""
    level: int = 0
    """Fake level of the episode."""


class Counts(NamedTuple):
    """Trials and answers, summed; shares of answers may be broken numbers."""

    fakes: float = 0.0
    hits: float = 0.0
    """Fakes that were doubted."""
    trues: float = 0.0
    false_alarms: float = 0.0
    """True results that were doubted."""

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
        """H − F, in [-1, 1]; None where one of them is."""
        hit, false = self.hit_rate, self.false_alarm_rate
        return None if hit is None or false is None else hit - false

    @property
    def d_prime(self) -> float | None:
        """Sensitivity d′, corrected; None without both kinds of results."""
        scores = self._z_scores()
        return None if scores is None else scores[0] - scores[1]

    @property
    def criterion(self) -> float | None:
        """Criterion c, corrected: below 0 for whoever redoes most, above 0 for whoever redoes little."""
        scores = self._z_scores()
        return None if scores is None else -(scores[0] + scores[1]) / 2

    @classmethod
    def of(cls, trial: Trial) -> Counts:
        """Return the counts of one trial."""
        return cls(fakes=1, hits=trial.doubted) if trial.fake else cls(trues=1, false_alarms=trial.doubted)

    def __add__(self, other: object) -> Counts:
        """Sum field by field."""
        if not isinstance(other, Counts):
            return NotImplemented
        return Counts._make(mine + theirs for mine, theirs in zip(self, other, strict=True))

    def _z_scores(self) -> tuple[float, float] | None:
        if not self.fakes or not self.trues:
            return None
        from scipy.special import ndtri

        share = self.fakes / (self.fakes + self.trues)
        hit = (self.hits + share) / (self.fakes + 2 * share)
        false = (self.false_alarms + 1 - share) / (self.trues + 2 * (1 - share))
        return float(ndtri(hit)), float(ndtri(false))


_MEASURES: dict[str, Callable[[Counts], float | None]] = {
    HITS: lambda counts: counts.hit_rate,
    FALSE_ALARMS: lambda counts: counts.false_alarm_rate,
    GAP: lambda counts: counts.gap,
    D_PRIME: lambda counts: counts.d_prime,
    CRITERION: lambda counts: counts.criterion,
}
SENSITIVITY = tuple(_MEASURES)
"""What `sensitivity` estimates."""


def count(trials: Iterable[Trial]) -> dict[str, Counts]:
    """Return the counts by tree: the trials of one tree are pooled, since one episode has too few for a d′."""
    found: dict[str, Counts] = {}
    for trial in trials:
        found[trial.tree] = found.get(trial.tree, Counts()) + Counts.of(trial)
    return found


def sensitivity(counts: Mapping[str, Counts]) -> dict[str, Estimate]:
    """Return rates, d′ and c: means over trees, each tree's from its own counts; see `clustered_mean`."""
    return {
        name: clustered_mean((tree, measure(each)) for tree, each in counts.items())
        for name, measure in _MEASURES.items()
    }


def sensitivity_difference(ours: Mapping[str, Counts], theirs: Mapping[str, Counts]) -> dict[str, Estimate]:
    """Return ours − theirs, tree by tree, over the trees that both have."""
    shared = [tree for tree in ours if tree in theirs]
    return {
        name: clustered_mean((tree, minus(measure(ours[tree]), measure(theirs[tree]))) for tree in shared)
        for name, measure in _MEASURES.items()
    }


def slopes(trials: Iterable[Trial]) -> dict[str, Estimate]:
    """Return how hits, false alarms and their gap change per unit of `Trial.at`: means over trees of a line's slope.

    Each tree has lines of its own, by least squares through its fakes and through its true results, parallel ones for
    its fake levels; so what trees and levels differ by does not look like a change. A tree whose results of a level all
    stand at one place has no slope.
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
