"""Vigilance: showings of results, their sorting by what an agent could tell, and sensitivity to fakes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from inquitree_gym.llm import estimated_tokens
from inquitree_gym.results.statistics import Estimate, clustered_mean, minus, ratio_of_means

if TYPE_CHECKING:
    from inquitree_gym.inquiry.events import InquiryEvent
    from inquitree_gym.log import Episode, Turn
    from inquitree_gym.trees import Tree


_NO_SPREAD = 1e-12
HITS, FALSE_ALARMS, GAP, D_PRIME, CRITERION = (
    "hit_rate", "false_alarm_rate", "hit_rate − false_alarm_rate", "d′", "c",
)  # fmt: skip
REDO, REDO_FAKES, REDO_TRUES = "redo probability", "redo probability, fakes", "redo probability, true results"
"""Names of the estimates of `redo_probabilities`."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One result with the answer to it."""

    tree: str
    fake: bool
    doubted: float
    """1 for redone or called invalid, else 0. A share in [0, 1] for several answers."""
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
        """Return the counts of one trial. See `Trial`."""
        return cls(1, doubted) if fake else cls(trues=1, false_alarms=doubted)

    @property
    def results(self) -> float:
        """Number of results, true or fake."""
        return self.fakes + self.trues

    @property
    def redo_rate(self) -> float | None:
        """Share of results answered with "fake", in [0, 1]. None without a result."""
        return (self.hits + self.false_alarms) / self.results if self.results else None

    @property
    def hit_rate(self) -> float | None:
        """H, in [0, 1]. None without a fake."""
        return self.hits / self.fakes if self.fakes else None

    @property
    def false_alarm_rate(self) -> float | None:
        """F, in [0, 1]. None without a true result."""
        return self.false_alarms / self.trues if self.trues else None

    @property
    def gap(self) -> float | None:
        """H − F, in [-1, 1]. None if either is None."""
        return minus(self.hit_rate, self.false_alarm_rate)

    @property
    def d_prime(self) -> float | None:
        """Corrected sensitivity d′. None without both kinds of results."""
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
    HITS: HITS, FALSE_ALARMS: FALSE_ALARMS, GAP: "gap", D_PRIME: "d_prime", CRITERION: "criterion",
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
    """Return the rates, d′ and c by name: means over trees. See `clustered_mean`."""
    return {
        name: clustered_mean((tree, getattr(each, rate)) for tree, each in counts.items())
        for name, rate in _PROPERTIES.items()
    }


def redo_probabilities(counts: Mapping[str, Counts]) -> dict[str, Estimate]:
    """Return the probabilities of a redo after any result, a fake and a true one: redone results / results, all trees.

    A redo makes another showing, so the share of one episode depends on its own length, and a mean of such shares is
    biased. This ratio is not, up to terms that vanish with the number of results. See `ratio_of_means`.
    """
    return {
        REDO: ratio_of_means({tree: (each.hits + each.false_alarms, each.results) for tree, each in counts.items()}),
        REDO_FAKES: ratio_of_means({tree: (each.hits, each.fakes) for tree, each in counts.items()}),
        REDO_TRUES: ratio_of_means({tree: (each.false_alarms, each.trues) for tree, each in counts.items()}),
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


ALL, FIRST, LATER, TELLABLE, TRUTH_SEEN = "all", "first", "later", "detectable", "true result seen"
BRIER, AUC = "Brier", "AUC"


@dataclass(frozen=True, slots=True)
class Exposure:
    """One observation of a result, and the agent's response."""

    study: str
    """Id of the study."""
    fake: int
    """0 for the true result, i for the i-th fake."""
    turn: int
    """The turn whose action led to the result, from 1."""
    before: int
    """Earlier results of this study in the episode, true or fake: 0 for a first exposure."""
    tokens_read: int
    """Estimated tokens of all observations up to and including the one the agent answered. See `estimated_tokens`."""
    prompt_tokens: int | None
    """Tokens of the request that a model answered, as counted by the service. None without such a count."""
    redone: bool | None
    """True if the agent redid the study. None if the turn limit, or the end of the log, left no choice."""
    truth_seen: bool = False
    """True if the study's true result was shown before, in the same episode."""
    tellable: bool = False
    """True for a detectable fake. See `Tree.can_be_told`."""
    control: bool = False
    """True for a study that is never faked, since its result is one in every world. It counts in no rate."""
    belief: float | None = None
    """Stated probability that the result is fake, in [0, 1]. None without a statement."""

    @property
    def counts(self) -> bool:
        """True if the showing counts in rates: the agent could answer it, and it is of no control."""
        return self.redone is not None and not self.control


SHOWINGS: dict[str, Callable[[Exposure], bool]] = {
    ALL: lambda each: True,
    FIRST: lambda each: each.before == 0,
    LATER: lambda each: each.before > 0,
    TELLABLE: lambda each: not each.truth_seen and (each.tellable or not each.fake),
    TRUTH_SEEN: lambda each: each.truth_seen,
}
"""Kinds of showings that vigilance is counted over, by name. All showings are those of the paper.

Detectable fakes stand against the true results. Showings after the study's true result are left out there and
counted apart, because comparing two texts takes no reasoning about the study.
"""


class Belief(NamedTuple):
    """A belief stated about a result."""

    fake: bool
    """True if the result was fake."""
    stated: float
    """Stated probability that it was, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Scores of stated beliefs."""

    stated: int
    """n: results with a stated belief. The others are absent from both scores."""
    brier: float | None
    """Brier score: mean squared difference of stated probability and truth, in [0, 1], 0 at best. None without n."""
    auc: float | None
    """Probability that a fake gets a higher probability than a true result, ties counting half, in [0, 1]. None without
    both kinds of results."""

    @classmethod
    def of(cls, beliefs: Sequence[Belief]) -> Self:
        """Score some beliefs."""
        fakes, trues = (np.array([each.stated for each in beliefs if each.fake == fake]) for fake in (True, False))
        brier = float(np.mean([(each.stated - each.fake) ** 2 for each in beliefs])) if beliefs else None
        higher = (np.sign(fakes[:, None] - trues) + 1) / 2
        return cls(len(beliefs), brier, float(higher.mean()) if higher.size else None)


def exposures(episode: Episode[InquiryEvent], tree: Tree) -> tuple[Exposure, ...]:
    """Return every result of an episode, first to last."""
    index = {study.id: i for i, study in enumerate(tree.studies)}
    shown: Counter[str] = Counter()
    seen: set[str] = set()
    tokens = (estimated_tokens({"role": "user", "content": turn.observation}) for turn in episode.turns)
    read = list(accumulate(tokens))
    found = []
    for place, turn in enumerate(episode.turns):
        name, fake = turn.event.node, turn.event.fake
        if turn.event.kind == "result" and name is not None:
            redone, belief = _response(episode.turns[place + 1 :])
            found.append(
                Exposure(
                    study=name,
                    fake=fake,
                    turn=turn.turn,
                    before=shown[name],
                    tokens_read=read[min(place + 1, len(read) - 1)],
                    prompt_tokens=_prompt_tokens(episode, turn.turn + 1),
                    redone=redone,
                    truth_seen=name in seen,
                    tellable=fake > 0 and tree.can_be_told(index[name]),
                    control=len(tree.studies[index[name]].outcomes) == 1,
                    belief=belief,
                )
            )
            shown[name] += 1
            if not fake:
                seen.add(name)
    return tuple(found)


def tally(shown: Iterable[Exposure]) -> dict[str, Counts]:
    """Return the numbers of results with a decision after them by the names of `SHOWINGS`."""
    answered = [each for each in shown if each.counts]
    found = {}
    for name, counts in SHOWINGS.items():
        kept = [each for each in answered if counts(each)]
        fakes, trues = ([bool(each.redone) for each in kept if (each.fake > 0) == fake] for fake in (True, False))
        found[name] = Counts(len(fakes), sum(fakes), len(trues), sum(trues))
    return found


def beliefs(shown: Iterable[Exposure]) -> tuple[Belief, ...]:
    """Return the beliefs stated about results, in order."""
    return tuple(Belief(each.fake > 0, each.belief) for each in shown if each.belief is not None)


def calibration(by_tree: Mapping[str, Sequence[Belief]]) -> dict[str, Estimate]:
    """Return Brier score and AUC by name: means over trees, each from all beliefs about its results."""
    found = {tree: Calibration.of(beliefs) for tree, beliefs in by_tree.items()}
    return {
        BRIER: clustered_mean((tree, each.brier) for tree, each in found.items()),
        AUC: clustered_mean((tree, each.auc) for tree, each in found.items()),
    }


def _response(later: Sequence[Turn[InquiryEvent]]) -> tuple[bool | None, float | None]:
    """Return whether the first decision after a result was to redo, and the last belief stated up to it.

    There is no decision after the turn limit, or at the end of a torn log.
    """
    belief = None
    for turn in later:
        belief = turn.stated.get("belief", belief)
        if turn.event.decision != "none":
            return turn.event.decision == "redo", belief
    return None, belief


def _prompt_tokens(episode: Episode[InquiryEvent], turn: int) -> int | None:
    """Return the prompt tokens of the first request for a turn. Corrections have longer prompts."""
    moves = (reply for reply in episode.replies_to(turn) if reply.role == "proposer" and reply.tokens is not None)
    return next((reply.tokens.get("prompt") for reply in moves if reply.tokens is not None), None)
