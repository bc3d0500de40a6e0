"""The figures of a report: bars, differences, lines, and where similarities lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from inquitree_gym.report.drawing import DASHES, INK, MARKERS, SERIES, Panel
from inquitree_gym.scoring import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Bars = Sequence[tuple[str, Estimate]]
"""One bar or dot per label, from the top."""
Pairs = Sequence[tuple[str, tuple[Estimate, Estimate]]]
"""Two bars per label, from the top."""
Curves = Mapping[str, Sequence[tuple[float, Estimate]]]
"""Per label the points of a line: x, and the estimate of y."""

ROW = 0.3
"""Inches of height that a horizontal bar takes."""
DODGE = 0.06
"""Fake levels by which lines stand apart, so that equal ones can be told."""
WIDEST_LABEL = 28
"""Characters of a label; a longer one loses its middle."""


def bars(name: str, measure: str, found: Bars) -> Panel:
    """Draw horizontal bars in [0, 1] with their intervals; ``name`` is a word that is unique on the page."""

    def draw(axes: Axes) -> None:
        places = np.arange(len(found))[::-1]
        means = [_or_nan(estimate.mean) for _, estimate in found]
        axes.barh(places, means, height=0.66, color=SERIES[0])
        _whiskers(axes, places, found)
        for place, (_, estimate) in zip(places, found, strict=True):
            if estimate.mean is None:
                axes.annotate("no value", (0, place), (4, 0), textcoords="offset points", va="center")
        _name_rows(axes, places, found)
        axes.set(xlabel=measure, xlim=(0, _end(found)))

    return Panel(name, f"{measure} by agent", draw, _height(found))


def differences(name: str, measure: str, found: Bars) -> Panel:
    """Draw differences as dots with their intervals, around a line at 0."""

    def draw(axes: Axes) -> None:
        places = np.arange(len(found))[::-1]
        axes.axvline(0, color=INK, linewidth=1)
        axes.plot([_or_nan(estimate.mean) for _, estimate in found], places, "o", color=SERIES[0], markersize=7)
        _whiskers(axes, places, found)
        _name_rows(axes, places, found)
        axes.set(xlabel=measure)

    return Panel(name, f"{measure} by agent", draw, _height(found))


def pairs(name: str, measure: str, ends: tuple[str, str], found: Pairs) -> Panel:
    """Draw two bars in [0, 1] per label with their intervals, one for each of ``ends``."""

    def draw(axes: Axes) -> None:
        places = np.arange(len(found))[::-1]
        for end, offset in enumerate((0.18, -0.18)):
            sides = [(label, both[end]) for label, both in found]
            means = [_or_nan(estimate.mean) for _, estimate in sides]
            axes.barh(places + offset, means, height=0.33, color=SERIES[end], label=ends[end])
            _whiskers(axes, places + offset, sides)
            for place, mean in zip(places + offset, means, strict=True):
                if np.isnan(mean):
                    axes.annotate("no value", (0, place), (4, 0), textcoords="offset points", va="center", fontsize=8)
        _name_rows(axes, places, found)
        axes.set(xlabel=measure, xlim=(0, max(_end([(label, both[end]) for label, both in found]) for end in (0, 1))))
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.5 / (_height([*found, *found]) - 0.75)), ncols=2, fontsize=9
        )

    return Panel(name, f"{measure}, {ends[0]} and {ends[1]}, by agent", draw, 0.5 + _height([*found, *found]))


def curves(
    name: str,
    axes_labels: tuple[str, str],
    found: Curves,
    *,
    mark: float | None = None,
    levels: bool = False,
    share: bool = True,
) -> Panel:
    """Draw one line per label with its intervals.

    Args:
        name: a word that is unique on the page.
        axes_labels: of x and y.
        found: the lines.
        mark: a place on x for a dotted line.
        levels: whether x is the fake level; intervals are whiskers then, and a band otherwise.
        share: whether y lies in [0, 1]; otherwise there is a line at 0.
    """

    def draw(axes: Axes) -> None:
        for series, (label, points) in enumerate(found.items()):
            _line(axes, series, label, points, band=not levels)
        if mark is not None:
            axes.axvline(mark, color=INK, linewidth=1, linestyle=":")
        axes.set(xlabel=axes_labels[0], ylabel=axes_labels[1])
        if share:
            axes.set_ylim(-0.03, 1.03)
        else:
            axes.axhline(0, color=INK, linewidth=1)
        if levels:
            axes.set_xticks(range(11))
        if len(found) > 1:
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, fontsize=9)

    return Panel(name, f"{axes_labels[1]} against {axes_labels[0]}", draw, 3.0 + 0.22 * ((len(found) + 1) // 2))


def spreads(name: str, measure: str, found: Mapping[str, Sequence[float]], mark: float | None) -> Panel:
    """Draw where values lie: a line from the 5th to the 95th percentile, a box over the middle half, the median."""
    cuts = {label: np.percentile(values, (5, 25, 50, 75, 95)) for label, values in found.items() if len(values)}

    def draw(axes: Axes) -> None:
        places = np.arange(len(cuts))[::-1]
        for place, (low, left, middle, right, high) in zip(places, cuts.values(), strict=True):
            axes.hlines(place, low, high, color=SERIES[0], linewidth=1.5)
            axes.barh(place, right - left, left=left, height=0.5, color=SERIES[0], alpha=0.55)
            axes.plot([middle], [place], "|", color=INK, markersize=14, markeredgewidth=2)
        if mark is not None:
            axes.axvline(mark, color=SERIES[1], linestyle="--", linewidth=1.5)
            axes.annotate(f"τ = {mark:g}", (mark, 1), (4, -2), xycoords=("data", "axes fraction"),
                          textcoords="offset points", va="top", color=SERIES[1])  # fmt: skip
        _name_rows(axes, places, list(cuts.items()))
        axes.set(xlabel=measure, xlim=(min(-0.03, *(low for low, *_ in cuts.values())), 1.03))

    return Panel(name, f"{measure} by agent", draw, _height(cuts))


def reread_panel(
    thresholds: Sequence[float],
    shares: Mapping[str, Sequence[float]],
    bounds: Sequence[tuple[float, float]],
    logged: float,
    marks: tuple[float, float],
) -> Panel:
    """Draw shares and the bounds of coverage over thresholds; ``marks`` are τ of the log and τ in question."""

    def draw(axes: Axes) -> None:
        low, high = np.array(bounds).T
        axes.fill_between(thresholds, low, high, color=SERIES[0], alpha=0.2, linewidth=0, label="coverage, bounds")
        axes.axhline(logged, color=SERIES[0], linewidth=1.2, label="coverage as logged")
        for series, (label, values) in enumerate(shares.items(), 1):
            axes.plot(thresholds, values, color=SERIES[series], linestyle=DASHES[series], label=label)
        axes.axvline(marks[0], color=INK, linewidth=1, linestyle=":", label=f"τ of the log, {marks[0]:g}")
        axes.axvline(marks[1], color=INK, linewidth=1.4, label=f"τ in question, {marks[1]:g}")
        axes.set(xlabel="threshold τ", ylabel="share, coverage", ylim=(-0.03, 1.03))
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, fontsize=9)

    return Panel("reread", "What another threshold changes, and the bounds of coverage", draw, 4.2)


def _line(axes: Axes, series: int, label: str, points: Sequence[tuple[float, Estimate]], band: bool) -> None:
    colour, dashes = SERIES[series % len(SERIES)], DASHES[series // len(SERIES) % len(DASHES)]
    marker = "" if band else MARKERS[series % len(MARKERS)]
    x = np.array([at for at, _ in points]) + (0 if band else DODGE * series)
    mean, low, high = (np.array([_or_nan(getattr(e, field)) for _, e in points]) for field in ("mean", "low", "high"))
    axes.plot(x, mean, linestyle=dashes, marker=marker, markersize=5, color=colour, label=short(label))
    if band:
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    else:
        axes.vlines(x, low, high, color=colour, linewidth=1.2, alpha=0.7)


def _whiskers(axes: Axes, places: Sequence[float] | np.ndarray, found: Bars) -> None:
    for place, (_, estimate) in zip(places, found, strict=True):
        if estimate.low is not None and estimate.high is not None:
            axes.hlines(place, estimate.low, estimate.high, color=INK, linewidth=1.4)
            axes.plot([estimate.low, estimate.high], [place] * 2, "|", color=INK, markersize=7, markeredgewidth=1.4)


def _name_rows(axes: Axes, places: Sequence[float] | np.ndarray, found: Iterable[tuple[str, object]]) -> None:
    axes.set_yticks(places, [short(label) for label, _ in found])
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.set_ylim(-0.6, len(places) - 0.4)


def short(label: str) -> str:
    """Return a label that fits beside a figure; what a log holds may be any string."""
    plain = " ".join(label.encode("utf-8", "replace").decode().split()) or "–"
    half = WIDEST_LABEL // 2
    return plain if len(plain) <= WIDEST_LABEL else f"{plain[:half]}…{plain[1 - half :]}"


def _height(found: Iterable[object]) -> float:
    return 0.75 + ROW * max(2, len(list(found)))


def _end(found: Bars) -> float:
    """Return where an axis from 0 ends: at 1, or beyond the farthest interval."""
    return max([1.0, *(estimate.high for _, estimate in found if estimate.high is not None)]) * 1.02


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value
