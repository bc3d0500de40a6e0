"""Requests of judges to chat models: codes and fences that no author of a text can guess, and the answers by code."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inquitree_gym.errors import BudgetError, ServiceError
from inquitree_gym.llm import Budget, BudgetedChat, CachedChat, Chat, Completion, Message, ReplyCache, Usage
from inquitree_gym.llm.cache import reply_folder
from inquitree_gym.llm.chat import complete_with_text
from inquitree_gym.log.records import JUDGE_ROLE

_MARKUP = r"[\s*_`#>-]*"

Scored = tuple[float | None, str]
"""Score under a code, None if the reply gives none, and the reason before the score."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The reply to one request, or the reason for its absence."""

    completion: Completion | None
    fault: str
    """Reason for the absence of a reply. Empty if there is one."""
    usage: Usage


def judging_chat(chat: Chat, budget: Budget, cache: ReplyCache | None) -> CachedChat:
    """Return a chat within a budget that caches every paid reply. None for ``cache`` is the package's cache folder."""
    return CachedChat(BudgetedChat(chat, budget), cache or ReplyCache(reply_folder(JUDGE_ROLE)))


async def ask_judge(chat: Chat, messages: Sequence[Message], seed: int) -> Asked:
    """Ask a model. If the budget is used up or only this request fails, return the reason instead of a reply.

    Raises:
        ServiceError: the service rejects every request: wrong key, unknown model or exhausted quota.
        CacheError: a paid reply could not be cached.
    """
    replies: list[Completion] = []
    try:
        completion = await complete_with_text(chat, messages, seed=seed, keep=replies.append)
    except BudgetError:
        return Asked(None, "not asked: the budget is used up", _paid(replies) + Usage(skipped=1))
    except ServiceError as error:
        if error.concerns_all:
            raise
        return Asked(None, str(error), _paid(replies) + Usage(failed=1))
    return Asked(completion, "", _paid(replies))


def ending(completion: Completion) -> str:
    """Return in brackets, for a fault, how a reply ended. Empty if it stopped by itself."""
    reason = completion.finish_reason
    return f" (the answer ended with '{reason}')" if reason != "stop" else ""


def secret_of(*parts: object) -> str:
    """Return a secret computed from everything in a request, so that no text in the request can contain it."""
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def fence_of(secret: str) -> str:
    """Return the line above and below an untrusted text."""
    return f"=== {secret[:24]} ==="


def code_of(letter: str, position: int, secret: str) -> str:
    """Return the name of an item in one request."""
    return f"{letter}{position}-{hashlib.sha256(f'{secret}{position}'.encode()).hexdigest()[:6].upper()}"


def score_under(code: str, label: str, reply: str, read: Callable[[str, int], float | None]) -> Scored:
    """Return the last score that a reply gives under a code, and the last reason before it.

    Args:
        code: see `code_of`.
        label: word before the code where the score stands, such as ``VERDICT``.
        reply: the reply.
        read: returns the score that starts at a position of the reply. None if there is none.
    """
    said = list(re.finditer(rf"\b{label}\b{_MARKUP}{re.escape(code)}{_MARKUP}[:=][\s*_`]*", reply, re.IGNORECASE))
    if not said:
        return None, ""
    return read(reply, said[-1].end()), _reason(code, label, reply[: said[-1].start()])


def _reason(code: str, label: str, before: str) -> str:
    """Return the last reason given before the score."""
    pattern = rf"\bREASON\b{_MARKUP}{re.escape(code)}{_MARKUP}[:=](.*?)(?=\b(?:REASON|{label})\b{_MARKUP}[A-Z]\d+-|\Z)"
    reasons = re.findall(pattern, before, re.IGNORECASE | re.DOTALL)
    return " ".join(reasons[-1].split()).strip("*_` ") if reasons else ""


def _paid(replies: Sequence[Completion]) -> Usage:
    return sum(map(Usage.of, replies), Usage())
