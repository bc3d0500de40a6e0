"""Requests of judges to chat models: codes and fences that no author of a text can guess, and the answers by code."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from inquitree_gym.errors import BudgetError, ServiceError
from inquitree_gym.files import user_folder
from inquitree_gym.judging.judgement import Judgement, JudgeReply
from inquitree_gym.llm import Budget, BudgetedChat, CachedChat, Chat, Completion, Message, ReplyCache, Usage
from inquitree_gym.llm.chat import complete_with_text
from inquitree_gym.log.records import JUDGE_ROLE

T = TypeVar("T")

_DASHES = "\u00ad\u2010\u2011\u2012\u2013\u2043\u2212\ufe58\ufe63"
_PLAIN = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | dict.fromkeys(map(ord, _DASHES), "-")
_LEAD = r"[\s*_`#>()\[\]|—-]*"
"""Markup between a label and its code."""
_MARK = r"(?:[\s*_`#>()\[\]-]*(?:[:=—(\[]|(?=-\s))|[ \t*_`)\]]*\|)"
"""Markup between a code and its value: a colon, a long or spaced dash, a bracket, or the next cell of a table."""
_ANY_CODE = re.compile(r"\b[A-Z]\d+\s?[-—]?\s?[0-9A-F]{6}\b")
_NUMBER = re.compile(r"[-+]?\d*\.?\d+")

Scored = tuple[float | None, str]
"""Score under a code, None if the reply gives none, and the reason before the score."""


class UnscoredError(Exception):
    """A request without a reply, or a reply that cannot be read. The message is the reason."""


class Talk:
    """The requests about one text, in order, with their replies and usage."""

    def __init__(self, chat: Chat) -> None:
        self.usage = Usage()
        self.unread = 0
        """Number of grades or replies that could not be read."""
        self.replies: list[JudgeReply] = []
        self._chat = chat

    async def ask(self, messages: Sequence[Message], seed: int) -> str:
        """Return the text of the reply to a request.

        Raises:
            UnscoredError: the budget is used up, or only this request fails.
            ServiceError: the service rejects every request: wrong key, unknown model or exhausted quota.
            CacheError: a paid reply could not be cached.
        """
        paid: list[Completion] = []
        try:
            completion = await complete_with_text(self._chat, messages, seed=seed, keep=paid.append)
        except BudgetError:
            self.usage += Usage(skipped=1)
            raise UnscoredError("not asked: the budget is used up") from None
        except ServiceError as error:
            if error.concerns_all:
                raise
            self.usage += Usage(failed=1)
            raise UnscoredError(str(error)) from None
        finally:
            self.usage += sum(map(Usage.of, paid), Usage())
        self.replies.append(JudgeReply(completion))
        return completion.text

    def refuse(self, fault: str, unread: int = 1) -> UnscoredError:
        """Return the error for the latest reply, which cannot be read. It tells how the reply ended if it was cut."""
        reply = self.replies.pop().reply
        reason = "" if reply.end == "complete" else f" (the answer ended with '{reply.finish_reason}')"
        self.replies.append(JudgeReply(reply, fault + reason))
        self.unread += unread
        return UnscoredError(fault + reason)

    def judgement(self, payload: T, why: str = "") -> Judgement[T]:
        """Return the judgement that the replies led to."""
        return Judgement(payload, self.usage, self.unread, tuple(self.replies), why)


def judging_chat(chat: Chat, budget: Budget, cache: ReplyCache | None) -> CachedChat:
    """Return a chat within a budget that caches every paid reply. None for ``cache`` is the package's cache folder."""
    return CachedChat(BudgetedChat(chat, budget), cache or ReplyCache(user_folder(JUDGE_ROLE)))


def secret_of(*parts: object) -> str:
    """Return a secret computed from everything in a request, so that no text in the request can contain it."""
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def fence_of(secret: str) -> str:
    """Return the line above and below an untrusted text."""
    return f"=== {secret[:24]} ==="


def code_of(letter: str, position: int, secret: str) -> str:
    """Return the name of an item in one request."""
    return f"{letter}{position}-{hashlib.sha256(f'{secret}{position}'.encode()).hexdigest()[:6].upper()}"


def plain(text: str) -> str:
    """Return a text with plain characters for full-width ones, and a hyphen for every dash but the em dash."""
    return text.translate(_PLAIN)


def coded_rows(text: str, code: str, label: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield the rows of tables with this code alone, after ``label`` or not, and their cells behind it."""
    for row in text.split("\n"):
        cells = [cell.strip(" \t\r*_`()[]") for cell in row.split("|")]
        named = [bool(re.fullmatch(rf"(?:{label}{_LEAD})?{_spelled(code)}:?", cell, re.IGNORECASE)) for cell in cells]
        if len(_ANY_CODE.findall(row)) == sum(named) == 1 < len(cells):
            yield row, list(filter(None, cells[named.index(True) + 1 :]))


def score_under(code: str, label: str, reply: str, read: Callable[[str, int], float | None]) -> Scored:
    """Return the last score that a reply gives under a code, and the last reason before it.

    The score stands behind ``label``, such as ``VERDICT``, and the code, or in the code's row of a table. ``read``
    returns the score that starts at a position of the `plain` reply, or None.
    """
    text = plain(reply)
    for row, cells in coded_rows(text, code, label):
        numbers = [cell for cell in cells if _NUMBER.fullmatch(cell)]
        reason = " ".join(cell for cell in cells if cell not in numbers)
        lines = [f"REASON {code}: {reason}"] * bool(reason) + [f"{label} {code}: {', '.join(numbers)}"]
        text = text.replace(row, "\n".join(lines)) if numbers else text
    said = list(re.finditer(rf"\b{label}\b{_LEAD}{_spelled(code)}{_MARK}[\s*_`(\[]*", text, re.IGNORECASE))
    if not said:
        return None, ""
    return read(text, said[-1].end()), _reason(code, label, text[: said[-1].start()])


def _spelled(code: str) -> str:
    """Return a pattern for a code, with any dash."""
    return r"\s?[-—]?\s?".join(map(re.escape, code.split("-")))


def _reason(code: str, label: str, before: str) -> str:
    """Return the last reason given before the score."""
    pattern = rf"\bREASON\b{_LEAD}{_spelled(code)}{_MARK}(.*?)(?=\b(?:REASON|{label})\b{_LEAD}[A-Z]\d+\s?[-—]|\Z)"
    reasons = re.findall(pattern, before, re.IGNORECASE | re.DOTALL)
    return " ".join(reasons[-1].split()).strip("*_` |") if reasons else ""
