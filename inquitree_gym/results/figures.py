"""Charts of a report, drawn once by Matplotlib for SVG, PDF and PNG. Within a page they have its colours."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from inquitree_gym.errors import require
from inquitree_gym.results.statistics import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, RULE = "#1f2430", "#d5d9e0"
SERIES = ("#0072b2", "#c24e00", "#007a5a", "#a8327e", "#8a5a00", "#5b5fc7", "#5f6368")
"""Colours of the light scheme, safe for colour-blind readers. Markers and dashes differ as well."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":")
WIDTH, ROW = 5.0, 0.3
"""Width of a chart, readable on a phone without scrolling, and height of a horizontal bar, in inches."""
DPI = 200
"""Resolution of the PNG."""
FORMATS = ("svg", "pdf", "png")
"""Formats of a chart as a file of its own."""
FEWEST_JOINED = 3
"""Fewest points that a line joins: a line through two would suggest a course that the data do not show."""
DODGE, MAX_SPREAD = 0.12, 0.6
"""Horizontal offset between series at one level, and of all series together. Levels are 1 apart."""
DOTS = "hollow marks: single tasks, too few for an interval"
MAX_LABEL = 28
"""Characters of a label. A longer one loses its middle."""

_VARIABLES = {INK: "--ink", RULE: "--rule"} | {colour: f"--c{i}" for i, colour in enumerate(SERIES, 1)}
_COLOUR = re.compile("|".join(_VARIABLES), re.IGNORECASE)
_GROUND = '<rect width="100%" height="100%" fill="#ffffff"/>'
"""White behind a standalone SVG. A page has a ground of its own."""
_STYLE = {
    "svg.fonttype": "none", "pdf.fonttype": 42, "text.parse_math": False, "font.family": "sans-serif", "font.size": 10,
    "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.edgecolor": INK,
    "axes.facecolor": "none", "grid.color": RULE,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.linewidth": 0.8,
    "axes.axisbelow": True, "lines.linewidth": 1.8, "legend.frameon": False, "legend.fontsize": 9,
}  # fmt: skip

_HOLLOW: dict[str, Any] = {"markersize": 4.5, "markerfacecolor": "none", "markeredgewidth": 1, "alpha": 0.75}
_NO_SVG = dict.fromkeys(("Date", "Creator", "Format", "Type"))

Estimates = Mapping[str, Sequence[Estimate]]
"""Estimates of each label, from the top."""
Curves = Mapping[str, Sequence[tuple[float, Estimate]]]
"""Points of each labelled line: x, and the estimate of y."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Picture with a text alternative."""

    name: str
    """Word that is unique on the page. Prefixes the ids of the SVG."""
    caption: str
    """Text below the picture, and for screen readers."""
    draw: Callable[[Axes], None]
    height: float

    def files(self, formats: Sequence[str] = FORMATS) -> dict[str, bytes]:
        """Return the chart as standalone files on white, by format. Equal content gives equal bytes."""
        matplotlib = require("matplotlib", "plots")
        with matplotlib.rc_context({**_STYLE, "svg.hashsalt": self.name}), warnings.catch_warnings():
            # A browser has fonts for glyphs that Matplotlib's font lacks.
            warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
            canvas = require("matplotlib.figure", "plots").Figure(figsize=(WIDTH, self.height), layout="constrained")
            self.draw(canvas.add_subplot())
            canvas.draw_without_rendering()
            canvas.set_layout_engine("none")  # every format takes the places that were found once
            return {each: _saved(canvas, each) for each in formats}

    def inline(self, svg: bytes) -> Markup:
        """Return the standalone SVG of this chart as an element of a page, in the colours of the page."""
        document = svg.decode()
        body = re.sub(r"<!--.*?-->", "", document[document.index("<svg") :], flags=re.DOTALL)
        head, body = body.replace(_GROUND, "", 1).split(">", 1)
        box = re.search(r'viewBox="[\d. ]+"', head)
        assert box is not None, "Matplotlib gives every figure a view box"
        body = re.sub(r'\bid="', f'id="{self.name}-', body)
        body = re.sub(r'(url\(#|xlink:href="#)', rf"\1{self.name}-", body)
        body = _COLOUR.sub(lambda found: f"var({_VARIABLES[found.group().lower()]})", body)
        return Markup(f'<svg {box.group()} role="img" aria-label="{escape(self.caption)}" class="chart">{body}')

    def document(self) -> str:
        """Return the chart as a standalone SVG document on white. See `files` for the errors."""
        return self.files(("svg",))["svg"].decode()


def _saved(canvas: Figure, form: str) -> bytes:
    buffer = io.BytesIO()
    if form == "svg":
        canvas.savefig(buffer, format=form, metadata=_NO_SVG, facecolor="none")
        head, rest = buffer.getvalue().split(b"<defs>", 1)
        return head + _GROUND.encode() + b"\n <defs>" + rest
    # Dates and versions would make equal charts differ.
    nothing = {"Software": None} if form == "png" else dict.fromkeys(("CreationDate", "Creator", "Producer"))
    canvas.savefig(buffer, format=form, metadata=nothing, facecolor="white", dpi=DPI)
    return buffer.getvalue()


def bars(name: str, measure: str, found: Estimates, sides: Sequence[str] = ()) -> Chart:
    """Return horizontal bars from 0 with intervals: one per label, or one for each of two ``sides``."""
    count = max(1, len(sides))

    def draw(axes: Axes) -> None:
        places = _label_rows(axes, found)
        for side in range(count):
            shown = [each[side] for each in found.values()]
            middles = places + 0.18 * (count - 1 - 2 * side)
            axes.barh(
                middles,
                _values(shown, "mean"),
                height=0.66 / count,
                color=SERIES[side],
                alpha=0.45 if any(each.values for each in shown) else None,
                label="".join(sides[side : side + 1]),
            )
            _draw_intervals(axes, middles, shown)
            for place, estimate in zip(middles, shown, strict=True):
                if estimate.mean is None:
                    axes.annotate("no value", (0, place), (4, 0), textcoords="offset points", va="center", fontsize=9)
        axes.set(xlabel=measure, xlim=_axis_ends([each for both in found.values() for each in both]))
        if sides:
            draw_legend(axes)

    both = f", {' and '.join(sides)}, by agent" if sides else " by agent"
    caption = measure + both + _dots_note(each for both in found.values() for each in both)
    return Chart(name, caption, draw, 0.5 * bool(sides) + _height(count * len(found)))


def differences(name: str, measure: str, found: Estimates) -> Chart:
    """Return differences as dots with intervals, around a line at 0."""

    def draw(axes: Axes) -> None:
        places, estimates = _label_rows(axes, found), [each for each, *_ in found.values()]
        axes.axvline(0, color=INK, linewidth=1)
        axes.plot(_values(estimates, "mean"), places, "o", color=SERIES[0], markersize=7)
        _draw_intervals(axes, places, estimates)
        axes.set(xlabel=measure)

    caption = f"{measure} by agent{_dots_note(each for each, *_ in found.values())}"
    return Chart(name, caption, draw, _height(round(1.4 * len(found))))


def curves(
    name: str, labels: tuple[str, str], found: Curves, *, mark: float | None = None, share: bool = True
) -> Chart:
    """Return one line per label, with intervals as a band, or with a thin line per tree where there are none.

    Args:
        name: a word that is unique on the page.
        labels: labels of the x and y axes.
        found: the points of the lines.
        mark: x of a dotted vertical line.
        share: True if y lies in [0, 1]. Otherwise a line marks y = 0.
    """

    def draw(axes: Axes) -> None:
        for series, (label, points) in enumerate(found.items()):
            _draw_line(axes, series, label, points)
        if mark is not None:
            axes.axvline(mark, color=INK, linewidth=1, linestyle=":")
        _finish(axes, labels, share)

    few = any(each.values for points in found.values() for _, each in points)
    note = "; thin lines: single trees, too few for an interval" if few else ""
    return Chart(name, f"{labels[1]} against {labels[0]}{note}", draw, _curves_height(found))


def levels(
    name: str,
    labels: tuple[str, str],
    found: Curves,
    *,
    share: bool = True,
    names: Sequence[str] = (),
    chance: tuple[float, str] | None = None,
    joined: bool = True,
) -> Chart:
    """Return a chart of points with intervals by level. Levels are categories, so their distances have no meaning.

    Three or more levels are joined by a thin line, unless they have no order. Levels 0, 1, … may have ``names``.
    ``chance`` is the y of a dotted horizontal line, with its label. See `curves` for the other arguments.
    """
    ticks = sorted({level for points in found.values() for level, _ in points})
    step = min(DODGE, MAX_SPREAD / max(1, len(found)))

    def draw(axes: Axes) -> None:
        for series, (label, points) in enumerate(found.items()):
            shift = step * (series - (len(found) - 1) / 2)
            _draw_points(axes, series, label, [(ticks.index(level) + shift, each) for level, each in points], joined)
        axes.set_xticks(range(len(ticks)), [names[int(level)] if names else f"{level:g}" for level in ticks])
        if chance is not None:
            axes.axhline(chance[0], color=INK, linewidth=1, linestyle=":", label=chance[1])
        axes.set_xlim(-0.5, max(1, len(ticks)) - 0.5)
        axes.grid(axis="x", visible=False)
        _finish(axes, labels, share)

    note = _dots_note(each for points in found.values() for _, each in points)
    return Chart(name, f"{labels[1]} by {labels[0]}{note}", draw, _curves_height(found))


def dots(name: str, measure: str, found: Mapping[str, Mapping[str, float]], series: Sequence[str] = ()) -> Chart:
    """Return a chart with one row per label, from the top, and a mark in [-1, 1] for each series that has a value.

    The axis begins at 0 where no value is below. ``series`` sets their order, so that charts share marks and colours.
    """
    low = min((value for row in found.values() for value in row.values()), default=0.0)
    own = dict.fromkeys(each for row in found.values() for each in row)
    places_of = {each: number for number, each in enumerate(series or own) if each in own}

    def draw(axes: Axes) -> None:
        places = _label_rows(axes, found)
        for each, number in places_of.items():
            shown = [(row[each], place) for row, place in zip(found.values(), places, strict=True) if each in row]
            colour, marker = SERIES[number % len(SERIES)], _marker(number)
            axes.plot(*zip(*shown, strict=True), marker, color=colour, markersize=6, alpha=0.8, label=short(each))
        axes.set(xlabel=measure, xlim=(min(0.0, low) - 0.03, 1.03))
        draw_legend(axes)

    return Chart(name, measure, draw, _height(len(found)) + 0.22 * ((len(own) + 1) // 2))


def spreads(name: str, measure: str, found: Mapping[str, Sequence[float]], threshold: float | None) -> Chart:
    """Return box plots: a line from the 5th to the 95th percentile, a box over the middle half, the median."""
    cuts = {label: np.percentile(values, (5, 25, 50, 75, 95)) for label, values in found.items() if len(values)}

    def draw(axes: Axes) -> None:
        places = _label_rows(axes, cuts)
        for place, (low, left, middle, right, high) in zip(places, cuts.values(), strict=True):
            axes.hlines(place, low, high, color=SERIES[0], linewidth=1.5)
            axes.barh(place, right - left, left=left, height=0.5, color=SERIES[0], alpha=0.55)
            axes.plot([middle], [place], "|", color=INK, markersize=14, markeredgewidth=2)
        if threshold is not None:
            axes.axvline(threshold, color=SERIES[1], linestyle="--", linewidth=1.5)
            axes.annotate(f"τ = {threshold:g}", (threshold, 1), (4, -2), xycoords=("data", "axes fraction"),
                          textcoords="offset points", va="top", color=SERIES[1])  # fmt: skip
        axes.set(xlabel=measure, xlim=(min(-0.03, *(low for low, *_ in cuts.values())), 1.03))

    return Chart(name, f"{measure} by agent", draw, _height(len(cuts)))


def short(label: str) -> str:
    """Return a label that fits beside a chart, without line breaks and characters that cannot be shown."""
    encoded = label.encode("utf-8", "replace").decode()
    plain = " ".join("".join(each if each.isprintable() else " " for each in encoded).split()) or "–"
    half = MAX_LABEL // 2
    return plain if len(plain) <= MAX_LABEL else f"{plain[:half]}…{plain[1 - half :]}"


def _draw_intervals(axes: Axes, places: NDArray[np.float64], found: Sequence[Estimate]) -> None:
    """Draw the interval of each estimate, or one dot per tree where there are too few trees for one."""
    for place, estimate in zip(places, found, strict=True):
        if estimate.low is not None and estimate.high is not None:
            axes.hlines(place, estimate.low, estimate.high, color=INK, linewidth=1.4)
            axes.plot([estimate.low, estimate.high], [place] * 2, "|", color=INK, markersize=7, markeredgewidth=1.4)
        axes.plot(estimate.values, [place] * len(estimate.values), "o", color=INK, **_HOLLOW)


def _marker(series: int) -> str:
    """Return the mark of a series. Where colours repeat, the marks differ."""
    return MARKERS[(series + series // len(SERIES)) % len(MARKERS)]


def _draw_points(axes: Axes, series: int, label: str, points: Sequence[tuple[float, Estimate]], joined: bool) -> None:
    colour, marker = SERIES[series % len(SERIES)], _marker(series)
    x = np.array([at for at, _ in points])
    mean, low, high = (_values([each for _, each in points], field) for field in ("mean", "low", "high"))
    if joined and np.isfinite(mean).sum() >= FEWEST_JOINED:
        axes.plot(x, mean, color=colour, linewidth=1, alpha=0.6, linestyle=DASHES[series // len(SERIES) % len(DASHES)])
    axes.vlines(x, low, high, color=colour, linewidth=1.4, alpha=0.8)
    for at, estimate in points:
        axes.plot([at] * len(estimate.values), estimate.values, marker, color=colour, **_HOLLOW)
    axes.plot(x, mean, marker, markersize=6, color=colour, label=short(label))


def _draw_line(axes: Axes, series: int, label: str, points: Sequence[tuple[float, Estimate]]) -> None:
    colour, dashes = SERIES[series % len(SERIES)], DASHES[series // len(SERIES) % len(DASHES)]
    joined = len(points) >= FEWEST_JOINED
    dashes, marker = (dashes, "") if joined else ("", _marker(series))
    x = np.array([at for at, _ in points])
    mean, low, high = (_values([each for _, each in points], field) for field in ("mean", "low", "high"))
    axes.plot(x, mean, color=colour, label=short(label), linestyle=dashes, marker=marker)
    axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    if joined and len({len(each.values) for _, each in points}) == 1:
        for tree in zip(*(each.values for _, each in points), strict=True):
            axes.plot(x, tree, color=colour, linewidth=0.7, alpha=0.45)


def _finish(axes: Axes, labels: tuple[str, str], share: bool) -> None:
    """Name the axes, bound a share, and draw the legend."""
    axes.set(xlabel=labels[0], ylabel=labels[1])
    if share:
        axes.set_ylim(-0.03, 1.03)
    else:
        axes.axhline(0, color=INK, linewidth=1)
    draw_legend(axes)


def _label_rows(axes: Axes, labels: Iterable[str]) -> NDArray[np.float64]:
    """Label one row per bar on the y axis and return their positions, from the top."""
    names = ["\n− ".join(map(short, label.split(" − "))) for label in labels]
    places = np.arange(len(names), dtype=float)[::-1]
    axes.set_yticks(places, names)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.set_ylim(-0.6, len(names) - 0.4)
    return places


def draw_legend(axes: Axes) -> None:
    """Draw the legend below the axes, where the layout makes room for it however low the chart is."""
    axes.figure.legend(loc="outside lower center", ncols=2)


def _dots_note(found: Iterable[Estimate]) -> str:
    return f"; {DOTS}" if any(each.values for each in found) else ""


def _curves_height(found: Curves) -> float:
    return 3.0 + 0.22 * ((len(found) + 1) // 2)


def _height(rows: int) -> float:
    return 0.75 + ROW * max(2, rows)


def _axis_ends(found: Sequence[Estimate]) -> tuple[float, float]:
    """Return the ends of an axis: at most 0 and at least 1, and beyond every mean and interval."""
    ends = [end for each in found for end in (each.mean, each.low, each.high, *each.values) if end is not None]
    return min([0.0, *ends]) * 1.05 - 0.03 * any(each.values for each in found), max([1.0, *ends]) * 1.02


def _values(found: Sequence[Estimate], field: str) -> NDArray[np.float64]:
    return np.array([getattr(estimate, field) for estimate in found], dtype=float)
