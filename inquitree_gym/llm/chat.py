"""Chat messages, completions, and the base class of chat middleware."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Message = dict[str, str]
"""``role`` (``system``, ``user`` or ``assistant``) and ``content``."""

BYTES_PER_TOKEN = 4
"""Bytes of UTF-8 per estimated token, the same for every model, so that a replay drops the same messages."""
TOKENS_PER_MESSAGE = 4
"""Estimated tokens added for each message."""
_THINKING = re.compile(r"\A.*</think>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply of a chat model."""

    text: str
    """The reply; empty if the service returned none, for example because it was filtered."""
    finish_reason: str
    """The service's word: ``stop``, ``length``, ``content_filter``, …; ``refusal`` for a refusal."""
    tokens: dict[str, int]
    """Tokens by kind as counted by the service: ``prompt``, ``completion`` and, if reported, ``reasoning`` (part of the
    completion) and ``cached`` (part of the prompt). Empty if the service did not count."""
    cost: float | None
    """US dollars by litellm's price list; None if the price or the number of tokens is unknown."""
    seconds: float = 0.0
    """Time from the first request to the reply, waits included."""
    retries: int = 0
    """Failed requests before this reply."""
    cut: int = 0
    """Characters cut off the end, beyond `MAX_REPLY`."""
    cached: bool = False
    """True for a reply from a `ReplyCache`, which costs nothing."""


class Chat(Protocol):
    """Anything that answers messages: a `ChatModel`, a model of your own, or either inside `ChatMiddleware`."""

    @property
    def config(self) -> dict[str, Any]:
        """Settings that determine the replies, for the log: plain values, no key; ``model`` is the model's name."""

    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        """Return the reply to ``messages``.

        Args:
            messages: the conversation, oldest first.
            seed: used if the model has no seed of its own and its provider accepts one.

        Raises:
            ServiceError: there is no usable reply.
        """


class ChatMiddleware(ABC):
    """Base class for chat middleware: a `Chat` that wraps another one and does not change its replies."""

    def __init__(self, chat: Chat) -> None:
        """Wrap ``chat``."""
        self.chat = chat

    @property
    def config(self) -> dict[str, Any]:
        """The settings of the wrapped chat."""
        return self.chat.config

    @abstractmethod
    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        """Return the reply of the wrapped chat; see `Chat.complete`."""


def innermost(chat: Chat) -> Chat:
    """Return the chat inside all middleware."""
    while isinstance(chat, ChatMiddleware):
        chat = chat.chat
    return chat


def estimated_tokens(message: Message) -> int:
    """Return the estimated number of tokens in a message.

    >>> estimated_tokens({"role": "user", "content": "How much of it is noise?"})
    10
    """
    return TOKENS_PER_MESSAGE - -len(message["content"].encode("utf-8", "replace")) // BYTES_PER_TOKEN


def strip_thinking(reply: str) -> str:
    """Return a reply without everything up to ``</think>``."""
    return _THINKING.sub("", reply)
