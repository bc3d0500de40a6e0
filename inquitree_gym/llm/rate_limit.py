"""Limits on requests and tokens per minute, shared by everything that uses a model.

Requests are spread evenly, since services also count in windows shorter than a minute. A request reserves an estimated
number of tokens; the actual number then moves the following requests.

This is own code because the libraries do not correct a reservation: aiolimiter, limits and pyrate-limiter cannot give
back or add tokens afterwards, and aiolimiter is bound to the clock of one event loop.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from inquitree_gym.errors import OptionError
from inquitree_gym.llm.chat import Chat, ChatMiddleware, Completion, Message, estimated_tokens
from inquitree_gym.llm.retry import SystemClock

FIRST_REPLY = 500
"""Tokens reserved for a reply before any has arrived; later, the mean of the replies so far."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A place in the queue of a `RateLimit`."""

    wait: float
    """Seconds from now until the request may be sent."""
    tokens: float
    """Reserved tokens."""


class RateLimiter(Protocol):
    """Interface of a `RateLimit` to a `RateLimitedChat`; a run on several machines has one over the network."""

    def reserve(self, prompt: int) -> Reservation:
        """See `RateLimit.reserve`."""

    def settle(self, reservation: Reservation, completion: Completion) -> None:
        """See `RateLimit.settle`."""


class RateLimit:
    """Rates of one model, first come, first served. Safe to share between threads and event loops."""

    def __init__(
        self,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: SystemClock | None = None,
    ) -> None:
        """Create a limit with an empty queue.

        Args:
            requests_per_minute: None for no limit.
            tokens_per_minute: prompt and completion tokens; None for no limit.
            clock: None for the system's clock.

        Raises:
            OptionError: a rate is not a positive number, or none is given.
        """
        rates = {"requests_per_minute": requests_per_minute, "tokens_per_minute": tokens_per_minute}
        for name, rate in rates.items():
            if rate is not None and not 0 < rate < math.inf:
                raise OptionError(f"{name} is a number above 0, not {rate}; leave it out for no limit")
        if not any(rates.values()):
            raise OptionError(f"a rate limit needs {' or '.join(rates)}")
        self._per_request = 60 / requests_per_minute if requests_per_minute else 0.0
        self._per_token = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._next_by_requests = self._next_by_tokens = self._clock.now()
        self._replies, self._reply_tokens = 0, 0

    def reserve(self, prompt: int) -> Reservation:
        """Return the next place in the queue for a request of about ``prompt`` tokens and its reply."""
        with self._lock:
            now = self._clock.now()
            tokens = prompt + (self._reply_tokens / self._replies if self._replies else FIRST_REPLY)
            start = max(now, self._next_by_requests, self._next_by_tokens)
            self._next_by_requests = start + self._per_request
            self._next_by_tokens = start + tokens * self._per_token
            return Reservation(start - now, tokens)

    def settle(self, reservation: Reservation, completion: Completion) -> None:
        """Correct a reservation by the tokens and retries of its completion; uncounted tokens stay as reserved."""
        reply = completion.tokens.get("completion", 0)
        used = completion.tokens.get("prompt", 0) + reply
        with self._lock:
            self._next_by_requests += completion.retries * self._per_request
            if completion.tokens:
                self._next_by_tokens += (used - reservation.tokens) * self._per_token
                self._replies += 1
                self._reply_tokens += reply


class RateLimitedChat(ChatMiddleware):
    """Middleware that waits for its turn. A request that is cancelled while it waits leaves its place empty."""

    def __init__(self, chat: Chat, rate_limit: RateLimiter, clock: SystemClock | None = None) -> None:
        """Limit the requests to ``chat``; ``clock`` does the waiting, None for the system's."""
        super().__init__(chat)
        self.rate_limit = rate_limit
        self._clock = clock or SystemClock()

    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        """Return the reply of the wrapped chat, after the wait."""
        reservation = self.rate_limit.reserve(sum(map(estimated_tokens, messages)))
        if reservation.wait > 0:
            await self._clock.sleep(reservation.wait)
        completion = await self.chat.complete(messages, seed=seed)
        self.rate_limit.settle(reservation, completion)
        return completion
