"""How fast a model may be asked: requests and tokens per minute, shared by all that ask it.

Requests are spread evenly, since services count in shorter windows than a minute. A request reserves the tokens that it
is thought to take; when its answer tells how many they were, the next ones come earlier or later for it.

Own code, because the libraries at hand count what is asked for and take nothing back: aiolimiter has neither an amount
to settle nor a clock other than one event loop's; limits and pyrate-limiter say no, or wait, and settle nothing either.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from inquitree_gym.errors import OptionError
from inquitree_gym.llm.event_loop import begin
from inquitree_gym.llm.middleware import Around, Way
from inquitree_gym.llm.model import Chat, Clock, Message, SystemClock
from inquitree_gym.llm.response import Completion
from inquitree_gym.llm.tokens import estimated_tokens

FIRST_REPLY = 500
"""Tokens reserved for a reply before any has come; after that the mean of those that have."""


class Slot(NamedTuple):
    """When a request may go out, and what was reserved for it."""

    wait: float
    """Seconds from now."""
    tokens: float


class Pace:
    """Rates of one model. Threads and event loops may share it; whoever comes first goes first."""

    def __init__(
        self,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Begin without a debt.

        Args:
            requests_per_minute: None is no limit.
            tokens_per_minute: prompt and completion; None is no limit.
            clock: None for the real time.

        Raises:
            OptionError: a rate is no positive number, or there is none.
        """
        rates = {"requests_per_minute": requests_per_minute, "tokens_per_minute": tokens_per_minute}
        for name, rate in rates.items():
            if rate is not None and not 0 < rate < math.inf:
                raise OptionError(f"{name} is a number above 0, not {rate}; leave it out for no limit")
        if not any(rates.values()):
            raise OptionError(f"a pace needs {' or '.join(rates)}; without both, ask without a pace")
        self._per_request = 60 / requests_per_minute if requests_per_minute else 0.0
        self._per_token = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._next_by_requests = self._next_by_tokens = self._clock.now()
        self._replies, self._reply_tokens = 0, 0

    def reserve(self, prompt: int) -> Slot:
        """Take the next place in the queue for a request of about ``prompt`` tokens and its reply."""
        with self._lock:
            now = self._clock.now()
            tokens = prompt + (self._reply_tokens / self._replies if self._replies else FIRST_REPLY)
            at = max(now, self._next_by_requests, self._next_by_tokens)
            self._next_by_requests = at + self._per_request
            self._next_by_tokens = at + tokens * self._per_token
            return Slot(at - now, tokens)

    def settle(self, slot: Slot, completion: Completion) -> None:
        """Make up for what a request took more or less than reserved, and for the tries that came before its answer."""
        reply = completion.tokens.get("completion", 0)
        used = completion.tokens.get("prompt", 0) + reply
        with self._lock:
            self._next_by_requests += completion.retries * self._per_request
            if not completion.tokens:
                return  # not counted: what was reserved stands
            self._next_by_tokens += (used - slot.tokens) * self._per_token
            self._replies += 1
            self._reply_tokens += reply


class Pacer(Protocol):
    """What a `PacedChat` needs of a pace."""

    def reserve(self, prompt: int) -> Slot:
        """See `Pace.reserve`."""

    def settle(self, slot: Slot, completion: Completion) -> None:
        """See `Pace.settle`."""


class PacedChat(Around):
    """Asks when it is its turn. One that is cancelled while it waits leaves its place empty."""

    def __init__(self, chat: Chat, pace: Pacer, clock: Clock | None = None) -> None:
        """Ask ``chat`` at ``pace``, which others share; ``clock`` is what waits, None for the real time."""
        super().__init__(chat)
        self.pace = pace
        self._clock = clock or SystemClock()

    async def _through(self, way: Way, messages: Sequence[Message], seed: int | None) -> Completion:
        slot = self.pace.reserve(sum(map(estimated_tokens, messages)))
        if slot.wait > 0:
            await way.wait(begin(self._clock.sleep(slot.wait)))
        completion = await way.ask(messages, seed)
        self.pace.settle(slot, completion)
        return completion
