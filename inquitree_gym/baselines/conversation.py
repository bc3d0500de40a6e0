"""Conversations with chat models: messages within a number of tokens, and the form of replies."""

from __future__ import annotations

import re
from collections.abc import Sequence

from inquitree_gym.llm import Message, estimated_tokens, strip_thinking
from inquitree_gym.llm.chat import BYTES_PER_TOKEN
from inquitree_gym.prompts import Prompts

SHARE = 4
"""A reply may fill one part of the context in this many."""
CUT = "[…] "
"""Replaces the beginning of a reply that is too long."""
NOTHING = "(no reply)"
"""Replaces an empty reply, which some services refuse."""


class Conversation:
    """Messages in order. The head always stays. Beyond it, the oldest pairs are dropped if there are too many."""

    def __init__(self, head: Sequence[Message], context: int, prompts: Prompts) -> None:
        """Start with ``head``, and stay within ``context`` estimated tokens."""
        self._head = list(head)
        self._rest: list[Message] = []
        self._context = context
        self._prompts = prompts

    def add_user(self, text: str) -> None:
        """Add a message to the model."""
        self._rest.append(user(text))

    def add_reply(self, text: str) -> None:
        """Add a reply of the model."""
        self._rest.append(assistant(self.shorten(text)))

    def shorten(self, text: str) -> str:
        """Truncate a long reply, keeping the end, which holds the action."""
        encoded, limit = text.encode("utf-8", "replace"), self._context * BYTES_PER_TOKEN // SHARE
        return text if len(encoded) <= limit else CUT + encoded[-limit:].decode("utf-8", "ignore")

    def messages(self, *more: Message) -> list[Message]:
        """Return the request: the head, a note on the number of dropped exchanges, and the newest messages.

        ``more`` are messages that are sent once and not remembered. They always stay, and so does the newest message,
        or the newest exchange after a head that ends with the user's turn.
        """
        rest = [*self._rest, *more]
        left = self._context - sum(map(estimated_tokens, (*self._head, *rest)))
        start = 0
        while left < 0 and len(self._rest) - start > 2:
            left += sum(map(estimated_tokens, rest[start : start + 2]))
            start += 2
        if not start:
            return [*self._head, *rest]
        *first, last = self._head
        note = self._prompts.render("llm_dropped", dropped=start // 2)
        return [*first, {**last, "content": f"{last['content']}\n\n{note}"}, *rest[start:]]


def user(text: str) -> Message:
    """Return a message to the model."""
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    """Return a reply as a message."""
    return {"role": "assistant", "content": text if text.strip() else NOTHING}


def system(text: str) -> Message:
    """Return a system prompt as a message."""
    return {"role": "system", "content": text}


class ReplyFormat:
    """A reply in two parts, each headed by its name and a colon, or by its name alone on a line.

    Everything up to ``</think>`` is ignored, and so is Markdown around a name. The second part is required, once and
    not empty. The first is optional.
    """

    def __init__(self, first: str, second: str) -> None:
        self._second = second
        mark = r"[ \t*_`]*"
        self._names = re.compile(
            rf"^[ \t>#*_`]*({first}|{second}){mark}(?:[:：]{mark}|$)", re.MULTILINE | re.IGNORECASE
        )

    def fault(self, reply: str) -> str:
        """Return the fault in a reply, or an empty string for a valid one."""
        if not reply.strip():
            return "it is empty"
        found = self.parts(reply, self._second)
        if not found:
            return f"no part of it begins with {self._second}:"
        if len(found) > 1:
            return f"{len(found)} parts of it begin with {self._second}:"
        return "" if found[0] else f"its {self._second} part is empty"

    def parts(self, reply: str, name: str) -> list[str]:
        """Return the text of every part with this name."""
        _, *pieces = self._names.split(strip_thinking(reply))
        named = zip(pieces[::2], pieces[1::2], strict=True)
        return [text.strip() for found, text in named if found.upper() == name]


_MOVE = ReplyFormat("THOUGHT", "ACTION")


def move_fault(reply: str) -> str:
    """Return the fault in a move, or an empty string for a valid one."""
    return _MOVE.fault(reply)


def read_move(reply: str) -> str:
    """Return the ACTION part of a reply. The whole reply if it is not valid."""
    return reply if _MOVE.fault(reply) else _MOVE.parts(reply, "ACTION")[0]
