"""Distributions of L, the turns of a full traversal, in [3n, n(2H + 3)] (appendix B).

The agent ``random`` draws each subtopic from those not yet entered and never fails a study. The distribution of its L
therefore follows from the prerequisites alone, by a recursion over the reachable sets of visited subtopics. The L of
``random-menu`` has no such form, but its probability of a full traversal has one.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.inquiry.engine import Engine, Event, ObservationKind, Phase, Reading, State
from inquitree_gym.inquiry.menu import DECISIONS
from inquitree_gym.trees import HINT_LEVELS

MAX_SETS = 1 << 15
"""Most sets of visited subtopics in an exact recursion."""
Z_95 = 1.959964
"""Standard errors on either side of a sampled mean, for 95 %."""
MAX_CHANCE_SETS = 1 << 10
"""Most sets of visited subtopics in the recursion of `full_chance`."""
_ROUNDING = 1e-12

Needs = Sequence[int]
"""By subtopic, the bits of its prerequisites, as in `Engine.prerequisites`."""


@dataclass(frozen=True, slots=True)
class TurnDistribution:
    """A distribution of L, exact or sampled."""

    turns: NDArray[np.int64]
    """Values of L, ascending, shape ``(values,)``."""
    weights: NDArray[np.float64]
    """Probability or sample share of each value, shape ``(values,)``. They sum to 1."""
    episodes: int | None = None
    """Number of sampled episodes. None for an exact distribution."""

    @classmethod
    def from_sample(cls, sample: Sequence[int]) -> TurnDistribution:
        """Return the distribution of a sample."""
        turns, counts = np.unique(np.asarray(sample, np.int64), return_counts=True)
        return cls(turns, counts / len(sample), len(sample))

    @classmethod
    def mixture(cls, parts: Sequence[TurnDistribution]) -> TurnDistribution:
        """Return the equally weighted mixture of several distributions. It is exact if all of them are."""
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
        """Half the 95 % sampling interval of the mean. 0 for an exact distribution."""
        return 0.0 if self.episodes is None else Z_95 * self.sd / math.sqrt(max(self.episodes - 1, 1))

    def quantile(self, share: float) -> int:
        """Return the smallest L that at least ``share`` of the episodes do not exceed."""
        reached = np.cumsum(self.weights) >= share - _ROUNDING
        return int(self.turns[np.argmax(reached)])

    def quantile_interval(self, share: float) -> tuple[int, int]:
        """Return the 95 % interval of a quantile between order statistics. For an exact one, the quantile twice.

        The interval assumes independent episodes of one distribution, so it does not hold for a mixture over trees.
        """
        if self.episodes is None:
            return self.quantile(share), self.quantile(share)
        from scipy.stats import binom

        low, high = (float(binom.ppf(tail, self.episodes, share)) for tail in (0.025, 0.975))
        return self.quantile(max(low, 1.0) / self.episodes), self.quantile(min(high + 1, self.episodes) / self.episodes)

    def above(self, turns: float) -> float:
        """Return the share of episodes with L > ``turns``."""
        return float(self.weights[self.turns > turns].sum())


@dataclass(frozen=True, slots=True)
class MenuReadings:
    """Reading of each menu text by phase, in the order of `Menu`: subtopics, studies, decisions."""

    topic: tuple[Reading, ...]
    subtopic: tuple[tuple[Reading, ...], ...]
    """By subtopic under study."""
    result: tuple[Reading, ...]

    def at(self, state: State) -> tuple[Reading, ...]:
        """Return the readings that apply in ``state``."""
        if state.phase == Phase.SUBTOPIC:
            return self.subtopic[state.subtopic]
        return self.topic if state.phase == Phase.TOPIC else self.result

    def drawn(self, state: State) -> tuple[Reading, ...]:
        """Return the readings of the texts that ``random-menu`` draws from in ``state``."""
        return self.at(state)[: -len(DECISIONS)] if state.phase < Phase.STUDY else self.at(state)


def expected_turns(p: float) -> float:
    """Return the mean turns of one choice, including a forced move, if each draw hits with probability ``p``.

    (1 − (1 − p)^(H + 1)) / p, from 1 at p = 1 to H + 1 at p = 0.
    """
    return (1 - (1 - p) ** (HINT_LEVELS + 1)) / p if p else HINT_LEVELS + 1.0


def analytic_mean(needs: Needs) -> float:
    """Return the mean L of a random agent whose every draw of a subtopic hits with the same probability ρ.

    n(2 + `expected_turns`(ρ)), where ρ is the mean over the subtopics of 1/(d + 1), the probability that a subtopic
    follows all of its d ancestors in a random order.
    """
    n = len(needs)
    share = sum(1 / (1 + ancestors.bit_count()) for ancestors in _ancestors(needs)) / n
    return n * (2 + expected_turns(share))


def random_distribution(needs: Needs, max_sets: int = MAX_SETS) -> TurnDistribution | None:
    """Return the exact distribution of L of the agent ``random`` if every text is read as itself.

    With k of n subtopics visited and a of the others open, a draw hits with p = a/(n − k), and f failures in a row have
    probability (1 − p)^f. After a hit, the next subtopic is uniform over the open ones. After H + 1 failures it is the
    hint target, the first open one in tree order. Every study is accepted at once, so L = 3n + failures.

    Returns: None if the recursion would exceed ``max_sets`` sets of visited subtopics.
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
            if len(left) == len(open_):
                ended += law
                continue
            for subtopic, part in _choose(law, left, open_):
                after = visited | 1 << subtopic
                following[after] = following[after] + part if after in following else part
        level = following
    failures = np.flatnonzero(ended)
    return TurnDistribution(3 * n + failures, ended[failures] / ended.sum())


def full_chance(engine: Engine, readings: MenuReadings, max_sets: int = MAX_CHANCE_SETS) -> float | None:
    """Return the exact probability that ``random-menu`` visits every subtopic before it concludes.

    The recursion runs from the full set of subtopics back to the empty one.

    Returns: None if it would exceed ``max_sets`` sets of visited subtopics.
    """
    sets = visited_sets(engine.prerequisites, max_sets)
    if sets is None:
        return None
    *fewer, everything = sets
    chance = {everything: 1.0}
    explores = {visited: _explores(engine, readings, visited) for visited in fewer} | {everything: 1.0}
    for visited in reversed(fewer):
        again = further = 0.0
        for subtopic, p in _entries(engine, readings, visited).items():
            after = visited | 1 << subtopic
            if after == visited:
                again += p * explores[visited]
            else:
                further += p * explores[after] * chance[after]
        chance[visited] = further / (1 - again)
    return chance[0]


def _choose(
    law: NDArray[np.float64], left: Sequence[int], open_: Sequence[int]
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield each possible next subtopic with the distribution of failures so far, weighted by its probability."""
    miss = 1 - len(open_) / len(left)
    hit = np.zeros_like(law)
    for failures in range(HINT_LEVELS + 1):
        hit[failures:] += law[: len(law) - failures] * (miss**failures / len(left))
    forced = np.zeros_like(law)
    forced[HINT_LEVELS:] = law[: len(law) - HINT_LEVELS] * miss ** (HINT_LEVELS + 1)
    for subtopic in open_:
        yield subtopic, hit + forced if subtopic == open_[0] else hit


def _left(needs: Needs, visited: int) -> tuple[list[int], list[int]]:
    """Return the unvisited subtopics, and those of them whose prerequisites are visited."""
    left = [i for i in range(len(needs)) if not visited >> i & 1]
    return left, [i for i in left if not needs[i] & ~visited]


def visited_sets(needs: Needs, max_sets: int = MAX_SETS) -> list[int] | None:
    """Return every reachable set of visited subtopics, smaller ones first. None if there are more than ``max_sets``."""
    found, level = [0], {0}
    while level:
        level = {visited | 1 << i for visited in level for i in _left(needs, visited)[1]}
        found += sorted(level)
        if len(found) > max_sets:
            return None
    return found


def _ancestors(needs: Needs) -> list[int]:
    """Return by subtopic the bits of its direct and indirect prerequisites."""
    found = list(needs)
    for _ in needs:
        found = [reduce(or_, (more for i, more in enumerate(found) if bits >> i & 1), bits) for bits in found]
    return found


def _entries(engine: Engine, readings: MenuReadings, visited: int) -> dict[int, float]:
    """Return the probability that the next choice at the topic enters each subtopic."""
    outcomes = _outcomes(engine, readings, _standing(engine, visited, Phase.TOPIC))
    found: dict[int, float] = defaultdict(float)
    miss = sum(p for event, p in outcomes if event.kind == ObservationKind.SUBTOPIC_HINT)
    tries = sum(miss**failures for failures in range(HINT_LEVELS + 1))
    for event, p in outcomes:
        if event.kind == ObservationKind.SUBTOPIC:
            found[event.node] += p * tries
        else:  # every failure hints at one target, which H + 1 failures force
            found[event.node] += p / miss * miss ** (HINT_LEVELS + 1)
    return found


def _explores(engine: Engine, readings: MenuReadings, visited: int) -> float:
    """Return the probability that a result is left for another subtopic rather than for the conclusion."""
    outcomes = _outcomes(engine, readings, _standing(engine, visited, Phase.RESULT))
    back, end = (
        sum(p for event, p in outcomes if event.kind == kind)
        for kind in (ObservationKind.TOPIC, ObservationKind.CONCLUSION)
    )
    return back / (back + end)


def _outcomes(engine: Engine, readings: MenuReadings, state: State) -> list[tuple[Event, float]]:
    """Return the events of a uniformly drawn menu action with their probabilities, one per distinct reading."""
    counts = Counter(readings.drawn(state))
    return [(engine.advance(state, reading), count / counts.total()) for reading, count in counts.items()]


def _standing(engine: Engine, visited: int, phase: Phase) -> State:
    visits = tuple(visited >> i & 1 for i in range(engine.n))
    return engine.start(0).state.replace(phase=phase, visits=visits, subtopic=0, study=0)
