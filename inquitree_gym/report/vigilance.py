"""Sections of a report on fake results: vigilance by fake level, and over the course of an inquiry."""

from __future__ import annotations

from collections.abc import Iterator

from inquitree_gym.analysis.aggregate import CHANGE, SPLIT, by_player
from inquitree_gym.analysis.vigilance import VigilanceBin, VigilanceTrend, vigilance_trend
from inquitree_gym.report.figures import Chart, Curves, curves, levels
from inquitree_gym.report.sections import ReportData, Section
from inquitree_gym.report.tables import Table, as_csv, counted, linked, make_table
from inquitree_gym.report.templating import paragraphs
from inquitree_gym.scoring import Estimate
from inquitree_gym.scoring.exposures import AUC, BRIER
from inquitree_gym.scoring.vigilance import CRITERION, D_PRIME, FALSE_ALARMS, GAP, HITS

COLUMNS = ("redo", CHANGE, HITS, FALSE_ALARMS, D_PRIME, CRITERION)
RATES = (HITS, FALSE_ALARMS, GAP)
MAX_OPEN_LINES = 12
"""Table rows that a section shows without folding."""


def vigilance(report: ReportData) -> Section:
    """Return how often results are redone over fake levels, as in the paper's Figure 3."""
    fakes = any(row.fake_level for row in report.table)
    beliefs = any(row.stated for row in report.table)
    words = paragraphs("vigilance", fakes=fakes, change=CHANGE, beliefs=beliefs)
    if not fakes:
        return Section("vigilance", "Fake results", words)
    tables = [
        report.rows_table("Vigilance", report.table, COLUMNS),
        report.rows_table("Vigilance by kind of showing", report.table, tuple(SPLIT)),
    ]
    if beliefs:
        tables.append(_beliefs(report))
    folded = len(report.table) > MAX_OPEN_LINES
    return Section("vigilance", "Fake results", words, _charts(report), tuple(tables), folded)


def wearing(report: ReportData) -> Section | None:
    """Return vigilance over the course of an inquiry; None if no fake result left a choice."""
    found = vigilance_trends(report)
    if not found:
        return None
    by_position = {
        name: [(part.middle, part.estimates[GAP]) for part in each.by_position] for name, each in found.items()
    }
    chart = curves("position", ("position in the inquiry", GAP), by_position, share=False)
    tables = tuple(each for each in _tables(found) if each.lines)
    folded = sum(len(each.lines) for each in tables) > MAX_OPEN_LINES
    return Section("wearing", "Does vigilance wear off?", paragraphs("wearing"), (chart,), tables, folded)


def vigilance_trends(report: ReportData) -> dict[str, VigilanceTrend]:
    """Return the trend of vigilance by name of the player, without players that it is not defined for."""
    groups = by_player(report.episodes)
    found = {report.names[player]: vigilance_trend(group) for player, group in groups.items()}
    return {name: each for name, each in found.items() if each is not None}


def vigilance_csv(report: ReportData) -> str:
    """Return vigilance by showing, position and context, and its slopes, as CSV."""
    heads = ("agent", "by", "part", "measure", "mean", "low", "high", "trees", "fakes", "trues")
    return as_csv(heads, _csv_lines(vigilance_trends(report)))


def _csv_lines(found: dict[str, VigilanceTrend]) -> Iterator[tuple[object, ...]]:
    for name, each in found.items():
        context = f"context {_method(each)}"
        for by, parts in (("showing", each.by_showing), ("position", each.by_position), (context, each.by_context)):
            for part in parts:
                counts = (int(part.counts.fakes), int(part.counts.trues))
                yield from (
                    (name, by, part.name, measure, *estimate[:4], *counts)
                    for measure, estimate in part.estimates.items()
                )
        for by, slopes in (("position", each.over_position), (context, each.over_context)):
            yield from ((name, by, "slope", measure, *estimate[:4], None, None) for measure, estimate in slopes.items())


def _beliefs(report: ReportData) -> Table:
    lines = [
        [
            report.name(row), str(row.fake_level),
            *linked(
                (row.stated, *(counted(row.estimates[name], row.trees) for name in (BRIER, AUC))),
                agent=report.name(row), fakes=row.fake_level,
            ),
        ]
        for row in report.table
    ]  # fmt: skip
    return make_table("Stated beliefs", ("agent", "fakes", "stated", BRIER, AUC), lines)


def _charts(report: ReportData) -> tuple[Chart, ...]:
    axes = {"redo": "results redone", HITS: "fake results redone", FALSE_ALARMS: "true results redone"}
    rates = tuple(
        levels(measure.replace(" ", "-"), ("fake level", axis), _by_level(report, measure))
        for measure, axis in axes.items()
    )
    sensitivity = {
        name: [point for point in points if point[1].mean is not None]
        for name, points in _by_level(report, D_PRIME).items()
    }
    labels = ("fake level", "sensitivity d′")
    return (*rates, levels("d-prime", labels, sensitivity, share=False))


def _by_level(report: ReportData, measure: str) -> Curves:
    found: dict[str, list[tuple[float, Estimate]]] = {name: [] for name in report.names.values()}
    for row in sorted(report.table, key=lambda row: row.fake_level):
        found[report.name(row)].append((float(row.fake_level), row.estimates[measure]))
    return found


def _tables(found: dict[str, VigilanceTrend]) -> Iterator[Table]:
    showings = {name: each.by_showing for name, each in found.items()}
    yield _parts_table("By kind of showing", showings, (HITS, FALSE_ALARMS, D_PRIME, CRITERION))
    yield _parts_table("By position in the inquiry", {name: each.by_position for name, each in found.items()}, RATES)
    yield _parts_table(
        "By context, thousands of tokens", {name: each.by_context for name, each in found.items()}, RATES
    )
    lines = [
        [name, over, *linked((counted(slopes[measure]) for measure in RATES), agent=name)]
        for name, each in found.items()
        for over, slopes in (("the inquiry", each.over_position), (f"1,000 tokens, {_method(each)}", each.over_context))
    ]
    yield make_table("Change from beginning to end, and per 1,000 tokens", ("agent", "over", *RATES), lines, labels=2)


def _parts_table(caption: str, found: dict[str, list[VigilanceBin]], measures: tuple[str, ...]) -> Table:
    lines = [
        [
            name, part.name,
            *linked(
                (int(part.counts.fakes), int(part.counts.trues),
                 *(counted(part.estimates.get(measure)) for measure in measures)),
                agent=name,
            ),
        ]
        for name, parts in found.items()
        for part in parts
    ]  # fmt: skip
    return make_table(caption, ("agent", "part", "fakes", "true", *measures), lines, labels=2)


def _method(each: VigilanceTrend) -> str:
    return "counted" if each.counted else "estimated"
