"""Recall of a paper's findings: answers to the exam in a world and in its complement, beside the exact posterior.

Nothing of a drawn world follows from the paper, so an answer may depend on the results shown alone. Who remembers the
paper leans towards its pole of an axis in every world. It is right more often where that pole holds, and its answer is
further on the paper's side than the posterior's log-odds:

    log-odds of answering the paper's pole = log-odds of the paper's pole after the results shown + b

Here b is the recall in nats: the evidence for the paper's poles that an exact reader would have to add.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.engine.rules import logged_rules
from inquitree_gym.inquiry.gains import showings_of
from inquitree_gym.inquiry.observer import Floats, axis_beliefs, believe, design_of, observe
from inquitree_gym.inquiry.trajectory import world_of
from inquitree_gym.results.statistics import Estimate, clustered_mean
from inquitree_gym.trees.worlds import EVEN

if TYPE_CHECKING:
    from inquitree_gym.inquiry.events import InquiryEvent
    from inquitree_gym.inquiry.trajectory import ExamScore
    from inquitree_gym.inquiry.vigilance import Exposure
    from inquitree_gym.log import Episode
    from inquitree_gym.trees import Tree

ESTIMATES = RIGHT_THERE, RIGHT_ELSEWHERE, RECALL_GAP, RECALL = (
    "right as published",
    "right otherwise",
    "recall gap",
    "recall, nats",
)
"""Names of the estimates of `recall_gap`."""
MOST = 40.0
"""Largest recall in nats that the fit looks for."""


class Answer(NamedTuple):
    """Answer to one axis of one conclusion item, beside what the results shown say of the axis."""

    axis: int
    published: bool
    """True if the paper's pole holds in the world that was played."""
    evidence: float
    """Log-odds of the paper's pole in the exact posterior, in nats. Infinite where it is certain."""
    stated: bool | None
    """True if the answer states the paper's pole. None without an answer."""
    right: bool
    """True if the answer states the pole that holds."""


def recalled(
    episode: Episode[InquiryEvent], tree: Tree, shown: Sequence[Exposure], exam: ExamScore | None
) -> tuple[Answer, ...]:
    """Return the answers of an episode in a world that was asked for: the paper's, its complement or one by its id.

    There is none without an exam, for a tree of no paper, where results join too many axes, or if the log holds what
    cannot be shown at its fake level. A world that is drawn from all has no complement under its seed, so it has none
    either.
    """
    rules, paper = logged_rules(episode.header.rules), [axis.actual for axis in tree.axes]
    if exam is None or rules.world in EVEN or None in paper:
        return ()
    try:
        model = observe(design_of(tree), rules.fake_level)
        beliefs = axis_beliefs(model, believe(model, showings_of(episode, tree, shown)))[0]
    except OptionError:
        return ()
    world, rule = world_of(tree, episode), model.design.exam
    found = []
    for item, choice in enumerate(exam.choices):
        poles = [None] * len(rule.items[item]) if choice is None else rule.stated(item, choice)
        for axis, pole in zip(rule.items[item], poles, strict=True):
            own = paper[axis]
            evidence = _log_odds(float(beliefs[axis, own]), 1 - float(beliefs[axis, own]))
            stated = None if pole is None else pole == own
            found.append(Answer(axis, world[axis] == own, evidence, stated, pole == world[axis]))
    return tuple(found)


def _log_odds(chance: float, other: float) -> float:
    return math.log(chance / other) if min(chance, other) > 0 else math.copysign(math.inf, chance - other)


def recall_gap(episodes: Iterable[tuple[str, int, Sequence[Answer]]]) -> dict[str, Estimate]:
    """Return how much the answers lean towards the paper, by name: means over trees.

    The first three are shares of answers that are right where the paper's pole holds, where another one holds, and
    their difference, paired by tree, seed and axis. An answer that is left out is not right. The last is b. See
    `recall_in_nats`. An axis that was not played both ways under a seed is left out.

    Args:
        episodes: tree, seed and answers of each episode.
    """
    axes: dict[tuple[str, int, int], tuple[list[Answer], list[Answer]]] = {}
    for tree, seed, answers in episodes:
        for each in answers:
            axes.setdefault((tree, seed, each.axis), ([], []))[each.published].append(each)
    pairs = {key: sides for key, sides in axes.items() if all(sides)}
    shares = ((key[0], *sides) for key, sides in pairs.items())
    right = [(tree, _share_right(elsewhere), _share_right(there)) for tree, elsewhere, there in shares]
    by_tree: dict[str, list[Answer]] = {}
    for (tree, *_), sides in pairs.items():
        by_tree.setdefault(tree, []).extend(each for side in sides for each in side)
    return {
        RIGHT_THERE: clustered_mean((tree, there) for tree, _, there in right),
        RIGHT_ELSEWHERE: clustered_mean((tree, elsewhere) for tree, elsewhere, _ in right),
        RECALL_GAP: clustered_mean((tree, there - elsewhere) for tree, elsewhere, there in right),
        RECALL: recall_in_nats(by_tree),
    }


def _share_right(answers: Sequence[Answer]) -> float:
    return fmean(each.right for each in answers)


def recall_in_nats(by_tree: Mapping[str, Sequence[Answer]]) -> Estimate:
    """Return b, fitted by logistic regression with the posterior's log-odds as offset, and trees of equal weight.

    Half an answer for and half a one against the paper's pole are added, a log-F(1, 1) prior on b (Greenland and
    Mansournia 2015, doi:10.1002/sim.6537), so that b is finite where all answers are the paper's. The interval is that
    of a mean over trees of b plus the influence of each tree. Answers that are left out, and those where the posterior
    is certain, say nothing about b.
    """
    rows = {tree: [(each.evidence, each.stated) for each in found if each.stated is not None]
            for tree, found in by_tree.items()}  # fmt: skip
    kept = {tree: np.array([row for row in found if math.isfinite(row[0])], float) for tree, found in rows.items()}
    kept = {tree: found for tree, found in kept.items() if len(found)}
    if not kept:
        return clustered_mean((tree, None) for tree in by_tree)
    from scipy.optimize import brentq

    weight = fmean(map(len, kept.values()))
    fitted = float(brentq(lambda b: sum(_slope(found, b, weight, len(kept)) for found in kept.values()), -MOST, MOST))
    bends = [weight * _spread(found[:, 0] + fitted).mean() for found in kept.values()]
    bend = fmean(bends) + float(_spread(np.array(fitted))) / len(kept)
    slopes = {tree: _slope(found, fitted, weight, len(kept)) for tree, found in kept.items()}
    found = clustered_mean((tree, fitted + slope / bend) for tree, slope in slopes.items())
    return found._replace(episodes=sum(map(len, kept.values())))


def _slope(rows: Floats, recall: float, weight: float, trees: int) -> float:
    """Return the derivative of a tree's log likelihood, with its part of the prior."""
    misses = rows[:, 1] - _share(rows[:, 0] + recall)
    return float(weight * misses.mean() + (0.5 - _share(np.array(recall))) / trees)


def _share(log_odds: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-log_odds)))


def _spread(log_odds: Floats) -> Floats:
    share = _share(log_odds)
    return share * (1 - share)
