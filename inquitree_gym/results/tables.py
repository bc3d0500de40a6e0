"""Tables of formatted cells, and their Markdown and CSV. The HTML pages render the same tables."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from inquitree_gym.errors import visible
from inquitree_gym.results.statistics import Estimate
from inquitree_gym.results.summary import format_estimate

SHADES = 10
"""Highest step of the heat map's colour scale. The lowest is 0."""
ABSENT = "–"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class TableCell:
    """Formatted content of one cell."""

    text: str
    below: str = ""
    """Second, smaller line, such as an interval."""
    shade: int | None = None
    """Step on the colour scale of the heat map. None for a plain cell."""
    value: object = field(default=None, compare=False)
    """Number or estimate that the text shows. None for words."""
    link: str = field(default="", compare=False)
    """Selection of the episodes behind the cell, as the list of episodes takes it. Empty without one."""


@dataclass(frozen=True, slots=True)
class Table:
    """Caption, column headings and rows of cells."""

    caption: str
    heads: tuple[str, ...]
    lines: tuple[tuple[TableCell, ...], ...]
    labels: int = 1
    """Leading columns that hold words, aligned left. The others hold numbers."""
    name: str = ""
    """Caption as a word for files."""
    columns: tuple[str, ...] = ()
    """Names of the columns in CSV."""


def make_table(
    caption: str, heads: Sequence[str], lines: Iterable[Sequence[object]], labels: int = 1,
    headings: Mapping[str, str] | None = None,
) -> Table:  # fmt: skip
    """Return a table of plain values, each formatted by `cell`. ``headings`` are those shown in place of ``heads``."""
    name = re.sub(r"[^a-z0-9]+", "-", caption.lower()).strip("-")
    shown = tuple((headings or {}).get(head, head) for head in heads)
    return Table(caption, shown, tuple(tuple(map(cell, line)) for line in lines), labels, name, tuple(heads))


def linked(values: Iterable[object], **selection: object) -> list[TableCell]:
    """Return cells that link to the episodes of a selection, such as ``agent="oracle", fakes=3``."""
    named = {name: visible(str(value)) for name, value in selection.items()}  # as the list of episodes shows it
    link = urlencode(named, errors="replace")
    return [replace(cell(value), link=link) for value in values]


def cell(value: object) -> TableCell:
    """Return the cell of an estimate with its interval, a number or a string. None is shown as absent."""
    if isinstance(value, TableCell):
        return value
    if isinstance(value, Estimate):
        return TableCell(*format_estimate(value), value=value)
    if isinstance(value, float):
        return TableCell(number(value), value=value)
    if isinstance(value, int):
        return TableCell(f"{value:,}", value=value)
    return TableCell(ABSENT if value is None else str(value))


def counted(estimate: Estimate | None, trees: int | None = None) -> TableCell:
    """Return the cell of an estimate with its number of trees, unless that is ``trees``, the number in its row."""
    found = cell(estimate)
    if estimate is None or estimate.mean is None or estimate.trees == trees:
        return found
    return replace(found, below=f"{found.below} n = {estimate.trees}".strip())


def number(value: float) -> str:
    """Format a number with three decimals, or with one from 10 on."""
    return f"{value:z,.1f}" if abs(value) >= 10 else f"{value:z.3f}"


def dollars(amount: float | None, unpriced: int) -> str | None:
    """Format US dollars, as a lower bound if some replies have no known price. None for an unknown sum."""
    return None if amount is None else f"{'≥ ' if unpriced else ''}{amount:,.4f}"


def shaded(value: float | None) -> TableCell:
    """Return a cell of the heat map for a value in [0, 1]."""
    if value is None:
        return TableCell(ABSENT)
    return TableCell(f"{value:z.2f}", shade=round(min(max(value, 0.0), 1.0) * SHADES), value=value)


def markdown(content: Table) -> str:
    """Return a table as Markdown, with markup in its cells escaped."""
    rule = "".join(" --- |" if i < content.labels else " --: |" for i in range(len(content.heads)))
    rows = ([f"{each.text} {each.below}".strip() for each in line] for line in content.lines)
    return "\n".join([_row(content.heads), f"|{rule}", *map(_row, rows)])


def table_csv(content: Table) -> str:
    """Return a table as CSV with unrounded numbers. An estimate also has columns for its interval and its trees."""
    columns = [[line[i] for line in content.lines] for i in range(len(content.heads))]
    wide = [any(isinstance(each.value, Estimate) for each in column) for column in columns]
    heads = [
        name
        for head, is_wide in zip(content.columns or content.heads, wide, strict=True)
        for name in (head, *(f"{head}, {part}" for part in ("low", "high", "trees") if is_wide))
    ]
    lines = (
        [value for each, is_wide in zip(line, wide, strict=True) for value in _csv_values(each, is_wide)]
        for line in content.lines
    )
    return as_csv(heads, lines)


def as_csv(heads: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return CSV. None is an empty cell, and text that a spreadsheet would take for a formula is quoted."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([_defused(head) for head in heads])
    writer.writerows([_defused(value) for value in line] for line in lines)
    return buffer.getvalue()


def escaped(text: str) -> str:
    """Return text on one line with Markdown's special characters escaped."""
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(escaped, cells)) + " |"


def _csv_values(shown: TableCell, wide: bool) -> Iterator[object]:
    """Yield the fields of a cell: one, or four in a column of estimates."""
    estimate = shown.value if isinstance(shown.value, Estimate) else None
    if estimate is None:
        yield (None if shown.text == ABSENT else shown.text) if shown.value is None else shown.value
    else:
        yield estimate.mean
    if wide:
        yield from (None, None, None) if estimate is None else estimate[1:4]


def _defused(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


_TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}", "-": "{-}", "–": "--", "−": "$-$",
    "×": r"$\times$", "±": r"$\pm$", "≥": r"$\geq$", "≤": r"$\leq$", "≈": r"$\approx$", "∞": r"$\infty$",
    "→": r"$\rightarrow$", "′": "$'$", "…": r"\ldots{}", "·": r"$\cdot$", "Δ": r"$\Delta$", "Σ": r"$\Sigma$",
    "κ": r"$\kappa$", "τ": r"$\tau$",
}  # fmt: skip
"""Characters that LaTeX reads as commands or ligatures, or that pdfLaTeX does not know. Other scripts need XeLaTeX."""
_NEGATIVE = re.compile(r"(?<![\w.])-(?=\d)")
"""Hyphen that stands for a minus sign."""


def latex(content: Table, label: str) -> str:
    """Return a table as a LaTeX float ``tab:label``, which needs booktabs and, for quotation marks, T1 fonts."""
    columns = "l" * content.labels + "r" * (len(content.heads) - content.labels)
    body = [_tex_row(map(tex, content.heads)), r"\midrule", *(row for line in content.lines for row in _tex_rows(line))]
    return "\n".join([
        r"% \usepackage{booktabs} and \usepackage[T1]{fontenc}",
        r"\begin{table}", r"\centering", rf"\caption{{{tex(content.caption)}}}", rf"\label{{tab:{label}}}",
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *body, r"\bottomrule", r"\end{tabular}", r"\end{table}", "",
    ])  # fmt: skip


def tex(text: str) -> str:
    """Return text on one line that LaTeX sets as it stands. Characters that cannot be shown are left out."""
    plain = "".join(each if each.isprintable() else " " for each in text.encode("utf-8", "replace").decode())
    return "".join(_TEX.get(each, each) for each in _NEGATIVE.sub("−", " ".join(plain.split())))


def _tex_rows(line: tuple[TableCell, ...]) -> Iterator[str]:
    """Yield the row of the texts, and one of the smaller lines below them if there are any."""
    yield _tex_row(tex(each.text) for each in line)
    if any(each.below for each in line):
        yield _tex_row(rf"{{\scriptsize {tex(each.below)}}}" if each.below else "" for each in line)


def _tex_row(cells: Iterable[str]) -> str:
    # After a row, LaTeX would take a bracket or an asterisk for an argument of the line break; so each cell is a group.
    return " & ".join(f"{{{each}}}" if each.startswith(("[", "*")) else each for each in cells) + r" \\"
