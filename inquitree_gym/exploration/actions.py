"""Actions as text: the first line decides, and lines after it belong to an answer alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

Tool = Literal["search", "open", "find", "lookup", "answer", "invalid"]

QUERY = 2_000
"""Characters of a query that are read. The rest is ignored."""
FORMS: dict[Tool, str] = {
    "search": "SEARCH words",
    "open": "OPEN id [page]",
    "find": "FIND words (in the open document)",
    "lookup": "LOOKUP database: field op value; field op value … (op is one of = != < <= > >= ~; ~ finds a part of a "
    "text; LOOKUP database alone tells its fields)",
    "answer": "ANSWER text (and lines after it; ends the task)",
}
"""Form of each action."""

_TEST = re.compile(r"\s*([A-Za-z_]\w*)\s*(<=|>=|!=|=|<|>|~)\s*(.*?)\s*", re.DOTALL)
_WORD = re.compile(r"\w+")


class Test(NamedTuple):
    """One test of a LOOKUP."""

    field: str
    op: str
    value: str


class Action(NamedTuple):
    """An action that was understood, or one that was not with its fault."""

    tool: Tool
    text: str = ""
    """Words, the id of a document, the name of a database, an answer, or a fault."""
    page: int = 1
    tests: tuple[Test, ...] = ()


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters, as the index has them.

    >>> words_of("Trial C#12, in 30 %")
    ['trial', 'c', '12', 'in', '30']
    """
    return _WORD.findall(text.lower())


def parse_action(text: str) -> Action:
    """Return an action. One that has no form of `FORMS` has the tool ``invalid`` and says why."""
    first, _, more = text.strip().partition("\n")
    verb, _, rest = first.strip().partition(" ")
    parse = _PARSERS.get(verb.upper())
    if parse is None:
        return Action("invalid", f"an action must start with one of {', '.join(_PARSERS)}, got '{verb:.40}'.")
    if verb.upper() == "ANSWER":
        return Action("answer", f"{rest}\n{more}".strip())
    return parse(rest.strip()[:QUERY])


def _words(tool: Tool) -> Callable[[str], Action]:
    def parse(rest: str) -> Action:
        if _WORD.search(rest) is None:
            return Action("invalid", f"{tool.upper()} must have a word with a letter or a digit, got none.")
        return Action(tool, rest)

    return parse


def _open(rest: str) -> Action:
    name, _, page = rest.partition(" ")
    page = page.strip().lower().removeprefix("page").strip()
    if not name:
        return Action("invalid", "OPEN must have the id of a document, got none.")
    if page and not (page.isascii() and page.isdigit() and len(page) < 6):
        return Action("invalid", f"the page of OPEN must be a whole number from 1, got '{page:.40}'.")
    return Action("open", name, int(page or 1))


def _lookup(rest: str) -> Action:
    database, _, tests = rest.partition(":")
    found = []
    for each in filter(str.strip, tests.split(";")):
        match = _TEST.fullmatch(each)
        if match is None or not match[3]:
            return Action("invalid", f"a test of LOOKUP must be 'field op value', got '{each.strip():.60}'.")
        found.append(Test(match[1].lower(), match[2], match[3]))
    return Action("lookup", database.strip().lower(), tests=tuple(found))


_PARSERS: dict[str, Callable[[str], Action]] = {
    "SEARCH": _words("search"),
    "OPEN": _open,
    "FIND": _words("find"),
    "LOOKUP": _lookup,
    "ANSWER": lambda rest: Action("answer", rest),
}
