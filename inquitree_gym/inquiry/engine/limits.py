"""Turn limits: a number of turns, or a formula such as ``3n+3`` in the number n of subtopics."""

from __future__ import annotations

import re

from inquitree_gym.errors import OptionError

Limit = int | str | None
"""A number of turns, a formula, or None for no limit."""

MOST_TURNS = 1_000_000_000
"""Largest number in a limit."""
_FORMULA = re.compile(r"([1-9][0-9]{0,5})?n(?:\+([1-9][0-9]{0,5}))?")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


def parse_limit(given: object) -> Limit:
    """Return a turn limit in its shortest form: ``"40"`` is 40, ``"3n + 3"`` is ``"3n+3"``, ``"none"`` is None.

    Raises:
        OptionError: it is no limit.
    """
    if given is None or (type(given) is int and 1 <= given <= MOST_TURNS):
        return given
    text = re.sub(r"\s+", "", given).lower() if isinstance(given, str) else ""
    if text == "none":
        return None
    if _NUMBER.fullmatch(text):
        return int(text)
    if _FORMULA.fullmatch(text):
        return text
    raise OptionError(
        f"max_turns must be a whole number from 1, a formula such as '3n' or '3n+3' in the number n of subtopics, or "
        f"None, got {given!r:.80}"
    )


def limit_turns(limit: Limit, n: int) -> int | None:
    """Return the turns of a parsed limit for n subtopics. None for no limit."""
    if not isinstance(limit, str):
        return limit
    found = _FORMULA.fullmatch(limit)
    assert found is not None
    factor, more = found.groups()
    return int(factor or 1) * n + int(more or 0)


def limit_label(limit: Limit) -> str:
    """Return a parsed limit in the words of reports: ``3n``, ``40`` or ``none``."""
    return "none" if limit is None else str(limit)
