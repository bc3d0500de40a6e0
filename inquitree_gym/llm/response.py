"""What a service answered, as a completion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from inquitree_gym.llm.retry import Fault

MAX_REPLY = 100_000
"""Characters of a reply that are kept; the rest is cut off, and counted."""
_DETAILS = {
    "reasoning": ("completion_tokens_details", "reasoning_tokens"),
    "cached": ("prompt_tokens_details", "cached_tokens"),
}


class Completion(NamedTuple):
    """One reply, and what it took."""

    text: str
    """The reply; empty where the service gave none, such as a filtered one."""
    finish_reason: str
    """Why it ended, in the service's word: ``stop``, ``length``, ``content_filter``, …; ``refusal`` for a refusal."""
    tokens: dict[str, int]
    """Tokens by kind, as the service counted them: ``prompt``, ``completion`` and, where told, the ``reasoning`` among
    the completion's and the ``cached`` among the prompt's; empty where it did not count."""
    cost: float | None
    """US dollars by litellm's price list; None where the price or the number of tokens is unknown, never 0 for that."""
    seconds: float = 0.0
    """From the first request to the answer, waits included."""
    retries: int = 0
    """Requests that failed before this answer."""
    cut: int = 0
    """Characters cut off at the end, beyond `MAX_REPLY`."""
    cached: bool = False
    """Whether it comes from a cache of replies and was not paid for now."""


def read_answer(answer: Any, priced: bool) -> Completion | Fault:
    """Return the completion in litellm's ``answer``, or what is wrong with it.

    Args:
        answer: a ``ModelResponse``.
        priced: whether the price of the model is known; litellm takes an unknown one for 0 now and then.
    """
    choices = getattr(answer, "choices", None)
    if not choices:
        return Fault("the answer holds no choice", passing=True)
    text, finish_reason = _text(choices[0])
    if not isinstance(text, str):
        return Fault(f"the answer holds {type(text).__name__} where text belongs", passing=True)
    tokens = _tokens(getattr(answer, "usage", None))
    cost = getattr(answer, "_hidden_params", {}).get("response_cost") if priced and tokens else None
    return Completion(text[:MAX_REPLY], finish_reason, tokens, cost, cut=max(0, len(text) - MAX_REPLY))


def _text(choice: Any) -> tuple[Any, str]:
    message = choice.message
    finish_reason = _also(choice).get("native_finish_reason") or choice.finish_reason or ""
    refusal = _also(message).get("refusal")
    if not message.content and refusal:
        return refusal, "refusal"
    return message.content or "", str(finish_reason)


def _also(part: Any) -> Mapping[str, Any]:
    """Return what litellm keeps beside OpenAI's fields."""
    found: Mapping[str, Any] = getattr(part, "provider_specific_fields", None) or {}
    return found


def _tokens(usage: Any) -> dict[str, int]:
    counted = {"prompt": getattr(usage, "prompt_tokens", 0), "completion": getattr(usage, "completion_tokens", 0)}
    if not any(counted.values()):
        return {}  # litellm writes zeros where the service counted nothing
    for kind, (group, name) in _DETAILS.items():
        number = getattr(getattr(usage, group, None), name, None)
        if number is not None:
            counted[kind] = number
    return {kind: int(number or 0) for kind, number in counted.items()}
