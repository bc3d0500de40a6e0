"""Results in the order the agent saw them, its responses, the kinds of showings counted apart, and stated beliefs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, Self

import numpy as np

from inquitree_gym.llm import estimated_tokens
from inquitree_gym.log import Episode, Turn
from inquitree_gym.scoring.statistics import Estimate, clustered_mean
from inquitree_gym.scoring.vigilance import Counts
from inquitree_gym.trees import Tree

ALL, FIRST, LATER, TELLABLE, TRUTH_SEEN = "all", "first", "later", "can be told", "true result seen"
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
    """Estimated tokens of all observations up to and including the one the agent answered; see `estimated_tokens`."""
    prompt_tokens: int | None
    """Tokens of the request that a model answered, as counted by the service; None without such a count."""
    redone: bool | None
    """True if the agent redid the study; None if the turn limit, or the end of the log, left no choice."""
    truth_seen: bool = False
    """True if the study's true result was shown before, in the same episode."""
    tellable: bool = False
    """True for a fake that can be told; see `Fake.can_be_told`."""
    belief: float | None = None
    """Stated probability that the result is fake, in [0, 1]; None without a statement."""


SHOWINGS: dict[str, Callable[[Exposure], bool]] = {
    ALL: lambda each: True,
    FIRST: lambda each: each.before == 0,
    LATER: lambda each: each.before > 0,
    TELLABLE: lambda each: not each.truth_seen and (each.tellable or not each.fake),
    TRUTH_SEEN: lambda each: each.truth_seen,
}
"""Kinds of showings that vigilance is counted over, by name. All showings are those of the paper.

Fakes that can be told stand against the true results; showings after the study's true result are left out there and
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
    """n: results with a stated belief; the others are absent from both scores."""
    brier: float | None
    """Brier score: mean squared difference of stated probability and truth, in [0, 1], 0 at best; None without n."""
    auc: float | None
    """Probability that a fake gets a higher probability than a true result, ties counting half, in [0, 1]; None without
    both kinds of results."""

    @classmethod
    def of(cls, beliefs: Sequence[Belief]) -> Self:
        """Score some beliefs."""
        fakes, trues = (np.array([each.stated for each in beliefs if each.fake == fake]) for fake in (True, False))
        brier = float(np.mean([(each.stated - each.fake) ** 2 for each in beliefs])) if beliefs else None
        higher = (np.sign(fakes[:, None] - trues) + 1) / 2
        return cls(len(beliefs), brier, float(higher.mean()) if higher.size else None)


def exposures(episode: Episode, tree: Tree) -> tuple[Exposure, ...]:
    """Return every result of an episode, first to last."""
    studies = {study.id: study for study in tree.studies}
    shown: Counter[str] = Counter()
    seen: set[str] = set()
    tokens = (estimated_tokens({"role": "user", "content": turn.observation}) for turn in episode.turns)
    read = list(accumulate(tokens))
    found = []
    for place, turn in enumerate(episode.turns):
        name, fake = turn.inquiry_event.node, turn.inquiry_event.fake
        if turn.inquiry_event.kind == "result" and name is not None:
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
                    tellable=fake > 0 and studies[name].fakes[fake - 1].can_be_told,
                    belief=belief,
                )
            )
            shown[name] += 1
            if not fake:
                seen.add(name)
    return tuple(found)


def tally(shown: Iterable[Exposure]) -> dict[str, Counts]:
    """Return the numbers of results with a decision after them by the names of `SHOWINGS`."""
    answered = [each for each in shown if each.redone is not None]
    return {
        name: sum((Counts.of(each.fake > 0, int(bool(each.redone))) for each in answered if counts(each)), Counts())
        for name, counts in SHOWINGS.items()
    }


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


def _response(later: Sequence[Turn]) -> tuple[bool | None, float | None]:
    """Return whether the first decision after a result was to redo, and the last belief stated up to it.

    There is no decision after the turn limit, or at the end of a torn log.
    """
    belief = None
    for turn in later:
        belief = belief if turn.belief is None else turn.belief
        if turn.inquiry_event.decision != "none":
            return turn.inquiry_event.decision == "redo", belief
    return None, belief


def _prompt_tokens(episode: Episode, turn: int) -> int | None:
    """Return the prompt tokens of the first request for a turn; corrections have longer prompts."""
    moves = (reply for reply in episode.replies_to(turn) if reply.role == "proposer" and reply.tokens is not None)
    return next((reply.tokens.get("prompt") for reply in moves if reply.tokens is not None), None)
