"""Summaries of projections by player and group of papers, and paired comparisons of players."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, pstdev
from typing import NamedTuple

from inquitree_gym.analysis.aggregate import CEILING, format_estimate, grouped, in_cell
from inquitree_gym.analysis.cutoff import CutoffAnalysis, split_players
from inquitree_gym.analysis.cutoff_models import ModelDates
from inquitree_gym.errors import OptionError
from inquitree_gym.judges.projections.alignment import Area, Variant
from inquitree_gym.scoring import Estimate, paired_difference
from inquitree_gym.scoring.episode import told_apart
from inquitree_gym.scoring.projection import ProjectionEpisodeScore
from inquitree_gym.scoring.statistics import stratified_mean

COIN_F1 = 0.5
"""Expected F1 of a coin that knows the variables and guesses directions, for any number of claims."""
AUC = "AUC"
MEAN_OF_DOMAINS = "all, mean of domains"
POOLED = "all, pooled"
NO_ESTIMATE = Estimate(None, None, None, 0, 0)


ProjectionMeasure = Callable[[ProjectionEpisodeScore], float | None]


class Metric(NamedTuple):
    """Formulas of F1 and of the aggregate over levels."""

    variant: Variant = "paper"
    auc: Area = "trapezoid"

    def f1_at(self, level: str) -> ProjectionMeasure:
        """Return the measure of F1 at a level; its value is None if the projection is unscored or absent."""
        return lambda score: score.f1_at(level, self.variant)

    def area(self, score: ProjectionEpisodeScore) -> float | None:
        """Return the aggregate of F1 over the levels; None with an unscored projection."""
        return score.area(self.variant, self.auc)

    @property
    def words(self) -> str:
        """Formulas other than the paper's, in words; empty for the paper's."""
        strict, mean = self.variant == "strict", self.auc == "mean"
        return ", ".join(["strict F1"] * strict + ["AUC as the mean of the levels"] * mean)


PAPER = Metric()
"""The paper's formulas."""


class ProjectionPlayer(NamedTuple):
    """Settings that episodes of projections share when they are averaged."""

    agent: str
    rules: str
    judged_by: str


@dataclass(frozen=True, slots=True)
class ProjectionSummary:
    """Results of one player on one group of papers."""

    player: ProjectionPlayer
    group: str
    """A domain, `MEAN_OF_DOMAINS` as the paper averages, or `POOLED` over papers."""
    papers: int
    episodes: int
    unscored: int
    """Projections that the judge could not score; they are absent from the means, not 0."""
    f1: dict[str, Estimate]
    """F1 by level, as a mean over papers."""
    std: dict[str, float | None]
    """Standard deviation over papers by level, with the divisor n (ddof 0); None without papers."""
    normalised: dict[str, Estimate]
    """F1 by level between a coin's `COIN_F1` (0) and the oracle (1) of the same paper; no value without an oracle."""
    auc: Estimate
    """Aggregate of F1 over the levels; see `Metric`."""


@dataclass(frozen=True, slots=True)
class PairedProjections:
    """The second player minus the first, over the papers and seeds of both."""

    name: str
    pairs: int
    """Pairs of paper and seed."""
    estimates: dict[str, Estimate]
    """Mean of second − first, clustered by paper; by level, and under the key `AUC` for the aggregate."""


def projection_player(score: ProjectionEpisodeScore) -> ProjectionPlayer:
    """Return the player of an episode."""
    return ProjectionPlayer(score.agent, score.rules, score.judged_by)


def levels_of(scores: Iterable[ProjectionEpisodeScore]) -> list[str]:
    """Return the levels of all episodes, in order of first appearance."""
    return list(dict.fromkeys(each.level for score in scores for each in score.levels))


def summarise_projections(scores: Sequence[ProjectionEpisodeScore], metric: Metric = PAPER) -> list[ProjectionSummary]:
    """Return one summary per player and domain, and two over all domains.

    Each configuration of an agent counts as an agent of its own; see `told_apart`.

    Args:
        scores: scores of the episodes.
        metric: formulas of F1 and of its aggregate.
    """
    scores = told_apart(scores)
    ceilings = _ceilings(scores, metric)
    return [
        summary
        for player, group in grouped(scores, projection_player).items()
        for summary in _summaries(player, group, metric, ceilings)
    ]


def compare_projections(scores: Sequence[ProjectionEpisodeScore], metric: Metric = PAPER) -> list[PairedProjections]:
    """Return the paired differences of every two players under the same rules, later minus earlier.

    Raises:
        OptionError: no two players share a paper and seed.
    """
    players = grouped(told_apart(scores), projection_player)
    pairs = [(one, other) for one, other in combinations(players, 2) if one[1:] == other[1:]]
    found = [_difference(players[one], players[other], metric) for one, other in pairs]
    if not (kept := [each for each in found if each.pairs]):
        names = ", ".join(f"'{player.agent}'" for player in players)
        raise OptionError(f"a comparison takes two agents that share rules, papers and seeds; these are {names}")
    return kept


def anchoring(scores: Sequence[ProjectionEpisodeScore], metric: Metric = PAPER) -> list[PairedProjections]:
    """Return agents with ``memory="conversation"`` minus the same agents with ``memory="none"``, paired."""
    by_config = grouped(told_apart(scores), _but_memory)
    found = []
    for group in by_config.values():
        by_memory = grouped(group, lambda score: score.config.get("memory"))
        if {"none", "conversation"} <= by_memory.keys():
            found.append(_difference(by_memory["none"], by_memory["conversation"], metric))
    return [each for each in found if each.pairs]


def split_projections(
    scores: Sequence[ProjectionEpisodeScore], models: Sequence[ModelDates], metric: Metric = PAPER
) -> CutoffAnalysis[ProjectionPlayer]:
    """Split the episodes at the training cutoffs of their models, by F1 at each level and `AUC`; see `load_models`."""
    players = grouped(told_apart(scores), projection_player)
    measures = {f"F1, {level}": metric.f1_at(level) for level in levels_of(scores)} | {AUC: metric.area}
    return split_players(players, models, measures)


def projection_table(summaries: Iterable[ProjectionSummary], levels: Sequence[str]) -> Iterator[list[str]]:
    """Yield the rows of a text table, headings first."""
    summaries = list(summaries)
    several = len({each.player.rules for each in summaries}) > 1
    yield ["agent", *["rules"] * several, "papers", "n (papers)", *levels, AUC, "unscored"]
    for each in summaries:
        estimates = [in_cell(each.f1.get(level, NO_ESTIMATE)) for level in levels]
        counts, rules = f"{each.episodes} ({each.papers})", [each.player.rules] * several
        yield [
            each.player.agent, *rules, each.group, counts, *estimates, in_cell(each.auc), str(each.unscored),
        ]  # fmt: skip


def paired_projections_table(found: Sequence[PairedProjections]) -> Iterator[list[str]]:
    """Yield the rows of a text table of paired differences, headings first."""
    heads = list(dict.fromkeys(name for each in found for name in each.estimates))
    yield ["pair", "pairs", *heads]
    for each in found:
        cells = ["\n".join(filter(None, format_estimate(each.estimates.get(name, NO_ESTIMATE)))) for name in heads]
        yield [each.name, str(each.pairs), *cells]


Ceilings = Mapping[tuple[str, str, str, str], float]
"""Mean F1 of the oracle by paper, level, rules and judge."""


def _ceilings(scores: Sequence[ProjectionEpisodeScore], metric: Metric) -> Ceilings:
    """Return the upper ends of the normalised scale, where the oracle played and was scored."""
    found: dict[tuple[str, str, str, str], list[float]] = {}
    for score in scores:
        for level in score.levels if score.agent == CEILING else ():
            if (value := level.f1[metric.variant]) is not None:
                found.setdefault((score.task, level.level, score.rules, score.judged_by), []).append(value)
    return {key: fmean(values) for key, values in found.items()}


def _normalised(level: str, metric: Metric, ceilings: Ceilings) -> ProjectionMeasure:
    """Return the measure of F1 at a level on the scale from a coin (0) to the oracle (1) of the same paper.

    The 0 of the scale is the coin's expected F1, so that the scale does not depend on single tosses.
    """

    def normalised(score: ProjectionEpisodeScore) -> float | None:
        value = score.f1_at(level, metric.variant)
        top = ceilings.get((score.task, level, score.rules, score.judged_by), COIN_F1)
        return None if value is None or top <= COIN_F1 else (value - COIN_F1) / (top - COIN_F1)

    return normalised


def _summaries(
    player: ProjectionPlayer, scores: Sequence[ProjectionEpisodeScore], metric: Metric, ceilings: Ceilings
) -> Iterator[ProjectionSummary]:
    domains = grouped(sorted(scores, key=lambda score: score.domain), lambda score: score.domain)
    for group, members in domains.items():
        yield _summary(player, group, [members], metric, ceilings)
    if len(domains) > 1:
        yield _summary(player, MEAN_OF_DOMAINS, list(domains.values()), metric, ceilings)
    yield _summary(player, POOLED, [scores], metric, ceilings)


def _summary(
    player: ProjectionPlayer,
    group: str,
    strata: Sequence[Sequence[ProjectionEpisodeScore]],
    metric: Metric,
    ceilings: Ceilings,
) -> ProjectionSummary:
    scores = [score for stratum in strata for score in stratum]
    levels = levels_of(scores)

    def mean(measure: ProjectionMeasure) -> Estimate:
        return stratified_mean([[(score.cluster, measure(score)) for score in stratum] for stratum in strata])

    return ProjectionSummary(
        player=player,
        group=group,
        papers=len({score.task for score in scores}),
        episodes=len(scores),
        unscored=sum(score.unscored for score in scores),
        f1={level: mean(metric.f1_at(level)) for level in levels},
        std={level: _deviation(strata, metric.f1_at(level)) for level in levels},
        normalised={level: mean(_normalised(level, metric, ceilings)) for level in levels},
        auc=mean(metric.area),
    )


def _deviation(strata: Sequence[Sequence[ProjectionEpisodeScore]], measure: ProjectionMeasure) -> float | None:
    """Return the standard deviation over papers with the divisor n; several strata have equal weights."""
    means = [list(found.values()) for stratum in strata if (found := paper_means(stratum, measure))]
    if not means:
        return None
    middle = fmean(fmean(found) for found in means)
    return math.sqrt(fmean(pstdev(found) ** 2 + (fmean(found) - middle) ** 2 for found in means))


def paper_means(scores: Iterable[ProjectionEpisodeScore], measure: ProjectionMeasure) -> dict[str, float]:
    """Return the mean of a measure over the episodes of each paper, by task; papers without a value are absent."""
    values = ((score.task, measure(score)) for score in scores)
    known = grouped(((task, value) for task, value in values if value is not None), lambda each: each[0])
    return {task: fmean(value for _, value in of_paper) for task, of_paper in known.items()}


def _difference(
    first: Sequence[ProjectionEpisodeScore], second: Sequence[ProjectionEpisodeScore], metric: Metric
) -> PairedProjections:
    before, after = ({(score.cluster, score.seed): score for score in side} for side in (first, second))

    def paired(measure: ProjectionMeasure) -> Estimate:
        ours, theirs = ({key: measure(score) for key, score in side.items()} for side in (after, before))
        return paired_difference(ours, theirs)

    estimates = {level: paired(metric.f1_at(level)) for level in levels_of((*first, *second))}
    name = f"{second[0].agent} − {first[0].agent}"
    return PairedProjections(name, len(before.keys() & after.keys()), {**estimates, AUC: paired(metric.area)})


def _but_memory(score: ProjectionEpisodeScore) -> tuple[str, str, str]:
    """Return the settings of a player other than its memory."""
    others = sorted((name, str(value)) for name, value in score.config.items() if name not in ("memory", "label"))
    return score.rules, score.judged_by, str(others)
