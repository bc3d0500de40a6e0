"""How long chance takes: exact laws of the turns that a full traversal needs (L in [3n, n(2H + 3)], appendix B).

The agent ``random`` draws each subtopic from those not yet entered and never fails a study, so the law of its L follows
from the prerequisites alone, by going through the sets of subtopics that can have been visited. `random-menu` has no
such law in closed form, but its chance of a full traversal has one. What is sampled instead is in `play`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.trees import HINT_LEVELS

MAX_SETS = 1 << 15
"""Sets of visited subtopics that an exact law goes through; with more of them it is sampled."""
ERRORS = 1.959964
"""Standard errors on either side of a sampled mean, for 95 %."""
_ROUNDING = 1e-12

Needs = Sequence[int]
"""Per subtopic the bits of its prerequisites, as `Engine.prerequisites`."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """A distribution of L, exact or sampled."""

    turns: NDArray[np.int64]
    """Values of L, rising."""
    weights: NDArray[np.float64]
    """Their probabilities, or their shares of the sample; sum 1."""
    episodes: int | None = None
    """Episodes sampled; None for an exact law."""

    @classmethod
    def of(cls, sample: Sequence[int]) -> Lengths:
        """Return the distribution of a sample."""
        turns, counts = np.unique(np.asarray(sample, np.int64), return_counts=True)
        return cls(turns, counts / len(sample), len(sample))

    @classmethod
    def mixture(cls, parts: Sequence[Lengths]) -> Lengths:
        """Return the mixture of several distributions, each with the same weight; sampled where one of them is."""
        turns, where = np.unique(np.concatenate([part.turns for part in parts]), return_inverse=True)
        weights = np.bincount(where, np.concatenate([part.weights for part in parts])) / len(parts)
        sampled = [part.episodes for part in parts if part.episodes is not None]
        return cls(turns, weights, sum(sampled) if sampled else None)

    @property
    def mean(self) -> float:
        """Mean of L."""
        return float(self.turns @ self.weights)

    @property
    def sd(self) -> float:
        """Standard deviation of L."""
        return math.sqrt(max(float((self.turns - self.mean) ** 2 @ self.weights), 0.0))

    @property
    def half(self) -> float:
        """Half the 95 % interval of the mean that sampling leaves open; 0 for an exact law."""
        return 0.0 if self.episodes is None else ERRORS * self.sd / math.sqrt(max(self.episodes - 1, 1))

    def quantile(self, share: float) -> int:
        """Return the least L that at least ``share`` of the episodes do not exceed."""
        reached = np.cumsum(self.weights) >= share - _ROUNDING
        return int(self.turns[np.argmax(reached)])

    def quantile_interval(self, share: float) -> tuple[int, int]:
        """Return the 95 % interval of a quantile, between two order statistics; the quantile itself where L is exact.

        It takes the sample for independent episodes of one law, so it is none of a mixture over trees.
        """
        if self.episodes is None:
            return self.quantile(share), self.quantile(share)
        from scipy.stats import binom

        low, high = (float(binom.ppf(tail, self.episodes, share)) for tail in (0.025, 0.975))
        return self.quantile(max(low, 1.0) / self.episodes), self.quantile(min(high + 1, self.episodes) / self.episodes)

    def above(self, turns: float) -> float:
        """Return the share of episodes with L beyond ``turns``."""
        return float(self.weights[self.turns > turns].sum())


def expected_turns(p: float) -> float:
    """Return the mean turns of one choice when each draw hits with probability ``p``, the forced move included.

    (1 − (1 − p)^(H + 1)) / p, from 1 at p = 1 to H + 1 at p = 0.
    """
    return (1 - (1 - p) ** (HINT_LEVELS + 1)) / p if p else HINT_LEVELS + 1.0


def analytic_mean(needs: Needs) -> float:
    """Return the mean L of a random agent whose every draw of a subtopic hits with one probability ρ.

    n(2 + `expected_turns`(ρ)), where ρ is the chance that a subtopic stands behind all its d ancestors in a random
    order, 1/(d + 1), averaged over the subtopics. It needs no sets of visited subtopics.
    """
    n = len(needs)
    share = sum(1 / (1 + ancestors.bit_count()) for ancestors in _ancestors(needs)) / n
    return n * (2 + expected_turns(share))


def random_lengths(needs: Needs, max_sets: int = MAX_SETS) -> Lengths | None:
    """Return the exact law of L of the agent ``random`` whose texts are all read as themselves.

    With k of n subtopics visited, a of the others open, a draw hits with p = a/(n − k). The f-th failure comes with
    (1 − p)^f; after a hit the next subtopic is any of the open ones alike, after H + 1 failures it is the hint target,
    the first open one in tree order. Every study is accepted at once. So L = 3n + failures.

    Returns: None where more than ``max_sets`` sets of visited subtopics would have to be gone through.
    """
    n = len(needs)
    ended = np.zeros(n * HINT_LEVELS + 1)
    level = {0: ended.copy()}
    level[0][0] = 1.0
    seen = 0
    while level:
        seen += len(level)
        if seen > max_sets:
            return None
        following: dict[int, NDArray[np.float64]] = {}
        for visited, law in level.items():
            left, open_ = _left(needs, visited)
            if len(left) == len(open_):  # nothing can fail any more
                ended += law
                continue
            for subtopic, part in _choose(law, left, open_):
                after = visited | 1 << subtopic
                following[after] = following[after] + part if after in following else part
        level = following
    failures = np.flatnonzero(ended)
    return Lengths(3 * n + failures, ended[failures] / ended.sum())


def _choose(
    law: NDArray[np.float64], left: Sequence[int], open_: Sequence[int]
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield each subtopic that may come next with the law of failures so far, weighted by its probability."""
    miss = 1 - len(open_) / len(left)
    hit = np.zeros_like(law)
    for failures in range(HINT_LEVELS + 1):
        hit[failures:] += law[: len(law) - failures] * (miss**failures / len(left))
    forced = np.zeros_like(law)
    forced[HINT_LEVELS:] = law[: len(law) - HINT_LEVELS] * miss ** (HINT_LEVELS + 1)
    for subtopic in open_:
        yield subtopic, hit + forced if subtopic == open_[0] else hit


def _left(needs: Needs, visited: int) -> tuple[list[int], list[int]]:
    """Return the subtopics not visited, and those of them whose prerequisites have been."""
    left = [i for i in range(len(needs)) if not visited >> i & 1]
    return left, [i for i in left if not needs[i] & ~visited]


def visited_sets(needs: Needs, max_sets: int = MAX_SETS) -> list[int] | None:
    """Return every set of subtopics that can have been visited, smaller ones first; None if they are too many."""
    found, level = [0], {0}
    while level:
        level = {visited | 1 << i for visited in level for i in _left(needs, visited)[1]}
        found += sorted(level)
        if len(found) > max_sets:
            return None
    return found


def _ancestors(needs: Needs) -> Iterable[int]:
    """Return per subtopic the bits of all that must have been visited before it, directly or not."""
    found = list(needs)
    for _ in needs:
        found = [_join(bits, found) for bits in found]
    return found


def _join(bits: int, of: Sequence[int]) -> int:
    for i, more in enumerate(of):
        if bits >> i & 1:
            bits |= more
    return bits
