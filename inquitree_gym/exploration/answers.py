"""Parsing of answers: the final answer of T1 and T2, the lines of T3, the table of T4 (SciExplore, Figs. 14–17, A.9).

Every function takes time in proportion to the length of its text.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from inquitree_gym.exploration.quantities import plain

LONGEST_FINAL = 2_000
"""Characters of a final answer that are read."""
MOST_COLUMNS = 64
"""Columns of a table that are read."""
_REPETITIVE = 1_000, 0.1
"""Fewest characters of a repetitive answer, and the share of them that are left when it is compressed."""

_FINAL = re.compile(
    r"^[ \t*_#>\-]{0,20}(?:(?:the|my) )?(?:final )?answer(?: is)?[*_ ]*(?::|(?<=is)\b)[*_ ]*(.*)", re.I | re.M
)
_BOX = re.compile(r"\\boxed\{([^{}\n]{0,2000})\}")
LISTED = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
"""Mark of an item of a list."""
_BRACKETS = re.compile(r"\),\s?\(")
_REFUSAL = re.compile(
    r"(?:(?:the )?answer (?:is|was) |it is |this is )?(?:unknown|unclear|none|no answer|n/?a|nothing|\?|sorry|give up|"
    r"insufficient|unable to|cannot|could not|not (?:found|known|available|sure|possible|determined)|"
    r"there (?:is|are|was|were) no|no (?:evidence|record|such|information|result|match|data)|"
    r"i (?:found (?:nothing|no)|(?:am|was) (?:not|unable)|(?:do|did|could)(?: not|n't)|cannot|can't|have no))"
    r"(?!\w)",
    re.I,
)
_GUESS = re.compile(r"\b(?:answer|guess|estimate)\b.{0,40}?\b(?:is|be|:)", re.I)
_MARK = re.compile(
    r"(?:^[ \t>*•_#|`\-]*(?:\d{1,2}[.)][ \t])?\[?ref[. _-]{0,2}(\d{1,4})(?:\][ \t*_]*:?|[ \t*_]*:)"
    r"|\[ref[. _-]{0,2}(\d{1,4})[ \t]*:)[ \t*_]*",
    re.I | re.M,
)
_NO_WORK = re.compile(
    r"[\W_]*(?:unknown|none|n/?a|not (?:found|known|available)|no (?:match|reference)\w*)?[\W_]*", re.I
)
_RULE = re.compile(r":?-+:?")
_BREAK = re.compile(r"<br\s*/?>", re.I)


@dataclass(frozen=True, slots=True)
class Citation:
    """A work that an answer puts into a slot, as it was written."""

    slot: int
    text: str


@dataclass(frozen=True, slots=True)
class MarkdownTable:
    """A Markdown table. Every row has one cell per header."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def final_answer(text: str) -> str:
    """Return the final answer: the last box, else what follows the last "answer:", else the last paragraph."""
    if boxes := _BOX.findall(text):
        return str(boxes[-1]).strip()[:LONGEST_FINAL]
    marks = list(_FINAL.finditer(text))
    if not marks:
        paragraphs = re.split(r"\n[ \t]*\n", text.strip())
        return paragraphs[-1].strip()[:LONGEST_FINAL]
    said = marks[-1][1].strip(" *_")
    lines = text[marks[-1].end() :].lstrip("\n" if not said else "").split("\n\n", 1)[0].split("\n")
    kept = [line for line in lines if line.strip() and (not said or LISTED.match(line))]
    return "\n".join([said, *kept]).strip()[:LONGEST_FINAL]


def items(final: str) -> list[list[str]]:
    """Return the readings of a final answer as a list: by lines and semicolons, and by commas and "and" too.

    The rows of a table and pairs in brackets are items, too.
    """
    if table := last_table(final):
        return [[": ".join(row) for row in table.rows]]
    final = _BRACKETS.sub(";", final)
    lines = [LISTED.sub("", line, count=1) for line in final.splitlines() if line.strip()]
    coarse = [item.strip() for line in lines for item in line.split(";") if item.strip()]
    fine = [item.strip() for line in coarse for item in re.split(r",\s+(?:and\s+)?|\s+and\s+", line) if item.strip()]
    return [coarse, fine] if fine != coarse else [coarse]


def is_broken(text: str) -> bool:
    """Return True for an answer that is cut off or repetitive."""
    shortest, share = _REPETITIVE
    raw = text.encode("utf-8", "replace")
    repetitive = len(raw) >= shortest and len(zlib.compress(raw)) < share * len(raw)
    return repetitive or "\\boxed{" in final_answer(text)


def refuses(text: str) -> bool:
    """Return True if the final answer is empty, unknown, or says that nothing was found."""
    opening = plain(final_answer(text)).strip(" *_.`\"'[(-")
    return not opening or (_REFUSAL.match(opening) is not None and _GUESS.search(opening) is None)


def citations(text: str) -> tuple[Citation, ...]:
    """Return the works of the lines ``[ref.i: authors. title. venue. year.]``, in their order.

    A mark counts at the start of a line or as ``[ref.i:``, so that a paragraph that repeats the question's marks cites
    nothing. Empty slots and "unknown" are left out.
    """
    marks = list(_MARK.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    found = (
        Citation(int(mark[1] or mark[2]), _cited(mark, text[mark.end() : end]))
        for mark, end in zip(marks, ends, strict=False)
    )
    return tuple(one for one in found if not _NO_WORK.fullmatch(one.text[:80]))


def _cited(mark: re.Match[str], rest: str) -> str:
    """Return the work after a mark: to the end of its line, or to the bracket that closes it some lines later."""
    lines = rest.split("\n")
    text = lines[0]
    if "[" in mark[0] and "]" not in mark[0]:
        for line in lines[1:4]:
            if text.count("[") < text.count("]") or not line.strip():
                break
            text = f"{text} {line}"
        if text.count("]") > text.count("["):
            text = text[: text.rindex("]")]
    return text.strip(" \t*_")


def last_table(text: str) -> MarkdownTable | None:
    """Return the last Markdown table of a text. None without one.

    Cells beyond the headers are dropped and missing ones are empty, as Markdown reads them.
    """
    lines = text.splitlines()
    for number in range(len(lines) - 1, 0, -1):
        if "-" not in lines[number] or "|" not in lines[number] or "|" not in lines[number - 1]:
            continue
        headers, rules = _cells(lines[number - 1]), _cells(lines[number])
        if len(headers) == len(rules) and all(_RULE.fullmatch(rule) for rule in rules):
            return MarkdownTable(headers, tuple(_rows(lines[number + 1 :], len(headers))))
    return None


def _rows(lines: list[str], width: int) -> list[tuple[str, ...]]:
    """Return the rows that follow a table's head, up to the first line that is none."""
    rows = []
    for line in lines:
        if "|" not in line:
            break
        cells = _cells(line)
        rows.append((*cells, *("",) * (width - len(cells)))[:width])
    return rows


def _cells(line: str) -> tuple[str, ...]:
    r"""Return the cells of a line. A pipe within a cell is written ``\|``."""
    line = line.strip().removeprefix("|").replace("\\|", "\0")
    cells = line.removesuffix("|").split("|", MOST_COLUMNS)[:MOST_COLUMNS]
    return tuple(_BREAK.sub("; ", cell.replace("\0", "|")).strip() for cell in cells)
