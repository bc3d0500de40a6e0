"""Sections of a report that every kind of environment has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from inquitree_gym.protocols import Scalar
from inquitree_gym.results.comparison import PairedDifference
from inquitree_gym.results.cutoff import CutoffSplit, player_label
from inquitree_gym.results.figures import Chart, Curves, bars, differences, dots, levels
from inquitree_gym.results.report import Report, Section, cell_words, file_name, replies, selection, shown_of
from inquitree_gym.results.score import EpisodeCost
from inquitree_gym.results.statistics import Estimate
from inquitree_gym.results.summary import (
    NO_ESTIMATE,
    POOLED,
    Setting,
    SettingSummary,
    axis_name,
    grouped,
    setting_of,
    task_means,
)
from inquitree_gym.results.tables import Table, as_csv, dollars, linked, make_table, shaded

AnyReport = Report[Any]
MAX_COLUMNS = 12
"""Settings that a table by task shows side by side. With more of them, only those of the first cell."""
MAX_DRAWN = 24
"""Differences that a chart shows. With more of them, only those of the first cell."""
MAX_OPEN = 10
"""Missing episodes that a page lists without folding the table."""
TOKENS = {
    "prompt tokens": "prompt_tokens", "completion tokens": "completion_tokens", "reasoning tokens": "reasoning_tokens",
}  # fmt: skip
"""Field of `EpisodeCost` by heading."""


def leaderboard(report: AnyReport) -> Section:
    """Return the agents in the first cell of the grid, best first."""
    charts = tuple(
        report.name_judge(
            bars(name, axis, {report.name(row): (_estimate(row, measure),) for row in report.base}), measure
        )
        for name, (measure, axis) in report.charts.items()
    )
    if report.results.groups:
        board = _board_by_group(report)
    else:
        board = report.rows_table("Leaderboard", report.base, report.pages.board or shown_of(report.results))
    return Section("leaderboard", "Leaderboard", report.words("leaderboard"), charts, (board, *replies(report)))


def by_axis(report: AnyReport) -> Section | None:
    """Return the measures of the charts over each axis of the grid. None if all episodes are in one cell."""
    values = {name: list(dict.fromkeys(row.cell[name] for row in report.pooled)) for name in report.grid}
    axes = {name: found for name, found in values.items() if len(found) > 1}
    charts = tuple(_axis_chart(report, name, chart, found) for name, found in axes.items() for chart in report.charts)
    title = " and ".join(map(axis_name, axes))
    return Section("grid", f"By {title}", report.words("grid", axes=title), charts) if axes else None


def tasks(report: AnyReport) -> Section:
    """Return the means by task and setting."""
    rows = report.pooled if len(report.pooled) <= MAX_COLUMNS else report.base
    several = len({row.place for row in rows}) > 1
    heads = [f"{report.name(row)}, {cell_words(row.cell)}" if several else report.name(row) for row in rows]
    charts, tables, of_setting = [], [], grouped(report.scores, setting_of)
    for title, measure in report.pages.maps(report.results).items():
        means = {row.setting: task_means(of_setting.get(row.setting, ()), measure) for row in rows}
        if not any(means.values()):
            continue  # no episode has this measure
        ranked = _ranked(report, means)
        if report.results.groups:
            found = {task: {head: means[row.setting][task] for head, row in zip(heads, rows, strict=True)
                            if task in means[row.setting]} for task in ranked}  # fmt: skip
            charts.append(report.name_judge(dots(file_name(title), title, found), measure.name))
        tables.append(report.name_judge(_task_table(report, title, rows, heads, ranked, means), measure.name))
    words = report.words("tasks", several=several)
    return Section("tasks", f"By {report.noun}", words, tuple(charts), tuple(tables))


def comparison(report: AnyReport) -> Section | None:
    """Return the paired differences of two runs or of agents. None without a comparison."""
    return paired(report, "comparison", "Comparison", report.differences) if report.differences else None


def paired(report: AnyReport, anchor: str, title: str, found: Sequence[PairedDifference]) -> Section:
    """Return a section of paired differences."""
    few = len(found) <= MAX_DRAWN
    first = min((each.cell for each in found), key=lambda cell: [str(value) for value in cell.values()])
    drawn = [each for each in found if few or each.cell == first]
    several = len({tuple(each.cell.items()) for each in drawn}) > 1
    charts = tuple(
        report.name_judge(
            differences(f"{anchor}-{name}", f"difference in {report.results.heading(measure)}",
                        {_label(each, several): (each.estimates.get(measure, NO_ESTIMATE),) for each in drawn}),
            measure,
        )
        for name, (measure, _) in report.charts.items()
    )  # fmt: skip
    measures = report.results.compared or shown_of(report.results)
    grid = list(dict.fromkeys(name for each in found for name in each.cell))
    lines = [
        [each.name, *(str(each.cell[name]) for name in grid),
         *linked((each.pairs, *map(each.estimates.get, measures)), **_cell(each.cell))]
        for each in found
    ]  # fmt: skip
    heads = ("difference", *map(axis_name, grid), "pairs", *measures)
    headings = {name: report.results.heading(name) for name in measures}
    table = make_table("Paired differences", heads, lines, 1 + len(grid), headings)
    words = report.words(anchor, drawn="" if few else cell_words(first))
    return Section(anchor, title, words, charts, (report.name_judge(table, *measures),))


def cutoffs(report: AnyReport) -> Section | None:
    """Return tasks from before and after the training cutoff of an agent's model, as in the paper's Figure 4.

    None where no agent asked a model.
    """
    splits = report.cutoffs.splits
    if not splits and not report.cutoffs.unnamed:
        return None
    measures = list(splits[0].difference) if splits else []
    words = report.words("cutoff", splits=splits, unnamed=report.cutoffs.unnamed)
    sides = ("before the cutoff", "after it")
    charts = tuple(
        report.name_judge(
            bars(f"cutoff-{name}", axis,
                 {_split_name(report, each): (each.before[measure], each.after[measure]) for each in splits}, sides),
            measure,
        )
        for name, (measure, axis) in report.charts.items()
        if measure in measures
    )  # fmt: skip
    tables = (report.name_judge(_split_table(report, splits), *measures),) if splits else ()
    return Section("cutoff", "Before and after the training cutoff", words, charts, tables)


def cutoffs_csv(report: AnyReport) -> str:
    """Return the splits as CSV: one line per agent, measure and side, and one for the difference."""
    cell = report.cutoffs.cell
    heads = ("agent", "cutoff", "control", *cell, "measure", "side", "mean", "low", "high", report.clusters,
             "episodes", "df")  # fmt: skip
    lines = (
        (report.names[each.player], each.cutoff, each.control, *cell.values(), measure, side, *of[measure][:5], degrees)
        for each in report.cutoffs.splits
        for measure in each.difference
        for side, of, degrees in (
            ("before", each.before, None),
            ("after", each.after, None),
            ("difference", each.difference, each.degrees[measure]),
        )
    )
    return as_csv(heads, lines)


def spending(report: AnyReport) -> Section:
    """Return tokens, dollars and seconds."""
    costs, times = [], []
    for name, group in report.by_player().items():
        spent, turns = EpisodeCost.total(score.cost for score in group), sum(score.turns for score in group)
        paid = dollars(spent.dollars, spent.unpriced)
        counts = [getattr(spent, field) for field in ("replies", *TOKENS.values())]
        costs.append([name, *linked((len(group), turns, *counts, paid, spent.unpriced), agent=name)])
        seconds = (spent.agent_seconds, spent.env_seconds)
        each_turn = (None if total is None or not turns else 1000 * total / turns for total in seconds)
        by_side = [value for pair in zip(seconds, each_turn, strict=True) for value in pair]
        times.append([name, *linked(by_side, agent=name)])
    heads = ("agent", "episodes", "turns", "replies", *TOKENS, "US dollars", "unpriced replies")
    tables = (
        make_table("Cost", heads, costs),
        make_table("Time", ("agent", "agent s", "agent ms/turn", "env s", "env ms/turn"), times),
    )
    return Section("cost", "Cost and time", report.words("cost"), (), tables)


def missing(report: AnyReport) -> Section:
    """Return the episodes without a score, and the reason."""
    gone = [(run.folder.resolve().name, missing) for run in report.runs for missing in run.missing]
    unscored = sum(score.unscored for score in report.scores)
    words = report.words("missing", scored=len(report.scores), missing=len(gone), unscored=unscored)
    lines = [[run, missing.name, missing.status, missing.error or None] for run, missing in gone]
    tables = (make_table("Not scored", ("run", "episode", "status", "error"), lines, labels=4),) if gone else ()
    return Section("missing", "Failures and missing episodes", words, (), tables, folded=len(gone) > MAX_OPEN)


def threats(report: AnyReport) -> Section:
    """Return the threats to validity."""
    rules = ", ".join(dict.fromkeys(score.rules for score in report.scores))
    return Section("threats", "Threats to validity", report.words("threats", judges=report.judged_by, rules=rules))


def settings(report: AnyReport) -> Section:
    """Return the tables of every setting."""
    shown: Mapping[str, tuple[str, ...]] = report.results.tables or {"Results": shown_of(report.results)}
    tables = tuple(report.rows_table(title, report.table, measures) for title, measures in shown.items())
    return Section("settings", "Every setting", (), (), tables, folded=True)


def all_sections(report: AnyReport) -> list[Section]:
    """Return the common sections, and those of the kind behind the comparisons."""
    makers = (leaderboard, by_axis, tasks, comparison, *report.pages.sections, cutoffs, spending, missing,
              threats, settings)  # fmt: skip
    return [section for make in makers if (section := make(report)) is not None]


def curve_of(report: AnyReport, axis: str, measure: str) -> Curves:
    """Return the points of a measure over the numbers of an axis by player, in order of the axis."""
    curves: dict[str, list[tuple[float, Estimate]]] = {name: [] for name in report.names.values()}
    for row in sorted(report.pooled, key=lambda row: float(row.cell[axis] or 0)):
        curves[report.name(row)].append((float(row.cell[axis] or 0), _estimate(row, measure)))
    return curves


def _axis_chart(report: AnyReport, axis: str, chart: str, values: Sequence[Scalar]) -> Chart:
    measure, label = report.charts[chart]
    others = {name: value for name, value in report.cell.items() if name != axis}
    rows = [row for row in report.pooled if all(row.cell[name] == value for name, value in others.items())]
    ordered = sorted(values, key=lambda value: (isinstance(value, str), value or 0))
    found: dict[str, list[tuple[float, Estimate]]] = {name: [] for name in report.names.values()}
    for row in sorted(rows, key=lambda row: ordered.index(row.cell[axis])):
        found[report.name(row)].append((float(ordered.index(row.cell[axis])), _estimate(row, measure)))
    means = [estimate.mean for points in found.values() for _, estimate in points if estimate.mean is not None]
    drawn = levels(
        f"{file_name(axis_name(axis))}-{chart}", (axis_name(axis), label), found,
        share=all(0 <= mean <= 1 for mean in means), names=[str(value) for value in ordered],
    )  # fmt: skip
    return report.name_judge(drawn, measure)


def _board_by_group(report: AnyReport) -> Table:
    """Return the measure by which agents are ordered, by agent and group of tasks."""
    groups = report.groups()
    rows = {group: report.of_group(group) for group in groups}
    lines = [
        [name, *linked((_estimate(rows[group][name], report.order) if name in rows[group] else None
                        for group in groups), agent=name)]
        for name in rows[POOLED]
    ]  # fmt: skip
    table = make_table(f"{report.order} by {report.results.groups}", ("agent", *groups), lines)
    caption = f"{report.results.heading(report.order)} by {report.results.groups}"
    return report.name_judge(replace(table, caption=caption), report.order)


def _task_table(
    report: AnyReport, title: str, rows: Sequence[SettingSummary], heads: Sequence[str], ranked: Sequence[str],
    means: Mapping[Setting, Mapping[str, float]],
) -> Table:  # fmt: skip
    names = {score.task: (report.pages.label(score), score.group) for score in report.scores}
    labels = [report.noun, *([report.results.groups] if report.results.groups else [])]
    lines = [
        [
            *names[task][: len(labels)],
            *(cell for row in rows for cell in linked(
                [shaded(means[row.setting].get(task))],
                **{report.noun: task, **selection(report.name(row), row.cell)})),
        ]
        for task in ranked
    ]  # fmt: skip
    return make_table(title, (*labels, *heads), lines, labels=len(labels))


def _ranked(report: AnyReport, means: Mapping[Setting, Mapping[str, float]]) -> list[str]:
    """Return the tasks, those of a kind with groups in descending order of their mean."""
    known = list(dict.fromkeys(score.task for score in report.scores))
    if not report.results.groups:
        return known
    values = {task: [of[task] for of in means.values() if task in of] for task in known}
    return sorted(known, key=lambda task: -(fmean(values[task]) if values[task] else 0.0))


def _split_table(report: AnyReport, splits: Sequence[CutoffSplit]) -> Table:
    clusters = report.clusters
    heads = ("agent", "cutoff", "measure", "before", clusters, "after", clusters, "before − after", "df",
             f"unclear {clusters}")  # fmt: skip
    lines = [
        [
            _split_name(report, each), each.cutoff, measure,
            *linked(
                (each.before[measure], each.before[measure].trees, each.after[measure], each.after[measure].trees,
                 each.difference[measure], each.degrees[measure], each.unclear),
                agent=report.names[each.player],
            ),
        ]
        for each in splits
        for measure in each.difference
    ]  # fmt: skip
    return make_table("Before and after", heads, lines, labels=3)


def _split_name(report: AnyReport, split: CutoffSplit) -> str:
    return player_label(split, report.names[split.player])


def _label(difference: PairedDifference, several: bool) -> str:
    return f"{difference.name}, {cell_words(difference.cell)}" if several else difference.name


def _cell(cell: Mapping[str, Scalar]) -> dict[str, object]:
    return {axis_name(name): value for name, value in cell.items()}


def _estimate(row: SettingSummary, measure: str) -> Estimate:
    return row.estimates.get(measure, NO_ESTIMATE)
