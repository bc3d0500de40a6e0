"""Tables of formatted cells, and their Markdown and CSV; the HTML pages render the same tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inquitree_gym.analysis.aggregate import format_estimate
from inquitree_gym.scoring import Estimate

SHADES = 10
"""Highest step of the heat map's colour scale; the lowest is 0."""
ABSENT = "–"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class TableCell:
    """Formatted content of one cell."""

    text: str
    below: str = ""
    """Second, smaller line, such as an interval."""
    shade: int | None = None
    """Step on the colour scale of the heat map; None for a plain cell."""


@dataclass(frozen=True, slots=True)
class Table:
    """Caption, column headings and rows of cells."""

    caption: str
    heads: tuple[str, ...]
    lines: tuple[tuple[TableCell, ...], ...]
    labels: int = 1
    """Leading columns that hold words, aligned left; the others hold numbers."""


def make_table(caption: str, heads: Sequence[str], lines: Iterable[Sequence[object]], labels: int = 1) -> Table:
    """Return a table of plain values, each formatted by `cell`."""
    return Table(caption, tuple(heads), tuple(tuple(map(cell, line)) for line in lines), labels)


def cell(value: object) -> TableCell:
    """Return the cell of an estimate with its interval, a number or a string; None is shown as absent."""
    if isinstance(value, TableCell):
        return value
    if isinstance(value, Estimate):
        return TableCell(*format_estimate(value))
    if isinstance(value, float):
        return TableCell(number(value))
    if isinstance(value, int):
        return TableCell(f"{value:,}")
    return TableCell(ABSENT if value is None else str(value))


def counted(estimate: Estimate | None, trees: int | None = None) -> TableCell:
    """Return the cell of an estimate with its number of trees, unless that is ``trees``, the number in its row."""
    found = cell(estimate)
    if estimate is None or estimate.mean is None or estimate.trees == trees:
        return found
    return TableCell(found.text, f"{found.below} n = {estimate.trees}".strip())


def number(value: float) -> str:
    """Format a number with three decimals, or one from 10 on."""
    return f"{value:z,.1f}" if abs(value) >= 10 else f"{value:z.3f}"


def dollars(amount: float | None, unpriced: int) -> str | None:
    """Format US dollars, as a lower bound if some replies have no known price; None for an unknown sum."""
    return None if amount is None else f"{'≥ ' if unpriced else ''}{amount:,.4f}"


def shaded(value: float | None) -> TableCell:
    """Return a cell of the heat map for a value in [0, 1]."""
    if value is None:
        return TableCell(ABSENT)
    return TableCell(f"{value:z.2f}", shade=round(min(max(value, 0.0), 1.0) * SHADES))


def markdown(content: Table) -> str:
    """Return a table as Markdown, with markup in its cells escaped."""
    rule = "".join(" --- |" if i < content.labels else " --: |" for i in range(len(content.heads)))
    rows = ([f"{each.text} {each.below}".strip() for each in line] for line in content.lines)
    return "\n".join([_row(content.heads), f"|{rule}", *map(_row, rows)])


def as_csv(heads: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return CSV; None is an empty cell, and text that a spreadsheet would take for a formula is quoted."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([_defused(value) for value in line] for line in lines)
    return buffer.getvalue()


def escaped(text: str) -> str:
    """Return text on one line with Markdown's special characters escaped."""
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(escaped, cells)) + " |"


def _defused(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
