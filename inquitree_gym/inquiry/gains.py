"""Gains by choosing and reading, and vigilance, against the exact posterior over worlds after each result.

Everything follows from the log. The fake level is taken as known, since agents are told it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.engine.rules import logged_rules
from inquitree_gym.inquiry.observer import (
    TELLABLE,
    Design,
    axis_beliefs,
    beliefs_along,
    design_of,
    expected_return,
    expected_scores,
    fake_chances,
    observe,
    option_beliefs,
    stack,
)
from inquitree_gym.inquiry.opportunities import Choice, choices_of, mean_share
from inquitree_gym.inquiry.trajectory import world_of
from inquitree_gym.inquiry.vigilance import Belief, Calibration, Counts
from inquitree_gym.results.statistics import Estimate, clustered_mean, ratio_of_means
from inquitree_gym.sheets import Sheet
from inquitree_gym.trees.worlds import EVEN, outcomes_in

if TYPE_CHECKING:
    from inquitree_gym.inquiry.events import InquiryEvent
    from inquitree_gym.inquiry.trajectory import ExamScore
    from inquitree_gym.inquiry.vigilance import Exposure
    from inquitree_gym.log import Episode
    from inquitree_gym.trees import Tree

CHOOSING, TOLD, TOLD_HITS, REDO_AUC, OBSERVER_AUC, OBSERVER_D = (
    "choosing", "tellable", "hit_rate, tellable", "redo AUC", "observer AUC", "observer d′",
)  # fmt: skip
"""Names of the estimates of `gains`."""
TAKEN_UP, CHECKED, CONFLICT_D = "conflicts taken up", "agreements taken up", "conflict d′"
"""Names of the estimates of `taken_up`."""
_TIE = 1e-9
LEAST = 0.02
"""Gain of greedy over random choice from which choices can be told apart."""


@dataclass(frozen=True, slots=True)
class Reasoned:
    """The exact posterior beside an episode that was played in a world drawn from all of them."""

    design: Design
    level: int
    """Fake level."""
    limit: int | None
    """Turn limit. None for none."""
    doubts: tuple[float, ...]
    """Probability that each result was fake, given it and those before it, in [0, 1]."""
    showings: float
    """Expected return of the best sheet with full credit, in [0, 1]: what the showings are worth."""
    best: float
    """Expected return of the best sheet with the credit that was earned."""
    own: float | None
    """Expected return of the agent's sheet. None without an exam."""
    choices: tuple[Choice, ...]
    """Choice that led to each result."""

    @property
    def reading(self) -> float | None:
        """Return that the agent's answers lose against the best ones after the same showings: 0 at best."""
        return None if self.own is None else min(self.own - self.best, 0.0)

    @property
    def information(self) -> float | None:
        """Expected information of the choices as a share of the best open ones. See `mean_share`."""
        return mean_share(self.choices)


def showings_of(episode: Episode[InquiryEvent], tree: Tree, shown: Sequence[Exposure]) -> list[tuple[int, int]]:
    """Return study and place of the outcome of each result of an episode."""
    index, world = {study.id: i for i, study in enumerate(tree.studies)}, world_of(tree, episode)
    results = ((index[each.study], each.fake) for each in shown)
    return [(study, next(islice(outcomes_in(tree, tree.reads[study], world), fake, None))) for study, fake in results]


def reasoned(
    episode: Episode[InquiryEvent], tree: Tree, shown: Sequence[Exposure], exam: ExamScore | None
) -> Reasoned | None:
    """Return what the exact posterior makes of an episode.

    None where it is not defined: in worlds that are not drawn evenly, where results join too many axes, or if the log
    holds what cannot be shown at its fake level.
    """
    rules = logged_rules(episode.header.rules)
    if rules.world not in EVEN:
        return None
    design = design_of(tree)
    try:
        showings = showings_of(episode, tree, shown)
        model = observe(design, rules.fake_level)
        along = list(beliefs_along(model, showings))
    except OptionError:
        return None
    belief = along[-1]
    doubts: tuple[float, ...] = ()
    chosen: tuple[Choice, ...] = ()
    if showings:
        study, outcome = np.array(showings).T
        doubts = tuple(fake_chances(model, stack(along[1:]), study, outcome).tolist())
        chosen = choices_of(episode, model, stack(along[:-1]), showings, shown)
    beliefs = axis_beliefs(model, belief)
    scores = expected_scores(model, beliefs)[0]
    credit = np.ones_like(scores) if exam is None else np.array(exam.credit)
    own = None if exam is None else expected_return(model, beliefs[0], Sheet(exam.choices), exam.credit)
    limit, best = rules.turn_limit(len(tree.subtopics)), float((scores * credit).mean())
    return Reasoned(design, rules.fake_level, limit, doubts, float(scores.mean()), best, own, chosen)


class PageBeliefs(NamedTuple):
    """Beliefs of the posterior that the page of an episode shows."""

    axes: list[tuple[tuple[float, ...], ...]]
    """Probability of each pole of each axis before the first result and after each."""
    statements: list[tuple[float, ...]]
    """Probability of each statement of each item of the exam after the last result."""


def page_beliefs(episode: Episode[InquiryEvent], tree: Tree, shown: Sequence[Exposure]) -> PageBeliefs:
    """Return what the posterior believes over the turns of an episode, and of its exam."""
    model = observe(design_of(tree), logged_rules(episode.header.rules).fake_level)
    poles = model.design.exam.poles
    along = list(beliefs_along(model, showings_of(episode, tree, shown)))
    axes = (axis_beliefs(model, each)[0] for each in along)
    cut = [tuple(tuple(map(float, row[:k])) for row, k in zip(each, poles, strict=True)) for each in axes]
    return PageBeliefs(cut, option_beliefs(model, along[-1]))


def choosing(by_tree: Mapping[str, Sequence[Reasoned]]) -> Estimate:
    """Return the gain by choosing: what showings are worth, from those of random (0) to those of greedy choice (1).

    Both are means of simulated players on the same trees at the same level and turn limit. The gain is a ratio of means
    over trees, since few trees have a gap that is large enough to divide by. It is None without a limit.
    """
    from inquitree_gym.inquiry.courses import mean_worth  # simulations, which only a report needs

    found = {}
    for tree, episodes in by_tree.items():
        ends = [
            [mean_worth(each.design, each.level, each.limit, name) for name in ("cover", "greedy")] + [each.showings]
            for each in episodes
            if each.limit is not None
        ]
        if ends:
            cover, greedy, own = np.mean(ends, axis=0)
            found[tree] = (float(own - cover), float(greedy - cover))
    if np.mean([most for _, most in found.values()] or [0]) < LEAST:
        return clustered_mean((tree, None) for tree in by_tree)
    return ratio_of_means(found)


def gains(episodes: Iterable[tuple[str, Reasoned | None, Sequence[Exposure]]]) -> dict[str, Estimate]:
    """Return the gain by choosing and vigilance against the posterior by name: means over trees.

    Args:
        episodes: tree, posterior and results of each episode. One without a posterior is left out.
    """
    by_tree: dict[str, list[tuple[Reasoned, Sequence[Exposure]]]] = {}
    for tree, found, shown in episodes:
        if found is not None:
            by_tree.setdefault(tree, []).append((found, shown))
    pairs = {
        tree: [pair for found, shown in each for pair in zip(shown, found.doubts, strict=True) if pair[0].counts]
        for tree, each in by_tree.items()
    }
    fakes = {tree: [(one, doubt >= TELLABLE) for one, doubt in each if one.fake] for tree, each in pairs.items()}
    hits = {
        tree: sum((Counts.of(True, int(bool(one.redone))) for one, told in each if told), Counts()).hit_rate
        for tree, each in fakes.items()
    }
    redone, faked = (
        {tree: Calibration.of([Belief(event(one), doubt) for one, doubt in each]).auc for tree, each in pairs.items()}
        for event in (lambda one: bool(one.redone), lambda one: one.fake > 0)
    )
    calls = {
        tree: sum((Counts.of(one.fake > 0, called_fake(doubt)) for one, doubt in each), Counts())
        for tree, each in pairs.items()
    }
    return {
        CHOOSING: choosing({tree: [found for found, _ in each] for tree, each in by_tree.items()}),
        TOLD: clustered_mean((tree, fmean(told for _, told in each) if each else None) for tree, each in fakes.items()),
        TOLD_HITS: clustered_mean(hits.items()),
        REDO_AUC: clustered_mean(redone.items()),
        OBSERVER_AUC: clustered_mean(faked.items()),
        OBSERVER_D: clustered_mean((tree, each.d_prime) for tree, each in calls.items()),
    }


def called_fake(doubt: float) -> float:
    """Return 1 if the observer calls a result fake, as it most likely is, 0 if true, and ½ if both are as likely."""
    return 0.5 if abs(doubt - 0.5) < _TIE else float(doubt > 0.5)


def count_conflicts(design: Design, showings: Sequence[tuple[int, int]], shown: Sequence[Exposure]) -> Counts:
    """Count conflicts (as fakes) and agreements (as true results) of an episode, and those that were taken up.

    A result conflicts on an axis if the last result before it that reads the axis states another pole, and agrees if it
    states the same. Either is taken up if the next result of the episode is of a study that reads the axis: the same
    study, that of the earlier result, or another. A result that left no choice counts in neither.

    Args:
        design: the structure of the inquiry.
        showings: study and outcome of each result.
        shown: the same results in the log.
    """
    stated: dict[int, int] = {}
    counts = Counts()
    later = [*(design.reads[study] for study, _ in showings[1:]), ()]
    for (study, outcome), each, following in zip(showings, shown, later, strict=False):
        poles = design.poles(study, outcome)
        for axis, pole in poles.items():
            if axis in stated and each.counts:
                counts += Counts.of(stated[axis] != pole, int(axis in following))
        stated.update(poles)
    return counts


def taken_up(by_tree: Mapping[str, Counts]) -> dict[str, Estimate]:
    """Return the shares of conflicts and of agreements that were taken up, over all trees, and the mean of their d′."""
    return {
        TAKEN_UP: ratio_of_means({tree: (each.hits, each.fakes) for tree, each in by_tree.items()}),
        CHECKED: ratio_of_means({tree: (each.false_alarms, each.trues) for tree, each in by_tree.items()}),
        CONFLICT_D: clustered_mean((tree, each.d_prime) for tree, each in by_tree.items()),
    }
