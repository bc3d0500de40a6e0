"""Chat messages, completions and their usage, and the base class of chat middleware."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol, TypeVar

from inquitree_gym.errors import ServiceError
from inquitree_gym.text_limits import strip_thinking

T = TypeVar("T")

Message = dict[str, str]
"""``role`` (``system``, ``user`` or ``assistant``) and ``content``."""

BYTES_PER_TOKEN = 4
"""Bytes of UTF-8 per estimated token, the same for every model, so that a replay drops the same messages."""
TOKENS_PER_MESSAGE = 4
"""Estimated tokens added for each message."""
End = Literal["complete", "cut", "context", "filtered", "refused"]
"""End of a reply: complete, cut off at the limit of its tokens, of a request too long, filtered, or refused."""
_ENDS: dict[End, str] = {
    "cut": "length max_tokens max_output_tokens error_limit incomplete",
    "context": "model_length model_context_window_exceeded context_length_exceeded context_window_exceeded",
    "filtered": (
        "content_filter content_filtered content_policy_violation guardrail_intervened safety recitation blocklist "
        "prohibited_content spii error_toxic"
    ),
    "refused": "refusal",
}
_END_OF = {word: end for end, words in _ENDS.items() for word in words.split()}
TRIES = 2
"""Requests for a whole reply, if its tokens are used up before."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply of a chat model."""

    text: str
    """The reply. Empty if the service returned none, for example because it was filtered."""
    finish_reason: str
    """The service's word: ``stop``, ``length``, ``content_filter``, …. ``refusal`` for a refusal."""
    tokens: dict[str, int]
    """Tokens by kind as counted by the service: ``prompt``, ``completion`` and, if reported, ``reasoning`` (part of the
    completion) and ``cached`` (part of the prompt). Empty if the service did not count."""
    cost: float | None
    """US dollars by litellm's price list. None if the price or the number of tokens is unknown."""
    seconds: float = 0.0
    """Time from the first request to the reply, waits included."""
    retries: int = 0
    """Failed requests before this reply."""
    cut: int = 0
    """Characters cut off the end, beyond `MAX_REPLY`."""
    cached: bool = False
    """True for a reply from a `ReplyCache`, which costs nothing."""

    def __post_init__(self) -> None:
        """Check the counts. Raise `ServiceError` for one that is negative, NaN, infinite or no number."""
        _check_amounts({"cost": self.cost, "seconds": self.seconds, **self.tokens})

    @property
    def used_up(self) -> bool:
        """See `used_up`."""
        return used_up(self.text, self.finish_reason)

    @property
    def end(self) -> End:
        """See `end_of`."""
        return end_of(self.finish_reason)

    def is_torn(self, finished: Callable[[str], bool] | None = None) -> bool:
        """Tell whether it was cut before any text, or before ``finished`` is true of its text."""
        return self.used_up or (self.end == "cut" and finished is not None and not finished(self.text))


class _Metered(Protocol):
    """A reply with its counts: a `Completion`, or a reply in a log."""

    @property
    def tokens(self) -> Mapping[str, int] | None: ...
    @property
    def cost(self) -> float | None: ...
    @property
    def seconds(self) -> float: ...
    @property
    def cached(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, cost and time of replies. Records add up with ``+``. An unknown number is None, never 0."""

    replies: int = 0
    """Replies that were paid for."""
    cached: int = 0
    """Replies from a cache, which add nothing to the other fields."""
    prompt_tokens: int | None = None
    """Tokens of the requests as counted by the service. None if none was counted."""
    completion_tokens: int | None = None
    """Tokens of the replies, reasoning included. None if none was counted."""
    reasoning_tokens: int | None = None
    """Completion tokens that were reasoning. None if no service named them."""
    cost: float | None = None
    """US dollars over the replies with a known price. None if there is none."""
    unpriced: int = 0
    """Replies without a known price. With any, ``cost`` is a lower bound."""
    uncounted: int = 0
    """Replies without counted tokens. With any, the tokens are a lower bound."""
    seconds: float = 0.0
    """Time from the first request to the reply, waits included, summed over the replies."""
    failed: int = 0
    """Requests without a usable reply."""
    skipped: int = 0
    """Requests that were not made because a cap was reached."""

    def __post_init__(self) -> None:
        """Check the sums. See `Completion`."""
        _check_amounts({each.name: getattr(self, each.name) for each in fields(self)})

    @classmethod
    def of(cls, reply: _Metered) -> Usage:
        """Return the usage of one reply, a `Completion` or a `log.Reply`."""
        if reply.cached:
            return cls(cached=1)
        tokens = reply.tokens or {}
        return cls(
            replies=1,
            prompt_tokens=tokens.get("prompt"),
            completion_tokens=tokens.get("completion"),
            reasoning_tokens=tokens.get("reasoning"),
            cost=reply.cost,
            unpriced=int(reply.cost is None),
            uncounted=int(not tokens),
            seconds=reply.seconds,
        )

    @property
    def tokens(self) -> int:
        """Counted tokens, prompt and completion. See ``uncounted``."""
        return (self.prompt_tokens or 0) + (self.completion_tokens or 0)

    def __add__(self, other: Usage) -> Usage:
        """Return the sum, field by field."""
        names = (each.name for each in fields(self))
        return Usage(**{name: _sum(getattr(self, name), getattr(other, name)) for name in names})

    def __mul__(self, number: int) -> Usage:
        """Return ``number`` times this usage."""
        totals: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        for name, value in totals.items():
            totals[name] = None if value is None else value * number
        return Usage(**totals)


def is_amount(value: object) -> bool:
    """Return whether a value is a finite number from 0, and a plain one, as JSON has it."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _check_amounts(amounts: Mapping[str, object]) -> None:
    for name, amount in amounts.items():
        if amount is not None and not is_amount(amount):
            raise ServiceError(
                f"the {name} of a reply must be a finite number from 0, got {amount!r:.80}. Mend the chat or judge."
            )


class Chat(Protocol):
    """Anything that answers messages: a `ChatModel`, a model of your own, or either inside `ChatMiddleware`."""

    @property
    def config(self) -> dict[str, Any]:
        """Settings that determine the replies, for the log: plain values, no key. ``model`` is the model's name."""

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
        self.chat = chat

    @property
    def config(self) -> dict[str, Any]:
        """The settings of the wrapped chat."""
        return self.chat.config

    @abstractmethod
    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        """Return the reply of the wrapped chat. See `Chat.complete`."""


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


def end_of(finish_reason: str) -> End:
    """Return the end of a reply that a service's word means. An unknown word is a complete reply's.

    >>> end_of("FinishReason.MAX_TOKENS"), end_of("model_length"), end_of("end_turn")
    ('cut', 'context', 'complete')
    """
    return _END_OF.get(finish_reason.rpartition(".")[2].strip().casefold(), "complete")


def used_up(text: str, finish_reason: str) -> bool:
    """Return whether a reply ended at the limit of its tokens before any text, apart from reasoning.

    >>> used_up("", "length"), used_up("", "stop"), used_up("<think>Perhaps", "length"), used_up("Perhaps", "length")
    (True, False, True, False)
    """
    return end_of(finish_reason) == "cut" and not strip_thinking(text).strip()


async def complete_with_text(
    chat: Chat,
    messages: Sequence[Message],
    *,
    seed: int | None = None,
    keep: Callable[[Completion], object] = lambda completion: None,
    finished: Callable[[str], bool] | None = None,
) -> Completion:
    """Return the reply to ``messages``. Ask again, up to `TRIES` requests, if it `is_torn` by ``finished``.

    ``keep`` is called with every paid reply. Raise `ServiceError` if all are torn, or the request is too long.
    """
    for _ in range(TRIES):
        completion = await chat.complete(messages, seed=seed)
        keep(completion)
        if completion.end == "context":
            raise ServiceError(
                f"the request is too long for the model '{chat.config.get('model')}', whose answer ended with "
                f"'{completion.finish_reason}'; give the agent a smaller context (--context), or the model a larger "
                "window, and run the same command again",
                status=413,
            )
        if not completion.is_torn(finished):
            return completion
    limit, reasoning = chat.config.get("max_tokens"), completion.tokens.get("reasoning")
    spent = "its tokens" if limit is None else f"its {limit} tokens"
    thought = f" ({reasoning} of them for reasoning)" if reasoning else ""
    missed = "any text" if completion.used_up else "its move was finished"
    raise ServiceError(
        f"the model '{chat.config.get('model')}' was asked {TRIES} times and used up {spent}{thought} before "
        f"{missed}; "
        "raise max_tokens (--reply-tokens) or lower the reasoning effort, and run the same command again",
        transient=True,
    )


async def all_results(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently. The first error cancels the others and is raised alone."""
    from asyncio import TaskGroup

    try:
        async with TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def _sum(one: Any, other: Any) -> Any:
    return one if other is None else other if one is None else one + other
