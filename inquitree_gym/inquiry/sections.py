"""Sections of a report on inquiries: coverage over turns, readings, and fake results."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.inquiry.gains import CHOOSING
from inquitree_gym.inquiry.recall import ESTIMATES, RECALL_GAP
from inquitree_gym.inquiry.results import (
    AGAINST_POSTERIOR,
    CHANGE,
    CONFLICTS,
    LEVEL,
    REDO_PROBABILITIES,
    SPLIT,
    STATED,
    EpisodeScore,
    InquiryDetail,
)
from inquitree_gym.inquiry.trajectory import ReadingCounts
from inquitree_gym.inquiry.vigilance import (
    AUC,
    BRIER,
    CRITERION,
    D_PRIME,
    FALSE_ALARMS,
    GAP,
    HITS,
    SHOWINGS,
    Counts,
    Exposure,
    Trial,
    count,
    sensitivity,
    slopes,
)
from inquitree_gym.results.figures import Chart, curves, levels, spreads
from inquitree_gym.results.report import Report, Section, file_name
from inquitree_gym.results.sections import curve_of
from inquitree_gym.results.statistics import Estimate, clustered_mean
from inquitree_gym.results.summary import SettingSummary, axis_name, grouped, summarise
from inquitree_gym.results.tables import Table, as_csv, counted, linked, make_table

QUARTERS = 4
"""Number of bins by position in the inquiry."""
CONTEXTS = (0, 1, 2, 4, 8, 16, 32, 64)
"""Lower ends of the bins by context, in thousands of tokens. The last bin has no upper end."""
TOKENS_PER_UNIT = 1_000
"""Tokens in one unit of context."""


@dataclass(frozen=True, slots=True)
class VigilanceBin:
    """Vigilance over the results of one bin."""

    name: str
    middle: float
    """Place of the bin on its axis. For a bin by position, a share of the inquiry."""
    counts: Counts
    """Counts over all trees."""
    estimates: dict[str, Estimate]
    """Hit rate, false-alarm rate, their difference, d′ and c. See `sensitivity`."""


@dataclass(frozen=True, slots=True)
class VigilanceTrend:
    """Trend of one player's vigilance."""

    by_showing: list[VigilanceBin]
    """One bin per kind of showing that occurs. See `SHOWINGS`."""
    by_position: list[VigilanceBin]
    by_context: list[VigilanceBin]
    counted: bool
    """True if context is the service's count of prompt tokens, False if it is estimated from the observations."""
    over_position: dict[str, Estimate]
    """Change of rates from the start of the inquiry (0) to its end (1)."""
    over_context: dict[str, Estimate]
    """Change of rates per 1,000 tokens."""


def vigilance_trend(scores: Sequence[EpisodeScore]) -> VigilanceTrend | None:
    """Return the trend over some episodes. None if no episode with fakes left a choice."""
    answered = [
        (score, exposure)
        for score in scores
        for exposure in score.detail.exposures
        if score.cell["fake_level"] and exposure.counts
    ]
    if not answered:
        return None
    first = [(score, exposure) for score, exposure in answered if not exposure.before]
    counted = all(exposure.prompt_tokens is not None for _, exposure in first)
    of_position = [_trial(score, each, each.turn / score.detail.trajectory.turns) for score, each in first]
    of_context = [_trial(score, each, _context(each, counted)) for score, each in first]
    return VigilanceTrend(
        by_showing=[
            _bin(name, place, trials)
            for place, (name, counts) in enumerate(SHOWINGS.items())
            if (trials := [_trial(score, each, place) for score, each in answered if counts(each)])
        ],
        by_position=_bins(of_position, _quarter),
        by_context=_bins(of_context, _context_range),
        counted=counted,
        over_position=slopes(of_position),
        over_context=slopes(of_context),
    )


def _trial(score: EpisodeScore, exposure: Exposure, at: float) -> Trial:
    level = int(score.cell["fake_level"] or 0)
    return Trial(score.task, exposure.fake > 0, float(bool(exposure.redone)), at, level)


def _context(exposure: Exposure, counted: bool) -> float:
    tokens = exposure.prompt_tokens if counted else None
    return (exposure.tokens_read if tokens is None else tokens) / TOKENS_PER_UNIT


def _bins(trials: Sequence[Trial], bin_of: Callable[[float], tuple[float, str]]) -> list[VigilanceBin]:
    """Return the bins in order. ``bin_of`` maps a place on the axis to the middle and the name of its bin."""
    groups = grouped(trials, lambda trial: bin_of(trial.at))
    return [_bin(name, middle, groups[middle, name]) for middle, name in sorted(groups)]


def _bin(name: str, middle: float, trials: Iterable[Trial]) -> VigilanceBin:
    by_tree = count(trials)
    return VigilanceBin(name, middle, sum(by_tree.values(), Counts()), sensitivity(by_tree))


def _quarter(position: float) -> tuple[float, str]:
    number = min(int(position * QUARTERS), QUARTERS - 1)
    return (number + 0.5) / QUARTERS, f"{number / QUARTERS:.2f}–{(number + 1) / QUARTERS:.2f}"


def _context_range(thousands: float) -> tuple[float, str]:
    place = bisect_right(CONTEXTS, thousands) - 1
    low, *above = CONTEXTS[place : place + 2]
    return float(low), f"{low}–{above[0]}" if above else f"from {low}"


InquiryReport = Report[InquiryDetail]
COLUMNS = ("redo_rate", CHANGE, HITS, FALSE_ALARMS, D_PRIME, CRITERION)
RATES = (HITS, FALSE_ALARMS, GAP)
_HEADINGS = {name: axis_name(name) for name in (*RATES, D_PRIME, CRITERION)}
MAX_OPEN_LINES = 12
"""Table rows that a section shows without folding."""
TURN_STEP = 0.25
"""Step of the coverage curves, in turns per subtopic."""
OUTCOMES = ("accepted", "hinted", "waits", "forced", "limit")
REASONS = ("below_threshold", "prerequisite_unmet", "unreadable_decision")


def turns(report: InquiryReport) -> Section:
    """Return coverage over turns at the lowest fake level."""
    shown = {name: coverage_curve(group) for name, group in report.by_player(report.in_cell()).items()}
    chart = curves("turns", ("turns per subtopic", "coverage r_c"), shown, mark=3)
    return Section("turns", "Coverage over turns", report.words("turns"), (chart,))


def coverage_curve(scores: Sequence[EpisodeScore]) -> list[tuple[float, Estimate]]:
    """Return the mean coverage by turns per subtopic, clustered by tree, up to the longest episode."""
    end = max(len(score.detail.coverage) / score.detail.subtopics for score in scores)
    steps = np.arange(0, end + TURN_STEP, TURN_STEP)
    by_tree = {
        tree: np.mean([_coverage_at(score.detail, steps) for score in group], axis=0)
        for tree, group in groupby(sorted(scores, key=_tree), key=_tree)
    }
    return [
        (float(step), clustered_mean((tree, float(curve[i])) for tree, curve in by_tree.items()))
        for i, step in enumerate(steps)
    ]


def readings(report: InquiryReport) -> Section:
    """Return outcomes, reasons and similarities of the choices."""
    tallies = {
        name: ReadingCounts.total(score.detail.readings for score in group)
        for name, group in report.by_player().items()
    }
    thresholds = {score.detail.threshold for score in report.scores}
    mark = thresholds.pop() if len(thresholds) == 1 else None
    similarities = {
        "accepted": {name: tally.accepted for name, tally in tallies.items() if tally.accepted},
        "refused": {name: tally.refused for name, tally in tallies.items() if tally.refused},
    }
    charts = tuple(
        spreads(f"{outcome}-similarity", f"cosine similarity of {outcome} choices", values, mark)
        for outcome, values in similarities.items()
        if values
    )
    lines = [
        [
            name,
            *linked(
                (tally.choices, *map(tally.share, OUTCOMES), *(tally.reasons[reason] for reason in REASONS)), agent=name
            ),
        ]
        for name, tally in tallies.items()
    ]
    heads = ("agent", "choices", *OUTCOMES, *(reason.replace("_", " ") for reason in REASONS))
    table = make_table("Readings", heads, lines)
    return Section("reading", "How actions were read", report.words("readings"), charts, (table,))


def gains(report: InquiryReport) -> Section | None:
    """Return the gains by choosing and reading. None if no episode was played in an evenly drawn world."""
    if all(score.detail.reasoned is None for score in report.scores):
        return None
    measures = (CHOOSING, "information", "reading", "exact_return")
    table = report.rows_table("Gains", report.pooled, measures)
    folded = len(report.pooled) > MAX_OPEN_LINES
    return Section("gains", "Gains by choosing and reading", report.words("gains"), (), (table,), folded)


def paired_worlds(scores: Iterable[EpisodeScore]) -> list[SettingSummary]:
    """Return one summary per setting of the episodes that have answers, a world and its complement together.

    Reports keep sets of worlds apart. The estimates of `recall_gap` need both sides.
    """
    kept = (score for score in scores if score.detail.answers)
    return summarise(replace(score, rules=_without_world(score.rules)) for score in kept)


def _without_world(rules: str) -> str:
    return ", ".join(part for part in rules.split(", ") if not part.startswith("world="))


def recall_rows(report: InquiryReport) -> list[SettingSummary]:
    """Return the settings in which an axis was played both ways under one seed, with the estimates of `recall_gap`."""
    return [row for row in paired_worlds(report.scores) if row.estimates[RECALL_GAP].trees]


def recall(report: InquiryReport) -> Section | None:
    """Return the recall gap. None if no axis was played both ways under one seed."""
    rows = recall_rows(report)
    if not rows:
        return None
    lines = [
        (row.agent, row.place or "–", f"{row.episodes:,} ({row.tasks})", *(row.estimates[name] for name in ESTIMATES))
        for row in rows
    ]
    grid = ", ".join(report.grid).replace("_", " ")
    table = make_table("Recall gap", ("agent", grid, f"n ({report.clusters})", *ESTIMATES), lines, labels=2)
    return Section("recall", "Recall gap", report.words("recall"), (), (table,))


def vigilance(report: InquiryReport) -> Section:
    """Return how often results are redone over fake levels, as in the paper's Figure 3."""
    fakes = any(row.cell[LEVEL] for row in report.pooled)
    beliefs = any(row.facts[STATED] for row in report.pooled)
    words = report.words("vigilance", fakes=fakes, change=axis_name(CHANGE), beliefs=beliefs)
    if not fakes:
        return Section("vigilance", "Fake results", words)
    tables = [
        report.rows_table("Vigilance", report.pooled, COLUMNS),
        report.rows_table("Redo probabilities", report.pooled, REDO_PROBABILITIES),
        report.rows_table("Vigilance by kind of showing", report.pooled, tuple(measure.name for measure in SPLIT)),
        report.rows_table("Conflicts between results", report.pooled, CONFLICTS),
    ]
    if any(score.detail.reasoned is not None for score in report.scores):
        tables.append(report.rows_table("Vigilance against the posterior", report.pooled, AGAINST_POSTERIOR))
    if beliefs:
        tables.append(report.rows_table("Stated beliefs", report.pooled, (STATED, BRIER, AUC)))
    folded = len(report.pooled) > MAX_OPEN_LINES
    return Section("vigilance", "Fake results", words, _charts(report), tuple(tables), folded)


def vigilance_over_time(report: InquiryReport) -> Section | None:
    """Return vigilance over the course of an inquiry. None if no fake result left a choice."""
    found = vigilance_trends(report)
    if not found:
        return None
    by_position = {
        name: points
        for name, each in found.items()
        if (points := [(part.middle, gap) for part in each.by_position if (gap := part.estimates[GAP]).low is not None])
    }
    drawn = curves("position", ("position in the inquiry", axis_name(GAP)), by_position, share=False)
    tables = tuple(each for each in _tables(found) if each.lines)
    folded = sum(len(each.lines) for each in tables) > MAX_OPEN_LINES
    words = report.words("vigilance_over_time", drawn=bool(by_position))
    charts = (drawn,) if by_position else ()
    return Section("vigilance-over-time", "Vigilance over time", words, charts, tables, folded)


def vigilance_trends(report: InquiryReport) -> dict[str, VigilanceTrend]:
    """Return the trend of vigilance by name of the player, without players that it is not defined for."""
    found = {name: vigilance_trend(group) for name, group in report.by_player().items()}
    return {name: each for name, each in found.items() if each is not None}


def vigilance_csv(found: dict[str, VigilanceTrend]) -> str:
    """Return vigilance by showing, position and context, and its slopes, as CSV."""
    heads = ("agent", "by", "part", "measure", "mean", "low", "high", "trees", "fakes", "trues")
    return as_csv(heads, _csv_lines(found))


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
        for by, values in (("position", each.over_position), (context, each.over_context)):
            yield from ((name, by, "slope", measure, *estimate[:4], None, None) for measure, estimate in values.items())


def _charts(report: InquiryReport) -> tuple[Chart, ...]:
    axes = {"redo_rate": "results redone", HITS: "fake results redone", FALSE_ALARMS: "true results redone"}
    rates = tuple(
        levels(file_name(measure), ("fake level", axis), curve_of(report, LEVEL, measure))
        for measure, axis in axes.items()
    )
    sensitivity = {
        name: [point for point in points if point[1].mean is not None]
        for name, points in curve_of(report, LEVEL, D_PRIME).items()
    }
    labels = ("fake level", "sensitivity d′")
    return (*rates, levels("d-prime", labels, sensitivity, share=False))


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
    caption, heads = "Change from beginning to end, and per 1,000 tokens", ("agent", "over", *RATES)
    yield make_table(caption, heads, lines, labels=2, headings=_HEADINGS)


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
    return make_table(caption, ("agent", "part", "fakes", "true", *measures), lines, labels=2, headings=_HEADINGS)


def _method(each: VigilanceTrend) -> str:
    return "counted" if each.counted else "estimated"


def _coverage_at(detail: InquiryDetail, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the coverage of an episode after each number of turns per subtopic."""
    curve = np.array([0.0, *detail.coverage])
    return np.asarray(curve[np.minimum(np.floor(steps * detail.subtopics + 1e-9).astype(int), len(curve) - 1)])


def _tree(score: EpisodeScore) -> str:
    return score.task
