"""Papers from before and after the training cutoff of an agent's model, as in the paper's Figure 4.

A model may have read a paper published before its training data end. Trees are therefore split by the publication date
of their paper, and an agent's means over the two groups are compared. A tree whose side is unknown, because a date is
not precise enough, is unclear: it is left out and counted.

Older papers may simply make easier trees. Trees published between the cutoffs of two models are compared with
themselves by a difference in differences:

    value of model m on tree t  =  level of m + level of t + effect · [paper t appeared before the cutoff of m]

fitted by least squares. With two models, the effect is the mean advantage of the later model over the trees between
the cutoffs, minus its mean advantage over all other trees.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median_low
from typing import Generic, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.analysis.aggregate import MEASURES, Measure, Player, grouped, in_cell, player_of
from inquitree_gym.analysis.cutoff_models import DateRange, ModelDates, find_model, parse_date
from inquitree_gym.judges.quality import mean_score
from inquitree_gym.scoring import EpisodeScore, Estimate, clustered_mean
from inquitree_gym.scoring.statistics import FEWEST_TREES, quantile, unpaired_difference

Side = Literal["before", "after", "unclear"]


class DatedScore(Protocol):
    """Score of an episode about a paper with a publication date."""

    @property
    def model(self) -> str | None:
        """Litellm's name of the agent's model; None for an agent without one."""

    @property
    def published(self) -> str:
        """Publication date of the paper, as precise as known."""

    @property
    def cluster(self) -> str:
        """Tree or paper of the episode."""


AnyPlayer = TypeVar("AnyPlayer", bound=tuple[str, ...])
Dated = TypeVar("Dated", bound=DatedScore)

_NOTHING_LEFT = 1e-9
"""Residual sum of squares below which levels of models and trees determine every side."""


def mean_grade(score: EpisodeScore) -> float | None:
    """Return the mean S of the conclusion items, in [0, 1]; None without a conclusion or with an unscored item.

    Unlike Q/|C|, it ignores the evidence ratio p: it grades the statements, not how they were found.
    """
    return mean_score(score.verdicts)


CUTOFF_MEASURES: dict[str, Measure] = {
    **{name: MEASURES[name] for name in ("coverage", "unaided", "Q/|C|")},
    "mean S": mean_grade,
}
"""Measures that are split at the cutoff, by heading."""


@dataclass(frozen=True, slots=True)
class CutoffSplit(Generic[AnyPlayer]):
    """One player on papers from before and after a cutoff."""

    player: AnyPlayer
    cutoff: str
    """The cutoff as written by its sources; see `ModelDates.written_cutoff`."""
    control: bool
    """True if the player asks no model, so that a difference cannot come from training data."""
    before: Mapping[str, Estimate]
    """By measure, the mean over trees of papers published before the cutoff."""
    after: Mapping[str, Estimate]
    difference: Mapping[str, Estimate]
    """By measure, before minus after, with Welch's interval over tree means."""
    degrees: Mapping[str, float | None]
    """By measure, Welch's degrees of freedom; None without an interval."""
    unclear: int
    """Trees on neither side."""


@dataclass(frozen=True, slots=True)
class CutoffObservation:
    """One value for a difference in differences."""

    model: str
    tree: str
    before: bool
    """True if the paper appeared before the cutoff of the model."""
    value: float


@dataclass(frozen=True, slots=True)
class DiffInDiff:
    """The effect, within trees, of a paper that appeared before a model's cutoff."""

    effect: Estimate
    """Before minus after; None without a tree on both sides.

    ``trees`` counts the trees on both sides, ``episodes`` all that were compared. The interval is a jackknife over
    trees, with t quantiles of g − 1 degrees of freedom, where g is the smaller number of trees on both sides and of
    other trees; None below `FEWEST_TREES`.
    """
    others: int
    """Trees on the same side for every model."""
    models: int


@dataclass(frozen=True, slots=True)
class CutoffAnalysis(Generic[AnyPlayer]):
    """Episodes split at the cutoffs of their models."""

    level: int
    """Fake level of the episodes; 0 for projections, which have no fakes."""
    splits: tuple[CutoffSplit[AnyPlayer], ...]
    """Models first, then controls at the median of the models' cutoffs; empty without a model of known cutoff."""
    crossings: Mapping[str, DiffInDiff]
    """By measure, the same trees before the cutoff of one model and after that of another."""
    unnamed: Mapping[str, int]
    """Episodes left out at all fake levels, by litellm's name of a model of unknown cutoff."""


def side_of(published: DateRange, cutoff: DateRange) -> Side:
    """Return the side of a cutoff on which a paper appeared.

    Args:
        published: days on which the paper may have appeared.
        cutoff: days that may be the last of the training data.
    """
    if published.last <= cutoff.first:
        return "before"
    return "after" if published.first > cutoff.last else "unclear"


def split_by_cutoff(scores: Iterable[EpisodeScore], models: Sequence[ModelDates]) -> CutoffAnalysis[Player]:
    """Split the episodes of the lowest fake level at the cutoffs of their models.

    Args:
        scores: one or more.
        models: see `load_models`.
    """
    scores = list(scores)
    level = min(score.fake_level for score in scores)
    players = grouped((score for score in scores if score.fake_level == level), player_of)
    found = split_players(players, models, CUTOFF_MEASURES)
    return replace(found, level=level, unnamed=_unnamed(scores, models))


def split_players(
    players: Mapping[AnyPlayer, Sequence[Dated]],
    models: Sequence[ModelDates],
    measures: Mapping[str, Callable[[Dated], float | None]],
) -> CutoffAnalysis[AnyPlayer]:
    """Split the episodes of players at the cutoffs of their models.

    Args:
        players: the scores of each player, one or more.
        models: see `load_models`.
        measures: what is compared, by heading.
    """
    asked = {player: find_model(models, group[0].model) for player, group in players.items() if group[0].model}
    known = {player: found for player, found in asked.items() if found is not None}
    splits = [split_at(player, players[player], found, measures) for player, found in known.items()]
    if known:
        middle = _median(list(known.values()))
        splits += [
            split_at(player, group, middle, measures) for player, group in players.items() if player not in asked
        ]
    crossings = {
        name: diff_in_diff(_observations(players, known, measure)) for name, measure in measures.items() if known
    }
    unnamed = _unnamed([score for group in players.values() for score in group], models)
    return CutoffAnalysis(0, tuple(splits), crossings, unnamed)


def _unnamed(scores: Sequence[DatedScore], models: Sequence[ModelDates]) -> dict[str, int]:
    """Return the number of episodes of each model whose cutoff is unknown, by litellm's name of the model."""
    names = Counter(score.model for score in scores if score.model)
    return {name: count for name, count in names.items() if find_model(models, name) is None}


def cutoff_table(found: CutoffAnalysis[AnyPlayer], clusters: str = "trees") -> Iterator[list[str]]:
    """Yield the rows of a text table of the differences of one split or more, headings first.

    Args:
        found: the splits.
        clusters: heading of the numbers of trees or papers.
    """
    measures = list(found.splits[0].difference)
    yield ["agent", "cutoff", f"{clusters} before", "after", "unclear", *measures]
    for each in found.splits:
        numbers = [str(side[measures[0]].trees) for side in (each.before, each.after)]
        estimates = [in_cell(each.difference[name]) for name in measures]
        yield [each.player[0] + ", control" * each.control, each.cutoff, *numbers, str(each.unclear), *estimates]


def diff_in_diff(observations: Iterable[CutoffObservation]) -> DiffInDiff:
    """Return the effect of the cutoff over all trees that two or more models have played."""
    groups = grouped(observations, lambda each: (each.tree, each.model))
    means = [replace(group[0], value=fmean(each.value for each in group)) for group in groups.values()]
    compared = {tree: of_tree for tree, of_tree in grouped(means, lambda each: each.tree).items() if len(of_tree) > 1}
    table = [each for of_tree in compared.values() for each in of_tree]
    crossed = sum(len({each.before for each in of_tree}) > 1 for of_tree in compared.values())
    others = len(compared) - crossed
    effect = _effect(table) if crossed else None
    half = _half_width(table, crossed, others) if effect is not None else None
    low, high = (None, None) if effect is None or half is None else (effect - half, effect + half)
    episodes = sum(len(groups[each.tree, each.model]) for each in table)
    return DiffInDiff(Estimate(effect, low, high, crossed, episodes), others, len({each.model for each in table}))


def _median(found: Sequence[ModelDates]) -> ModelDates:
    middle = median_low(each.window for each in found)
    return next(each for each in found if each.window == middle)


def split_at(
    player: AnyPlayer,
    scores: Sequence[Dated],
    dates: ModelDates,
    measures: Mapping[str, Callable[[Dated], float | None]],
) -> CutoffSplit[AnyPlayer]:
    """Split the episodes of one player at the cutoff of a model."""
    groups = grouped(scores, lambda score: side_of(parse_date(score.published), dates.window))
    before, after = (
        {
            name: [(score.cluster, measure(score)) for score in groups.get(side, [])]
            for name, measure in measures.items()
        }
        for side in ("before", "after")
    )
    contrasts = {name: unpaired_difference(before[name], after[name]) for name in measures}
    return CutoffSplit(
        player=player,
        cutoff=dates.written_cutoff,
        control=scores[0].model is None,
        before={name: clustered_mean(values) for name, values in before.items()},
        after={name: clustered_mean(values) for name, values in after.items()},
        difference={name: contrast.estimate for name, contrast in contrasts.items()},
        degrees={name: contrast.degrees for name, contrast in contrasts.items()},
        unclear=len({score.cluster for score in groups.get("unclear", [])}),
    )


def _observations(
    players: Mapping[AnyPlayer, Sequence[Dated]],
    known: Mapping[AnyPlayer, ModelDates],
    measure: Callable[[Dated], float | None],
) -> Iterator[CutoffObservation]:
    for player, dates in known.items():
        for score in players[player]:
            side, value = side_of(parse_date(score.published), dates.window), measure(score)
            if side != "unclear" and value is not None:
                yield CutoffObservation(" ".join(player), score.cluster, side == "before", value)


def _effect(table: Sequence[CutoffObservation]) -> float | None:
    """Return the least-squares effect; None if the levels of models and trees determine every side."""
    before = np.array([each.before for each in table], np.float64)
    values = np.array([each.value for each in table], np.float64)
    levels = np.hstack([_indicators([each.model for each in table]), _indicators([each.tree for each in table])])
    left = before - levels @ np.linalg.lstsq(levels, before, rcond=None)[0]
    squares = float(left @ left)
    return None if squares < _NOTHING_LEFT else float(left @ values) / squares


def _half_width(table: Sequence[CutoffObservation], crossed: int, others: int) -> float | None:
    """Return half the interval from the leave-one-tree-out effects; None with too few trees."""
    if min(crossed, others) < FEWEST_TREES:
        return None
    trees = sorted({each.tree for each in table})
    found = [_effect([each for each in table if each.tree != tree]) for tree in trees]
    effects = np.array([effect for effect in found if effect is not None], np.float64)
    if len(effects) < len(trees):
        return None
    spread = math.sqrt((len(trees) - 1) / len(trees) * float(np.sum((effects - effects.mean()) ** 2)))
    return quantile(min(crossed, others) - 1) * spread


def _indicators(names: Sequence[str]) -> NDArray[np.float64]:
    """Return one column of zeros and ones per distinct name, shape ``(names, distinct names)``."""
    _, places = np.unique(np.array(names), return_inverse=True)
    return np.asarray(np.eye(int(places.max()) + 1)[places], np.float64)
