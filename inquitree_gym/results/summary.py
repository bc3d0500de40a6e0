"""Summaries of scores by player, cell and group of tasks, as means over tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from statistics import fmean, pstdev
from typing import Any, NamedTuple, TypeVar

from inquitree_gym.kinds import kind
from inquitree_gym.protocols import Scalar
from inquitree_gym.results.score import Anchors, KindResults, Measure, Score, disambiguate_agents
from inquitree_gym.results.statistics import Estimate, stratified_mean

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)
Cell = tuple[tuple[str, Scalar], ...]
"""Values on the grid by name, hashable."""
AnyScore = Score[Any]
POOLED = "all, pooled"
"""Group of all tasks, each with equal weight."""
NO_ESTIMATE = Estimate(None, None, None, 0, 0)


class Player(NamedTuple):
    """Settings that episodes share when cells are pooled."""

    agent: str
    limit: str
    rules: str
    judged_by: str


class Setting(NamedTuple):
    """Settings that episodes share when they are averaged."""

    player: Player
    cell: Cell


@dataclass(frozen=True, slots=True)
class SettingSummary:
    """Means over the episodes of one agent in one cell, under one turn limit and rules, on one group of tasks."""

    agent: str
    cell: Mapping[str, Scalar]
    limit: str
    rules: str
    judged_by: str
    group: str
    """A group of tasks, `mean_of_groups`, or `POOLED` over tasks."""
    tasks: int
    episodes: int
    unscored: int
    """Texts that the judge could not score. They are absent from the means, not 0."""
    facts: Mapping[str, int | str]
    """Counts and bounds of the kind. See `KindResults.facts`."""
    estimates: Mapping[str, Estimate]
    """By heading: measures, those between their anchors, and `KindResults.pooled`."""
    deviations: Mapping[str, float | None]
    """Standard deviation over tasks by measure, with the divisor n (ddof 0), if tasks are grouped. None without any."""

    @property
    def player(self) -> Player:
        """The player of the episodes."""
        return Player(self.agent, self.limit, self.rules, self.judged_by)

    @property
    def setting(self) -> Setting:
        """The setting of the episodes."""
        return Setting(self.player, tuple(self.cell.items()))

    @property
    def place(self) -> str:
        """The cell in words. Empty without a grid."""
        return cell_text(self.cell)


def player_of(score: AnyScore) -> Player:
    """Return the player of an episode."""
    return Player(score.agent, score.limit, score.rules, score.judged_by)


def setting_of(score: AnyScore) -> Setting:
    """Return the setting of an episode."""
    return Setting(player_of(score), tuple(score.cell.items()))


def cell_text(cell: Mapping[str, Scalar]) -> str:
    """Return the values of a cell as text. Empty without a grid."""
    return ", ".join(map(str, cell.values()))


def first_cell(scores: Iterable[AnyScore]) -> Mapping[str, Scalar]:
    """Return the cell with the smallest values, at which agents are compared."""
    return min((score.cell for score in scores), key=_order)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items by key, keys in order of first appearance."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def by_player(scores: Iterable[Score[Any]]) -> dict[Player, list[Score[Any]]]:
    """Return the scores by player, in order of first appearance."""
    return grouped(scores, player_of)


def mean_of_groups(results: KindResults[Any, Any]) -> str:
    """Return the name of the group of all tasks in which each group has equal weight."""
    return f"all, mean of {results.groups}s"


def summarise(scores: Iterable[AnyScore], results: KindResults[Any, Any] | None = None) -> list[SettingSummary]:
    """Return one summary per agent, cell, turn limit, rules and judge, in order of first appearance.

    A kind with groups of tasks has further ones before it: of each group, and of all groups with equal weights.
    Several configurations of one agent are several agents. See `disambiguate_agents`.

    Args:
        scores: scores of episodes.
        results: results of their kind, if not the usual ones, as with other formulas.
    """
    summaries = []
    for name, of_kind in grouped(disambiguate_agents(scores), lambda score: score.kind).items():
        chosen = kind(name).results if results is None else results
        measures = (*chosen.measures, *anchored(of_kind, chosen.measures))
        players = by_player(of_kind)
        for setting, group in grouped(of_kind, setting_of).items():
            for part, strata in _strata(group, chosen):
                pooled = chosen.pooled([score for stratum in strata for score in stratum], players[setting.player])
                summaries.append(_summary(setting, part, strata, measures, chosen, pooled))
    return summaries


def anchored(scores: Sequence[AnyScore], measures: Sequence[Measure[Any]]) -> tuple[Measure[Any], ...]:
    """Return the measures between their anchors, of the agents that played the same task in the same cell.

    Their functions take scores, see `value_of`.
    """
    return tuple(_Anchored.of_measure(measure, measure.anchors, scores) for measure in measures if measure.anchors)


def value_of(measure: Measure[Any], score: AnyScore) -> float | None:
    """Return the value of a measure for an episode."""
    return measure.of_score(score) if isinstance(measure, _Anchored) else measure.of(score.detail)


def task_means(scores: Iterable[AnyScore], measure: Measure[Any]) -> dict[str, float]:
    """Return the mean of a measure over the episodes of each task. Tasks without a value are absent."""
    values = ((score.task, value_of(measure, score)) for score in scores)
    known = grouped(((task, value) for task, value in values if value is not None), lambda pair: pair[0])
    return {task: fmean(value for _, value in of_task) for task, of_task in known.items()}


def summary_table(
    summaries: Iterable[SettingSummary], measures: Sequence[str], results: KindResults[Any, Any], intervals: bool = True
) -> Iterator[list[str]]:
    """Yield the rows of a text table, headings first. A mean over fewer tasks than its row has n below it.

    Args:
        summaries: rows of one kind.
        measures: names of estimates and facts.
        results: results of the kind, with the headings.
        intervals: whether each mean has one below it.
    """
    rows = list(summaries)
    settings = [
        name for name in ("limit", "rules", "judged_by", "group") if len({getattr(row, name) for row in rows}) > 1
    ]
    grid = list(dict.fromkeys(name for row in rows for name in row.cell))
    heads, unscored = {"judged_by": "judged by", "group": results.clusters}, any(row.unscored for row in rows)
    labels = {name: own_parts([getattr(row, name) for row in rows]) for name in settings}
    yield ["agent", *map(axis_name, grid), *(heads.get(name, name) for name in settings), f"n ({results.clusters})",
           *map(results.heading, measures), *(["unscored"] if unscored else [])]  # fmt: skip
    for number, row in enumerate(rows):
        cells = [str(row.cell.get(name, "–")) for name in grid]
        shown = [
            str(row.facts.get(name, in_cell(row.estimates.get(name, NO_ESTIMATE), row.tasks, intervals)))
            for name in measures
        ]
        yield [row.agent, *cells, *(labels[name][number] for name in settings), f"{row.episodes} ({row.tasks})",
               *shown, *([str(row.unscored)] if unscored else [])]  # fmt: skip


def own_parts(labels: Sequence[str]) -> list[str]:
    """Return labels without the parts, between commas, that all of them share: what tells them apart."""
    parts = [label.split(", ") for label in labels]
    common = set.intersection(*map(set, parts)) if parts else set()
    return [", ".join(part for part in of if part not in common) for of in parts]


def axis_name(name: str) -> str:
    """Return the heading of a name on the grid."""
    return name.replace("_", " ")


def format_estimate(estimate: Estimate) -> tuple[str, str]:
    """Return a mean and its interval as text, the interval with fewer digits. Empty without an interval."""
    mean, low, high = estimate[:3]
    if mean is None:
        return "–", ""
    digits = 1 if abs(mean) >= 10 else 2
    interval = "" if low is None or high is None else f"[{low:z.{digits}f}, {high:z.{digits}f}]"
    return f"{mean:z.{digits + 1}f}", interval


def in_cell(estimate: Estimate, tasks: int = 0, interval: bool = True) -> str:
    """Return an estimate as the lines of one cell: mean, interval, and n if it rests on fewer than ``tasks`` tasks."""
    fewer = f"n = {estimate.trees}" if 0 < estimate.trees < tasks else ""
    return "\n".join(filter(None, (*format_estimate(estimate)[: 1 + interval], fewer)))


def as_plain(value: Any) -> Any:
    """Return records, nested in any way, as plain values for JSON. The values of a cell stand beside the others."""
    if is_dataclass(value):
        plain = {field.name: as_plain(getattr(value, field.name)) for field in fields(value)}
        return {name: each for name, each in plain.items() if name != "cell"} | dict(plain.get("cell", {}))
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: as_plain(each) for name, each in value.items()}
    return [as_plain(each) for each in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class _Anchored(Measure[Any]):
    """Measure between its anchors, taken from the same task and setting."""

    ends: Mapping[tuple[object, ...], tuple[float | None, float | None]] | None = None

    @classmethod
    def of_measure(cls, measure: Measure[Any], anchors: Anchors, scores: Sequence[AnyScore]) -> _Anchored:
        """Return a measure on the scale from the floor (0) to the ceiling (1) of the same task and setting."""
        by_place = grouped(scores, _place)
        ends = {
            place: (_end(group, measure, anchors.floor), _end(group, measure, anchors.ceiling))
            for place, group in by_place.items()
        }
        return cls(anchors.name, measure.of, f"{measure.name} between its anchors", judged=measure.judged, ends=ends)

    def of_score(self, score: AnyScore) -> float | None:
        """Return the value for an episode. None without both ends in order."""
        low, high = (self.ends or {}).get(_place(score), (None, None))
        value = self.of(score.detail)
        return None if value is None or low is None or high is None or high <= low else (value - low) / (high - low)


def _place(score: AnyScore) -> tuple[object, ...]:
    """Return everything that an episode shares with those that anchor it."""
    return score.task, score.limit, score.rules, score.judged_by, tuple(score.cell.items())


def _end(scores: Sequence[AnyScore], measure: Measure[Any], anchor: str | float) -> float | None:
    if not isinstance(anchor, str):
        return anchor
    values = [measure.of(score.detail) for score in scores if score.agent == anchor]
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _strata(
    scores: Sequence[AnyScore], results: KindResults[Any, Any]
) -> Iterator[tuple[str, Sequence[Sequence[AnyScore]]]]:
    """Yield the groups of tasks by name, each with its strata."""
    if results.groups:
        groups = grouped(sorted(scores, key=lambda score: score.group), lambda score: score.group)
        for name, members in groups.items():
            yield name, [members]
        if len(groups) > 1:
            yield mean_of_groups(results), list(groups.values())
    yield POOLED, [scores]


def _summary(
    setting: Setting, group: str, strata: Sequence[Sequence[AnyScore]], measures: Sequence[Measure[Any]],
    results: KindResults[Any, Any], pooled: Mapping[str, Estimate],
) -> SettingSummary:  # fmt: skip
    scores = [score for stratum in strata for score in stratum]
    estimates = {
        measure.name: stratified_mean([[(score.task, value_of(measure, score)) for score in part] for part in strata])
        for measure in measures
    }
    return SettingSummary(
        **setting.player._asdict(),
        cell=dict(setting.cell),
        group=group,
        tasks=len({score.task for score in scores}),
        episodes=len(scores),
        unscored=sum(score.unscored for score in scores),
        facts=results.facts(scores),
        estimates={**estimates, **pooled},
        deviations={m.name: _deviation(strata, m) for m in results.measures} if results.groups else {},
    )


def _deviation(strata: Sequence[Sequence[AnyScore]], measure: Measure[Any]) -> float | None:
    """Return the standard deviation over tasks with the divisor n. Several strata have equal weights."""
    means = [list(of_tasks.values()) for stratum in strata if (of_tasks := task_means(stratum, measure))]
    if not means:
        return None
    middle = fmean(fmean(values) for values in means)
    return math.sqrt(fmean(pstdev(values) ** 2 + (fmean(values) - middle) ** 2 for values in means))


def _order(cell: Mapping[str, Scalar]) -> tuple[tuple[bool, Any], ...]:
    """Return a sort key of cells: numbers by size, before words."""
    return tuple((isinstance(value, str), value or 0) for value in cell.values())
