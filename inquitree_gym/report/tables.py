"""Tables as data, and as Markdown and CSV; the HTML page renders the same ones."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inquitree_gym.analysis.aggregate import format_estimate
from inquitree_gym.scoring import Estimate

SHADES = 10
"""Steps of the heat map's scale: 0 to `SHADES`."""
ABSENT = "–"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Cell(NamedTuple):
    """One cell."""

    text: str
    below: str = ""
    """A second, smaller line, such as an interval."""
    shade: int | None = None
    """Step on the scale of the heat map; None for a plain cell."""


class Grid(NamedTuple):
    """A table: a caption, the headings, and lines of cells. The first ``names`` columns are words, the rest numbers."""

    caption: str
    heads: tuple[str, ...]
    lines: tuple[tuple[Cell, ...], ...]
    names: int = 1


def cell(value: object) -> Cell:
    """Return the cell of a value: an estimate with its interval, a number, words; None is absent."""
    if isinstance(value, Estimate):
        return Cell(*format_estimate(value))
    if isinstance(value, Cell):
        return value
    if isinstance(value, float):
        return Cell(number(value))
    if isinstance(value, int):
        return Cell(f"{value:,}")
    return Cell(ABSENT if value is None else str(value))


def number(value: float) -> str:
    """Write a number with three digits that count after the point, or one for 10 and more."""
    return f"{value:z,.1f}" if abs(value) >= 10 else f"{value:z.3f}"


def written_dollars(dollars: float | None, unpriced: int) -> str | None:
    """Write US dollars, as a lower bound where something of unknown price was paid for; None for an unknown sum."""
    return None if dollars is None else f"{'≥ ' if unpriced else ''}{dollars:,.4f}"


def shaded(value: float | None) -> Cell:
    """Return a cell of the heat map for a value in [0, 1]."""
    if value is None:
        return Cell(ABSENT)
    return Cell(f"{value:z.2f}", shade=round(min(max(value, 0.0), 1.0) * SHADES))


def grid(caption: str, heads: Sequence[str], lines: Iterable[Sequence[object]], names: int = 1) -> Grid:
    """Build a table from plain values."""
    return Grid(caption, tuple(heads), tuple(tuple(map(cell, line)) for line in lines), names)


def markdown(table: Grid) -> str:
    """Return a table as Markdown; what could be taken for markup is escaped."""
    lines = [
        _line(table.heads),
        "|" + "".join(" --- |" if i < table.names else " --: |" for i in range(len(table.heads))),
    ]
    lines += [_line([f"{each.text} {each.below}".strip() for each in line]) for line in table.lines]
    return "\n".join(lines)


def as_csv(heads: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return CSV; None is an empty cell, and no text can be taken for a formula by a spreadsheet."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([_defused(value) for value in line] for line in lines)
    return buffer.getvalue()


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(escaped(each) for each in cells) + " |"


def escaped(text: str) -> str:
    """Return text that Markdown shows as it stands, on one line."""
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def _defused(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
