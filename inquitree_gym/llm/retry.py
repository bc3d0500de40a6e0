"""Failed requests: which are worth another try, the wait before it, and a message without keys."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from inquitree_gym._litellm import scrub

FIRST_WAIT = 1.0
"""Seconds before the first retry, doubled for each further one."""
LONGEST_WAIT = 60.0
"""Longest wait before a retry in seconds, unless the service asks for more."""
LONGEST_REQUESTED_WAIT = 300.0
"""Longest wait in seconds that a service may ask for; beyond it the request fails."""
MAX_MESSAGE = 300
"""Characters of a service's message that are kept."""

_TRANSIENT = {408, 425, 429}
_FILTERED = {"content_filter", "content_policy_violation"}
_CHECK = "check the settings of the model"
_ADVICE = {
    401: "check the key in the provider's environment variable",
    403: "check that the key may use this model",
    404: "check the name of the model and the address of the server",
}


class SystemClock:
    """Clock for waits and deadlines; tests replace it by a subclass that does not wait."""

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


def read_fault(error: Exception, key: str = "") -> RequestFault:
    """Return the fault behind an error of litellm; ``key`` is the one that was sent, if it is known."""
    status = getattr(error, "status_code", None)
    message = _shortened(scrub(str(error), key))
    if _code(error) == "insufficient_quota":
        return RequestFault(message, status=status, advice="the quota is used up: raise it, or choose another model")
    if type(error).__name__ == "ContextWindowExceededError":
        return RequestFault(message, status=status, advice="give the agent a smaller context")
    transient = status is None or status >= 500 or status in _TRANSIENT
    return RequestFault(message, transient, status, requested_wait(_headers(error)), _ADVICE.get(status or 0, _CHECK))


def is_filtered(error: Exception) -> bool:
    """Tell whether the service's content filter refused the request."""
    return type(error).__name__ == "ContentPolicyViolationError" or _code(error) in _FILTERED


def requested_wait(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds that a service asks to wait; None without a readable request.

    Args:
        headers: of the response; ``retry-after-ms``, or ``Retry-After`` in seconds or as a date.
        now: seconds since the epoch; None for the current time.
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
    """Return the response headers in lower case; empty without a response."""
    response = getattr(error, "response", None)
    found: Any = getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None)
    return {str(name).lower(): str(value) for name, value in dict(found or {}).items()}


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + " …"
