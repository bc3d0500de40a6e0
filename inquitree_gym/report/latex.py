"""Tables as LaTeX with the rules of booktabs, whatever characters their cells hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from inquitree_gym.report.tables import Table, TableCell

_MARKS = {
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
    """Return a table as a LaTeX float that needs the package booktabs and, for quotation marks, T1 fonts.

    Args:
        content: the table.
        label: letters, digits and hyphens; `tab:` goes before it.
    """
    columns = "l" * content.labels + "r" * (len(content.heads) - content.labels)
    body = [_row(map(tex, content.heads)), r"\midrule", *(row for line in content.lines for row in _rows(line))]
    return "\n".join([
        r"% \usepackage{booktabs} and \usepackage[T1]{fontenc}",
        r"\begin{table}", r"\centering", rf"\caption{{{tex(content.caption)}}}", rf"\label{{tab:{label}}}",
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *body, r"\bottomrule", r"\end{tabular}", r"\end{table}", "",
    ])  # fmt: skip


def tex(text: str) -> str:
    """Return text on one line that LaTeX sets as it stands; characters that cannot be shown are left out."""
    plain = "".join(each if each.isprintable() else " " for each in text.encode("utf-8", "replace").decode())
    return "".join(_MARKS.get(each, each) for each in _NEGATIVE.sub("−", " ".join(plain.split())))


def _rows(line: tuple[TableCell, ...]) -> Iterator[str]:
    """Yield the row of the texts, and one of the smaller lines below them if there are any."""
    yield _row(tex(each.text) for each in line)
    if any(each.below for each in line):
        yield _row(rf"{{\scriptsize {tex(each.below)}}}" if each.below else "" for each in line)


def _row(cells: Iterable[str]) -> str:
    # After a row, LaTeX would take a bracket or an asterisk for an argument of the line break; so each cell is a group.
    return " & ".join(f"{{{each}}}" if each.startswith(("[", "*")) else each for each in cells) + r" \\"
