"""A chat around a chat: one piece of code for callers that wait and callers that let others go on."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from inquitree_gym._waiting import at_once
from inquitree_gym.llm.model import Chat, Message
from inquitree_gym.llm.response import Completion

T = TypeVar("T")


class Way(Protocol):
    """How to do what takes time."""

    async def ask(self, messages: Sequence[Message], seed: int | None) -> Completion:
        """Ask the chat inside."""

    async def wait(self, future: Future[T]) -> T:
        """Return what the future brings; whoever gives up waiting cancels it."""


class Around(ABC):
    """A `Chat` around another. It says what happens beside the asking; the replies are decided inside."""

    def __init__(self, chat: Chat) -> None:
        """Go around ``chat``."""
        self.chat = chat

    @property
    def config(self) -> dict[str, Any]:
        """That of the chat inside: a cache, a budget or a pace decides no reply."""
        return self.chat.config

    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        """See `Chat.complete`."""
        return await self._through(_LettingOthersOn(self.chat), messages, seed)

    def complete_now(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        """See `Chat.complete_now`."""
        return at_once(self._through(_Blocking(self.chat), messages, seed))

    @abstractmethod
    async def _through(self, way: Way, messages: Sequence[Message], seed: int | None) -> Completion:
        """Return the reply; of ``way`` alone may be waited for."""


def innermost(chat: Chat) -> Chat:
    """Return the chat that decides the replies."""
    while isinstance(chat, Around):
        chat = chat.chat
    return chat


class _LettingOthersOn:
    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    async def ask(self, messages: Sequence[Message], seed: int | None) -> Completion:
        return await self._chat.complete(messages, seed=seed)

    async def wait(self, future: Future[T]) -> T:
        return await asyncio.wrap_future(future)


class _Blocking:
    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    async def ask(self, messages: Sequence[Message], seed: int | None) -> Completion:
        return self._chat.complete_now(messages, seed=seed)

    async def wait(self, future: Future[T]) -> T:
        try:
            return future.result()
        finally:
            future.cancel()  # of one that is done nothing is left to cancel
