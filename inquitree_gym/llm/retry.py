"""Retries and rate limits of requests to services."""

from __future__ import annotations

import asyncio
import math
import re
import secrets
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

from inquitree_gym.errors import OptionError
from inquitree_gym.llm.chat import Chat, ChatMiddleware, Completion, Message, estimated_tokens

FIRST_WAIT = 1.0
"""Seconds before the first retry, doubled for each further one."""
LONGEST_WAIT = 60.0
"""Longest wait before a retry in seconds, unless the service asks for more."""
LONGEST_REQUESTED_WAIT = 300.0
"""Longest wait in seconds that a service may ask for. Beyond it the request fails."""
MAX_MESSAGE = 300
"""Characters of a service's message that are kept."""

_TRANSIENT = {408, 425, 429}
_FILTERED = {"content_filter", "content_policy_violation"}
_CHECK = "check the settings of the model"
_START = "start the server, or correct the address, and run the same command again"
_ADVICE = {
    401: "check the key in the provider's environment variable",
    403: "check that the key may use this model",
    404: "check the name of the model and the address of the server",
}


class SystemClock:
    """Clock for waits and deadlines. Tests replace it by a subclass that does not wait."""

    def now(self) -> float:
        """Return seconds since an arbitrary start, never decreasing."""
        return time.perf_counter()

    async def sleep(self, seconds: float) -> None:
        """Sleep without blocking the event loop."""
        await asyncio.sleep(seconds)

    def jitter(self) -> float:
        """Return a random number in [0, 1) that differs between processes."""
        return secrets.randbelow(2**32) / 2**32


@dataclass(frozen=True, slots=True)
class RequestFault:
    """A request that failed."""

    message: str
    """The service's message, without keys."""
    transient: bool = False
    """True if another try may succeed."""
    status: int | None = None
    """HTTP status, if there was one."""
    wait: float | None = None
    """Seconds that the service asks to wait."""
    advice: str = _CHECK
    """Advice for a fault that is not transient."""
    refused: bool = False
    """True if nothing listens at the address."""


def read_fault(error: Exception, key: str = "", address: str | None = None) -> RequestFault:
    """Return the fault behind an error of litellm.

    Args:
        error: the error.
        key: the key that was sent, if it is known.
        address: the address of the server. None for the provider's own.
    """
    from inquitree_gym.llm.litellm import scrub

    if (cause := _connection_error(error)) is not None:
        refused = isinstance(cause, ConnectionRefusedError)
        reason = "refused, since nothing listens there" if refused else scrub(str(cause), key)
        message = f"no connection to {address or 'its provider'}: {_shortened(reason)}"
        return RequestFault(message, transient=True, refused=refused, advice=_START)
    status = getattr(error, "status_code", None)
    message = _shortened(scrub(str(error), key))
    if _code(error) == "insufficient_quota":
        return RequestFault(message, status=status, advice="the quota is used up: raise it, or choose another model")
    if type(error).__name__ == "ContextWindowExceededError":
        return RequestFault(message, status=status, advice="give the agent a smaller context")
    transient = status is None or status >= 500 or status in _TRANSIENT
    return RequestFault(message, transient, status, requested_wait(_headers(error)), _ADVICE.get(status or 0, _CHECK))


def _connection_error(error: BaseException | None) -> OSError | None:
    """Return the system's error behind an error of litellm. None if there was a connection."""
    while error is not None and not isinstance(error, ConnectionError | socket.gaierror):
        error = error.__cause__ or error.__context__
    return error


def is_filtered(error: Exception) -> bool:
    """Tell whether the service's content filter refused the request."""
    return type(error).__name__ == "ContentPolicyViolationError" or _code(error) in _FILTERED


def requested_wait(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds that a service asks to wait. None if it does not ask legibly.

    It asks in ``retry-after-ms``, or in ``Retry-After`` in seconds or as a date. ``now`` is in seconds since the epoch.
    """
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        requested = headers.get("retry-after", "")
        if re.fullmatch(r"\s*[\d.]+\s*", requested):
            return float(requested)
        return max(0.0, parsedate_to_datetime(requested).timestamp() - (time.time() if now is None else now))
    except (TypeError, ValueError):
        return None


def next_wait(retry: int, requested: float | None, jitter: float) -> float:
    """Return the seconds before retry number ``retry`` (0 for the first).

    Without a requested wait, `FIRST_WAIT` doubled each time up to `LONGEST_WAIT`. ``jitter`` in [0, 1) spreads clients
    that failed together, over the upper half of that wait or beyond the requested one.
    """
    backoff = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(retry, 30))
    return backoff * (1 + jitter) / 2 if requested is None else requested + jitter * FIRST_WAIT


def _code(error: Exception) -> str:
    """Return the service's own error code, which litellm replaces in its attributes."""
    body = getattr(error, "body", None)
    return str(body.get("code") or body.get("type") or "") if isinstance(body, Mapping) else ""


def _headers(error: Exception) -> Mapping[str, str]:
    """Return the response headers in lower case. Empty without a response."""
    response = getattr(error, "response", None)
    found: Any = getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None)
    return {str(name).lower(): str(value) for name, value in dict(found or {}).items()}


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + " …"


FIRST_REPLY = 500
"""Tokens reserved for a reply before any has arrived. Later, the mean of the replies so far."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A place in the queue of a `RateLimit`."""

    wait: float
    """Seconds from now until the request may be sent."""
    tokens: float
    """Reserved tokens."""


class RateLimiter(Protocol):
    """Interface of a `RateLimit` to a `RateLimitedChat`. A run on several machines has one over the network."""

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
            tokens_per_minute: prompt and completion tokens. None for no limit.
            clock: None for the system's clock.

        Raises:
            OptionError: a rate is not a positive number, or none is given.
        """
        rates = {"requests_per_minute": requests_per_minute, "tokens_per_minute": tokens_per_minute}
        for name, rate in rates.items():
            if rate is not None and not 0 < rate < math.inf:
                raise OptionError(f"{name} must be a number above 0, got {rate}; leave it out for no limit")
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
        """Correct a reservation by the tokens and retries of its completion. Uncounted tokens stay as reserved."""
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
        """Limit the requests to ``chat``. ``clock`` does the waiting, None for the system's."""
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
