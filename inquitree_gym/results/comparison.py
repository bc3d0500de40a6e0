"""Paired comparisons of two runs or of agents, by task, seed and cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any

from inquitree_gym.errors import OptionError
from inquitree_gym.kinds import kind
from inquitree_gym.results.score import KindResults, Measure, Score, disambiguate_agents
from inquitree_gym.results.statistics import Estimate, paired_difference
from inquitree_gym.results.summary import NO_ESTIMATE, Player, axis_name, cell_text, grouped, in_cell, player_of

if TYPE_CHECKING:
    from inquitree_gym.protocols import Scalar

Scores = Sequence[Score[Any]]


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The second run or agent minus the first, for one pair of settings."""

    name: str
    """The paired settings that differ, or that have several values in a run."""
    cell: Mapping[str, Scalar]
    pairs: int
    """Pairs of task and seed in both runs."""
    estimates: Mapping[str, Estimate]
    """By measure, the mean of second − first, clustered by task."""


def compare(first: Scores, second: Scores, results: KindResults[Any, Any] | None = None) -> list[PairedDifference]:
    """Return the paired differences of two runs, one per cell and paired setting.

    A setting (agent, turn limit, rules, judge) may differ between the runs if each run has a single value of it.
    Otherwise only equal values are paired.

    Args:
        first: scores of one kind.
        second: scores of the same kind, which are the minuends.
        results: results of their kind, if not the usual ones, as with other formulas.

    Raises:
        OptionError: the runs share no episode.
    """
    differences = _differences(disambiguate_agents(first), disambiguate_agents(second), results)
    if not differences:
        players = (sorted({f"{each.agent} {_at(each)}".strip() for each in run}) for run in (first, second))
        raise OptionError(
            "the runs share no agent, setting, task and seed, so nothing can be paired: "
            + " | ".join(map("; ".join, players))
        )
    return differences


def compare_agents(scores: Scores, results: KindResults[Any, Any] | None = None) -> list[PairedDifference]:
    """Return the paired differences of every two agents, later minus earlier. See `compare` for the errors."""
    players = grouped(disambiguate_agents(scores), player_of)
    pairs = combinations(players.values(), 2)
    differences = [difference for pair in pairs for difference in _differences(*pair, results)]
    if not differences:
        names = ", ".join(f"'{player.agent}'" for player in players)
        raise OptionError(f"a comparison takes two agents that share a setting, task and seed; these are {names}")
    return differences


def compare_runs(
    runs: Sequence[Scores], agents: Sequence[str], results: KindResults[Any, Any] | None = None
) -> list[PairedDifference]:
    """Return the paired differences of two runs, or of the agents of one run in the order in which they are named.

    ``agents`` are the labels of those to compare, by default all. ``results`` are those of their kind, if not the usual
    ones. Raise `OptionError` if an agent is unknown or nothing can be paired.
    """
    apart = [disambiguate_agents(scores) for scores in runs]
    chosen = [[score for score in scores if not agents or score.agent in agents] for scores in apart]
    known = dict.fromkeys(score.agent for scores in apart for score in scores)
    if strange := [agent for agent in agents if agent not in known]:
        raise OptionError(f"no agent is called '{strange[0]}' here; there are {', '.join(map(repr, known))}")
    if len(chosen) == 2:
        return compare(chosen[0], chosen[1], results)
    return compare_agents(sorted(chosen[0], key=lambda score: agents.index(score.agent) if agents else 0), results)


def difference(first: Scores, second: Scores, name: str, measures: Sequence[Measure[Any]]) -> PairedDifference:
    """Return second − first over the pairs of task and seed, of the means of several episodes with the same.

    A measure absent from one of them has no value.
    """
    before, after = (grouped(run, lambda score: (score.task, score.seed)) for run in (first, second))
    estimates = {
        measure.name: paired_difference(
            {key: _mean(measure, group) for key, group in after.items()},
            {key: _mean(measure, group) for key, group in before.items()},
        )
        for measure in measures
    }
    return PairedDifference(name, first[0].cell, len(before.keys() & after.keys()), estimates)


def _mean(measure: Measure[Any], scores: Scores) -> float | None:
    known = [value for score in scores if (value := measure.of(score.detail)) is not None]
    return fmean(known) if known else None


def differences_table(
    differences: Sequence[PairedDifference], measures: Sequence[str], results: KindResults[Any, Any]
) -> Iterator[list[str]]:
    """Yield the rows of a text table, headings first. ``results`` are those of the kind."""
    grid = list(dict.fromkeys(name for each in differences for name in each.cell))
    yield ["pair", *map(axis_name, grid), "pairs", *map(results.heading, measures)]
    for each in differences:
        estimates = [in_cell(each.estimates.get(name, NO_ESTIMATE)) for name in measures]
        yield [each.name, *(str(each.cell.get(name, "–")) for name in grid), str(each.pairs), *estimates]


def _differences(first: Scores, second: Scores, results: KindResults[Any, Any] | None) -> list[PairedDifference]:
    """Return the differences with at least one pair. See `compare`."""
    sides = [[(player_of(score), score) for score in run] for run in (first, second)]
    matched = [
        name for name in Player._fields if any(len({getattr(player, name) for player, _ in side}) > 1 for side in sides)
    ]
    ours, theirs = (
        grouped(run, lambda score: (*(getattr(player_of(score), name) for name in matched), *score.cell.items()))
        for run in (first, second)
    )
    measures = (kind(first[0].kind).results if results is None else results).measures
    found = [
        difference(ours[key], theirs[key], _name(ours[key][0], theirs[key][0], matched), measures)
        for key in ours
        if key in theirs
    ]
    return [each for each in found if each.pairs]


def _at(score: Score[Any]) -> str:
    return f"at {cell_text(score.cell)}" if score.cell else ""


def _name(first: Score[Any], second: Score[Any], matched: Sequence[str]) -> str:
    """Name a pair by its matched settings and those that differ."""
    values = {name: (getattr(player_of(first), name), getattr(player_of(second), name)) for name in Player._fields}
    shown = [name for name, (before, after) in values.items() if name in matched or before != after] or ["agent"]
    pairs = [values[name] for name in shown]
    return ", ".join(before if before == after else f"{after} − {before}" for before, after in pairs)
