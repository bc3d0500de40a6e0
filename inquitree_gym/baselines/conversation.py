"""What a chat model is told again at every turn, held within a number of tokens."""

from __future__ import annotations

from collections.abc import Sequence

from inquitree_gym.llm import Message
from inquitree_gym.llm.tokens import BYTES_PER_TOKEN, estimated_tokens
from inquitree_gym.prompts import Prompts

SHARE = 4
"""One part in so many of the context is the most that a single text of a model's may take."""
CUT = "[…] "
"""Stands for the beginning of a text that is too long."""
NOTHING = "(no reply)"
"""Stands in a conversation for an empty reply, which some services refuse to be sent."""


class Conversation:
    """Messages in order. Those at the head always stay; of the others the oldest pairs go when there are too many."""

    def __init__(self, head: Sequence[Message], context: int, prompts: Prompts) -> None:
        """Begin with ``head``, and stay within ``context`` estimated tokens."""
        self._head = list(head)
        self._rest: list[Message] = []
        self._context = context
        self._prompts = prompts

    def hear(self, text: str) -> None:
        """Add what the model is told."""
        self._rest.append(told(text))

    def say(self, text: str) -> None:
        """Add what the model replied."""
        self._rest.append(replied(self.short(text)))

    def short(self, text: str) -> str:
        """Return a text of a model's; of one longer than its `SHARE` the end, where a move stands."""
        whole, most = text.encode("utf-8", "replace"), self._context * BYTES_PER_TOKEN // SHARE
        return text if len(whole) <= most else CUT + whole[-most:].decode("utf-8", "ignore")

    def messages(self, *more: Message) -> list[Message]:
        """Return what is sent: the head, then a note of how many exchanges were dropped, and the newest messages.

        ``more`` are messages that are sent now and not remembered. They stay however long they are, and so does the
        newest message, or the newest exchange after a head that asks for one.
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


def told(text: str) -> Message:
    """Return what a model is told, as a message."""
    return {"role": "user", "content": text}


def replied(text: str) -> Message:
    """Return what a model replied, as a message."""
    return {"role": "assistant", "content": text if text.strip() else NOTHING}


def system(text: str) -> Message:
    """Return a system prompt, as a message."""
    return {"role": "system", "content": text}
