"""The forms that replies of chat models have to keep, and how they are read."""

from __future__ import annotations

import re

_THINKING = re.compile(r"\A.*</think>", re.DOTALL | re.IGNORECASE)
_OPINION = re.compile(r"\W*(VALID|DOUBTFUL)\b", re.IGNORECASE)


class Form:
    """A reply in two parts, each begun by its name and a colon, or by its name alone on a line.

    What a model thought before ``</think>`` is no part of the reply, and Markdown around a name does not matter. The
    second part has to be there once, with something in it; only that one is asked for.
    """

    def __init__(self, first: str, second: str) -> None:
        """Name the parts, in capitals."""
        self._second = second
        mark = r"[ \t*_`]*"
        self._names = re.compile(
            rf"^[ \t>#*_`]*({first}|{second}){mark}(?:[:：]{mark}|$)", re.MULTILINE | re.IGNORECASE
        )

    def fault(self, reply: str) -> str:
        """Return how a reply breaks the form; an empty string where it keeps it."""
        if not reply.strip():
            return "it is empty"
        found = self.parts(reply, self._second)
        if not found:
            return f"no part of it begins with {self._second}:"
        if len(found) > 1:
            return f"{len(found)} parts of it begin with {self._second}:"
        return "" if found[0] else f"its {self._second} part is empty"

    def parts(self, reply: str, name: str) -> list[str]:
        """Return the text of every part of that name."""
        _, *pieces = self._names.split(spoken(reply))
        named = zip(pieces[::2], pieces[1::2], strict=True)
        return [text.strip() for found, text in named if found.upper() == name]


_MOVE = Form("THOUGHT", "ACTION")
_CHECK = Form("REASON", "VERDICT")


def spoken(reply: str) -> str:
    """Return a reply without what its model thought before ``</think>``."""
    return _THINKING.sub("", reply)


def move_fault(reply: str) -> str:
    """Return how a reply breaks the form of a move; an empty string where it keeps it."""
    return _MOVE.fault(reply)


def read_move(reply: str) -> str:
    """Return the ACTION part of a reply, or all of it where there is not exactly one with something in it."""
    return reply if _MOVE.fault(reply) else _MOVE.parts(reply, "ACTION")[0]


def opinion_fault(reply: str) -> str:
    """Return how a reply breaks the form of a second opinion; an empty string where it keeps it."""
    fault = _CHECK.fault(reply)
    return fault or ("" if _verdict(reply) else "its VERDICT is neither VALID nor DOUBTFUL")


def read_opinion(reply: str) -> str:
    """Return verdict and reason, or all of the reply where it gives no such verdict."""
    if opinion_fault(reply):
        return reply
    return " ".join([f"{_verdict(reply)}.", *_CHECK.parts(reply, "REASON")])


def _verdict(reply: str) -> str:
    found = _OPINION.match(_CHECK.parts(reply, "VERDICT")[0])
    return found[1].upper() if found else ""
