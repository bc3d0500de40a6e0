"""Gains of an episode by choosing and reading, against the exact posterior over worlds after each result.

Everything follows from the log. The fake level is taken as known, since agents are told it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.engine import Rules
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
)
from inquitree_gym.inquiry.trajectory import world_of
from inquitree_gym.inquiry.vigilance import Belief, Calibration, Counts
from inquitree_gym.results.statistics import Estimate, clustered_mean
from inquitree_gym.sheets import Sheet
from inquitree_gym.trees.worlds import EVEN, outcomes_in

if TYPE_CHECKING:
    from inquitree_gym.inquiry.events import InquiryEvent
    from inquitree_gym.inquiry.trajectory import ExamScore
    from inquitree_gym.inquiry.vigilance import Exposure
    from inquitree_gym.log import Episode
    from inquitree_gym.trees import Tree

CHOOSING, TOLD, TOLD_HITS, REDO_AUC = "choosing", "tellable", "hit_rate, tellable", "redo AUC"
"""Names of the estimates of `gains`."""
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

    @property
    def reading(self) -> float | None:
        """Return that the agent's answers lose against the best ones after the same showings: 0 at best."""
        return None if self.own is None else min(self.own - self.best, 0.0)


def showings_of(episode: Episode[InquiryEvent], tree: Tree, shown: Sequence[Exposure]) -> list[tuple[int, int]]:
    """Return study and place of the outcome of each result of an episode."""
    index, world = {study.id: i for i, study in enumerate(tree.studies)}, world_of(tree, episode)
    results = ((index[each.study], each.fake) for each in shown)
    return [(study, list(outcomes_in(tree, tree.reads[study], world))[fake]) for study, fake in results]


def reasoned(
    episode: Episode[InquiryEvent], tree: Tree, shown: Sequence[Exposure], exam: ExamScore | None
) -> Reasoned | None:
    """Return what the exact posterior makes of an episode.

    None where it is not defined: in worlds that are not drawn evenly, where results join too many axes, or if the log
    holds what cannot be shown at its fake level.
    """
    rules = Rules().override(episode.header.rules)
    if rules.world not in EVEN:
        return None
    design = design_of(tree)
    try:
        showings = showings_of(episode, tree, shown)
        model = observe(design, rules.fake_level)
        before, *after = beliefs_along(model, showings)
    except OptionError:
        return None
    belief = after[-1] if after else before
    doubts = tuple(
        float(fake_chances(model, each, np.array([study]), np.array([outcome]))[0])
        for each, (study, outcome) in zip(after, showings, strict=True)
    )
    scores = expected_scores(model, axis_beliefs(model, belief))[0]
    credit = np.ones_like(scores) if exam is None else np.array(exam.credit)
    own = None if exam is None else expected_return(model, belief, Sheet(exam.choices), exam.credit)
    limit = rules.turn_limit(len(tree.subtopics))
    best = float((scores * credit).mean())
    return Reasoned(design, rules.fake_level, limit, doubts, float(scores.mean()), best, own)


def belief_over_turns(
    episode: Episode[InquiryEvent], tree: Tree, shown: Sequence[Exposure]
) -> list[tuple[tuple[float, ...], ...]]:
    """Return the probability of each pole of each axis before the first result and after each."""
    model = observe(design_of(tree), Rules().override(episode.header.rules).fake_level)
    poles = model.design.exam.poles
    along = (axis_beliefs(model, each)[0] for each in beliefs_along(model, showings_of(episode, tree, shown)))
    return [tuple(tuple(map(float, row[:k])) for row, k in zip(each, poles, strict=True)) for each in along]


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
            found[tree] = (own - cover, greedy - cover)
    gained, gap = np.mean(list(found.values()), axis=0) if found else (0.0, 0.0)
    if gap < LEAST:
        return clustered_mean((tree, None) for tree in by_tree)
    ratio = gained / gap
    # Residuals around the ratio give its interval, to first order.
    return clustered_mean((tree, float(ratio + (own - ratio * most) / gap)) for tree, (own, most) in found.items())


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
    areas = {tree: Calibration.of([Belief(bool(one.redone), doubt) for one, doubt in pairs[tree]]) for tree in pairs}
    return {
        CHOOSING: choosing({tree: [found for found, _ in each] for tree, each in by_tree.items()}),
        TOLD: clustered_mean((tree, fmean(told for _, told in each) if each else None) for tree, each in fakes.items()),
        TOLD_HITS: clustered_mean(hits.items()),
        REDO_AUC: clustered_mean((tree, area.auc) for tree, area in areas.items()),
    }
