"""Conversations with chat models: messages within a number of tokens, and the form of replies."""

from __future__ import annotations

import re
from collections.abc import Sequence

from inquitree_gym.llm import Message, estimated_tokens, strip_thinking
from inquitree_gym.llm.chat import BYTES_PER_TOKEN
from inquitree_gym.prompts import Prompts

SHARE = 4
"""A single reply may take one part in this many of the context."""
CUT = "[…] "
"""Replaces the beginning of a reply that is too long."""
NOTHING = "(no reply)"
"""Replaces an empty reply, which some services refuse to be sent."""
_BELIEF = re.compile(r"^[ \t>#*_`]*BELIEF[ \t*_`]*[:：](.*)$\n?", re.MULTILINE | re.IGNORECASE)
_STATED = re.compile(r"\W*(?P<word>TRUE|FAKE)\b[\s,:;(*_`]*(?P<sure>1(?:\.0*)?|0?\.\d+|0)?[\s.)*_`]*", re.IGNORECASE)
_OPINION = re.compile(r"\W*(VALID|DOUBTFUL)\b", re.IGNORECASE)


class Conversation:
    """Messages in order. The head always stays; beyond it, the oldest pairs are dropped if there are too many."""

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
    not empty; the first is optional.
    """

    def __init__(self, first: str, second: str) -> None:
        """Name the parts, in capitals."""
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
_CHECK = ReplyFormat("REASON", "VERDICT")


def move_fault(reply: str) -> str:
    """Return the fault in a move, or an empty string for a valid one."""
    return _MOVE.fault(reply)


def read_move(reply: str) -> str:
    """Return the ACTION part of a reply; the whole reply if it is not valid."""
    return reply if _MOVE.fault(reply) else _MOVE.parts(reply, "ACTION")[0]


def split_belief(reply: str) -> tuple[str, float | None]:
    """Return a reply without its lines ``BELIEF: true|fake [probability]``, and the belief that the last one states.

    The belief is the probability that the result is fake, in [0, 1]; None if there is no such line, or if the last one
    says something else.

    >>> split_belief("ACTION: redo study BELIEF: BELIEF:"), split_belief("BELIEF: true 0.75")
    (('ACTION: redo study BELIEF: BELIEF:', None), ('', 0.25))
    """
    answer = strip_thinking(reply)
    *_, last = ["", *_BELIEF.findall(answer)]
    stated = _STATED.fullmatch(last)
    if stated is None:
        return _BELIEF.sub("", answer), None
    sure = float(stated["sure"] or 1)
    return _BELIEF.sub("", answer), sure if stated["word"].upper() == "FAKE" else 1 - sure


def opinion_fault(reply: str) -> str:
    """Return the fault in a second opinion, or an empty string for a valid one."""
    fault = _CHECK.fault(reply)
    return fault or ("" if _verdict(reply) else "its VERDICT is neither VALID nor DOUBTFUL")


def read_opinion(reply: str) -> str:
    """Return verdict and reason of a second opinion; the whole reply if it is not valid."""
    if opinion_fault(reply):
        return reply
    return " ".join([f"{_verdict(reply)}.", *_CHECK.parts(reply, "REASON")])


def _verdict(reply: str) -> str:
    found = _OPINION.match(_CHECK.parts(reply, "VERDICT")[0])
    return found[1].upper() if found else ""
