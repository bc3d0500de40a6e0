"""What goes wrong between a request and its answer: which faults pass, how long to wait, what to say of them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

FIRST_WAIT = 1.0
"""Seconds before the first retry; doubled at each further one."""
LONGEST_WAIT = 60.0
"""Seconds at most before a retry, unless the service asks for more."""
PATIENCE = 300.0
"""Seconds at most that a service may ask for; one that asks for more is given up."""
MAX_SAID = 300
"""Characters of a service's own words in a message."""

_PASSING = {408, 425, 429}
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SECRET = re.compile(r"\b(?:(?:sk|pk|rk|gsk|xai|hf|r8|pplx)[-_]|AIza)[\w*-]{8,}|(?<=\bbearer )\S+", re.IGNORECASE)
_FILTERED = {"content_filter", "content_policy_violation"}
_CHECK = "check the settings of the model"
_ADVICE = {
    401: "check the key in the provider's environment variable",
    403: "check that the key may use this model",
    404: "check the name of the model and the address of the server",
}


class Fault(NamedTuple):
    """A request that brought no answer."""

    said: str
    """What came instead, without keys."""
    passing: bool = False
    """Whether another try may help."""
    status: int | None = None
    """HTTP status, where there is one."""
    wait: float | None = None
    """Seconds that the service asks to wait."""
    advice: str = _CHECK
    """What to do where another try does not help."""


def read_fault(error: Exception) -> Fault:
    """Return what an error of litellm means."""
    status = getattr(error, "status_code", None)
    said = _shortened(scrub(str(error)))
    code = _code(error)
    if code == "insufficient_quota":
        return Fault(said, False, status, None, "the quota is used up: raise it, or take another model")
    if type(error).__name__ == "ContextWindowExceededError":
        return Fault(said, False, status, None, "give the agent a smaller context")
    passing = status is None or status >= 500 or status in _PASSING
    return Fault(said, passing, status, asked_wait(_headers(error)), _ADVICE.get(status or 0, _CHECK))


def is_filtered(error: Exception) -> bool:
    """Tell whether the service answered that its content filter forbids an answer."""
    return type(error).__name__ == "ContentPolicyViolationError" or _code(error) in _FILTERED


def asked_wait(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds that a service asks to wait; None where it asks for nothing that can be read.

    Args:
        headers: of the answer; ``retry-after-ms``, or ``Retry-After`` in seconds or as a date.
        now: seconds since the epoch; None for the clock's.
    """
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        asked = headers.get("retry-after", "")
        if re.fullmatch(r"\s*[\d.]+\s*", asked):
            return float(asked)
        return max(0.0, parsedate_to_datetime(asked).timestamp() - (time.time() if now is None else now))
    except (TypeError, ValueError):
        return None


def next_wait(retry: int, asked: float | None, jitter: float) -> float:
    """Return the seconds before retry number ``retry`` (0 for the first).

    What the service asks for, or `FIRST_WAIT` doubled each time up to `LONGEST_WAIT`; ``jitter`` in [0, 1) spreads
    clients that failed together: over the upper half of the own wait, or beyond what was asked.
    """
    own = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(retry, 30))
    return own * (1 + jitter) / 2 if asked is None else asked + jitter * FIRST_WAIT


def scrub(text: str) -> str:
    """Return ``text`` without the values of environment variables that name a secret, and without what looks like one.

    >>> scrub("Incorrect API key provided: sk-12345678. Header: Bearer abc")
    'Incorrect API key provided: [key]. Header: Bearer [key]'
    """
    for name, value in os.environ.items():
        if len(value) >= 8 and names_secret(name):
            text = text.replace(value, f"[{name}]")
    return _SECRET.sub("[key]", text)


def names_secret(variable: str) -> bool:
    """Tell whether an environment variable of that name holds a secret."""
    return _SECRET_NAME.search(variable) is not None


def _code(error: Exception) -> str:
    """Return the service's own code for the fault; litellm puts others in its place."""
    body = getattr(error, "body", None)
    return str(body.get("code") or body.get("type") or "") if isinstance(body, Mapping) else ""


def _headers(error: Exception) -> Mapping[str, str]:
    """Return the headers of the answer, case-blind; none where there was no answer."""
    found: Any = getattr(error, "litellm_response_headers", None) or getattr(
        getattr(error, "response", None), "headers", None
    )
    return {str(name).lower(): str(value) for name, value in dict(found or {}).items()}


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_SAID else text[:MAX_SAID] + " …"
