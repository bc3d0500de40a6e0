"""Reading of actions by a `Reader`, asked ahead of a step or within it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from inquitree_gym._litellm import run_sync
from inquitree_gym.engine import Reading, State
from inquitree_gym.matching import Matcher
from inquitree_gym.readers import Reader, ReaderAnswer, ReaderRequest


class AskedReader:
    """The reader of one environment, and its answers to the last action and to the next one."""

    def __init__(self, reader: Reader) -> None:
        """Ask ``reader``."""
        self.reader = reader
        self.answer: ReaderAnswer | None = None
        """Answer behind the last reading; None if that action was not matched with candidates."""
        self._ahead: tuple[ReaderRequest, ReaderAnswer] | None = None

    def take(self, request: ReaderRequest, answer: ReaderAnswer) -> None:
        """Keep an answer for the next action, which is not asked about again."""
        self._ahead = (request, answer)

    def read(self, matcher: Matcher, state: State, action: str) -> Reading:
        """Return the reading of ``action``; see `Matcher.read`.

        Raises:
            ReaderError: the reader gave no usable reply; the state has not changed.
        """
        ahead, self._ahead, self.answer = self._ahead, None, None
        request = matcher.reader_request(state, action)
        if request is None:
            return matcher.read(state, action)
        self.answer = ahead[1] if ahead and ahead[0] == request else run_sync(self.reader.choose(request))
        return matcher.read_choice(state, action, self.answer.candidate)


async def ask_ahead(requests: Sequence[tuple[AskedReader, ReaderRequest]]) -> None:
    """Put requests to their readers at the same time, and keep the answers for the next step of each environment.

    Raises:
        ReaderError: a reader gave no usable reply.
    """
    answers = await asyncio.gather(*(asked.reader.choose(request) for asked, request in requests))
    for (asked, request), answer in zip(requests, answers, strict=True):
        asked.take(request, answer)
