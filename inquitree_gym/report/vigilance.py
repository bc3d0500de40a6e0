"""The sections of a report on fake results: how often they are told by level, and whether that wears off."""

from __future__ import annotations

from collections.abc import Iterator

from inquitree_gym.analysis.aggregate import CHANGE, by_player
from inquitree_gym.analysis.vigilance import VigilanceBin, VigilanceTrend, vigilance_trend
from inquitree_gym.report import figures
from inquitree_gym.report.contents import Contents, Section, rows_grid
from inquitree_gym.report.drawing import Panel
from inquitree_gym.report.tables import Grid, as_csv, grid
from inquitree_gym.scoring.vigilance import CRITERION, D_PRIME, FALSE_ALARMS, GAP, HITS

COLUMNS = ("redo", CHANGE, HITS, FALSE_ALARMS, D_PRIME, CRITERION)
RATES = (HITS, FALSE_ALARMS, GAP)
MOST_LINES = 12
"""Lines of its tables that a section shows without being asked."""
TITLE, WEARING_TITLE = "Fake results", "Does vigilance wear off?"
WORDS = (
    "How often results are redone as fakes become more frequent (at level k, k in 10 results are fake): all results, "
    "the fakes among them (hits), the true ones among them (false alarms). An agent that tells fakes apart has hits "
    "far above false alarms; one that redoes nothing lies at 0 in all three.",
    "d′ is how well fakes are told from true results, in standard deviations, 0 where hits and false alarms are equal; "
    "c is the criterion, below 0 for whoever redoes most results, above 0 for whoever redoes few. Both are worked out "
    "per tree, the episodes of a tree pooled, with the log-linear correction, and then averaged over trees; few trials "
    f"pull d′ towards 0. {CHANGE}: redo frequency minus that without fakes, paired by tree and seed.",
)
WEARING = (
    "Fake and true results, all levels with fakes and the episodes of a tree pooled. A later showing of a study's "
    "result can be compared with the one before, so first and later showings stand apart, and the rest is over first "
    "showings alone. The position of a result is its turn over all turns of the episode. A slope below 0 in hits − "
    "false alarms says that telling fakes apart gets worse; it is a mean over trees of a line within each tree, so "
    "that trees that differ do not look like a change, but other subtopics come late than come early.",
)


def vigilance(report: Contents) -> Section:
    """Fake results over fake levels, as in the paper's Figure 3."""
    if {row.fake_level for row in report.table} == {0}:
        return Section("vigilance", TITLE, ("No run here showed fake results; play some with --fake-level 0,3,6.",))
    table = rows_grid("Vigilance", report, report.table, COLUMNS)
    return Section("vigilance", TITLE, WORDS, _panels(report), (table,), folded=len(table.lines) > MOST_LINES)


def wearing(report: Contents) -> Section | None:
    """Fake results over the course of an inquiry; None where none left a choice."""
    found = worn(report)
    if not found:
        return None
    by_position = {
        name: [(part.middle, part.estimates[GAP]) for part in each.by_position] for name, each in found.items()
    }
    panel = figures.curves("position", ("position in the inquiry", GAP), by_position, share=False)
    grids = tuple(each for each in _grids(found) if each.lines)
    folded = sum(len(each.lines) for each in grids) > MOST_LINES
    return Section("wearing", WEARING_TITLE, WEARING, (panel,), grids, folded=folded)


def worn(report: Contents) -> dict[str, VigilanceTrend]:
    """Return by name of the player how its vigilance depends on where a result stands."""
    groups = by_player(report.episodes)
    found = {report.names[player]: vigilance_trend(group) for player, group in groups.items()}
    return {name: each for name, each in found.items() if each is not None}


def erosion_csv(report: Contents) -> str:
    """Return everything by showing, position and context as CSV, the slopes among it."""
    return as_csv(("agent", "by", "part", "measure", "mean", "low", "high", "trees", "fakes", "trues"), _values(report))


def _values(report: Contents) -> Iterator[tuple[object, ...]]:
    for name, each in worn(report).items():
        context = "context counted" if each.counted else "context estimated"
        for by, parts in (("showing", each.by_showing), ("position", each.by_position), (context, each.by_context)):
            for part in parts:
                counts = (int(part.counts.fakes), int(part.counts.trues))
                yield from (
                    (name, by, part.name, measure, *estimate[:4], *counts)
                    for measure, estimate in part.estimates.items()
                )
        for by, slopes in (("position", each.over_position), (context, each.over_context)):
            yield from ((name, by, "slope", measure, *estimate[:4], None, None) for measure, estimate in slopes.items())


def _panels(report: Contents) -> tuple[Panel, ...]:
    kinds = (("redo", "results redone"), (HITS, "fake results redone"), (FALSE_ALARMS, "true results redone"))
    by_level = tuple(
        figures.curves(measure.replace(" ", "-"), ("fake level", axis), _over_levels(report, measure), levels=True)
        for measure, axis in kinds
    )
    sensitive = {
        name: [point for point in points if point[1].mean is not None]
        for name, points in _over_levels(report, D_PRIME).items()
    }
    sensed = figures.curves("d-prime", ("fake level", "sensitivity d′"), sensitive, levels=True, share=False)
    return (*by_level, sensed)


def _over_levels(report: Contents, measure: str) -> figures.Curves:
    return {
        name: [(float(row.fake_level), row.estimates[measure]) for row in rows]
        for name, rows in report.by_player.items()
    }


def _grids(found: dict[str, VigilanceTrend]) -> Iterator[Grid]:
    sensed, rates = (HITS, FALSE_ALARMS, D_PRIME, CRITERION), RATES
    yield _by_part("First and later showings", {name: each.by_showing for name, each in found.items()}, sensed)
    yield _by_part("By position in the inquiry", {name: each.by_position for name, each in found.items()}, rates)
    yield _by_part("By context, thousands of tokens", {name: each.by_context for name, each in found.items()}, rates)
    lines = [
        [name, over, *(slopes[measure] for measure in rates)]
        for name, each in found.items()
        for over, slopes in (("the inquiry", each.over_position), (_unit(each), each.over_context))
    ]
    yield grid("Change from beginning to end, and per 1,000 tokens", ("agent", "over", *rates), lines, names=2)


def _by_part(caption: str, found: dict[str, list[VigilanceBin]], measures: tuple[str, ...]) -> Grid:
    lines = [
        [name, part.name, int(part.counts.fakes), int(part.counts.trues), *map(part.estimates.get, measures)]
        for name, parts in found.items()
        for part in parts
    ]
    return grid(caption, ("agent", "part", "fakes", "true", *measures), lines, names=2)


def _unit(each: VigilanceTrend) -> str:
    return "1,000 tokens, counted" if each.counted else "1,000 tokens, estimated"
