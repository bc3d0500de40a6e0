"""Caps on the usage of chat models."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from inquitree_gym.errors import BudgetError, OptionError, plural
from inquitree_gym.llm.chat import Chat, ChatMiddleware, Completion, Message, Usage, innermost
from inquitree_gym.llm.retry import SystemClock


@dataclass(eq=False)
class Budget:
    """Caps on the usage of one command, counted from its creation. Safe to share between threads and event loops.

    Requests in flight when a cap is reached are still paid.

    Raises:
        OptionError: a cap is not above 0.
    """

    max_cost: float | None = None
    """US dollars. None for no cap."""
    max_total_tokens: int | None = None
    """Prompt and completion tokens as counted by the service. None for no cap."""
    max_seconds: float | None = None
    """Seconds of wall-clock time. None for no cap."""
    clock: SystemClock = field(default_factory=SystemClock, repr=False)

    def __post_init__(self) -> None:
        for name in ("max_cost", "max_total_tokens", "max_seconds"):
            cap = getattr(self, name)
            if cap is not None and not cap > 0:
                raise OptionError(f"{name} must be a number above 0, got {cap}; leave it out for no cap")
        self._usage = Usage()
        self._started = self.clock.now()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the time used so far, since another process has another clock."""
        return {**vars(self), "_started": self.seconds, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Continue with the time used so far."""
        vars(self).update(state, _started=state["clock"].now() - state["_started"], _lock=threading.Lock())

    @property
    def usage(self) -> Usage:
        """The usage so far."""
        return self._usage

    @property
    def seconds(self) -> float:
        """Wall-clock time so far."""
        return self.clock.now() - self._started

    @property
    def exceeded(self) -> str | None:
        """The first cap that is reached, or cannot be enforced because a price or count is unknown. None if none is."""
        return self._cost_exceeded() or self._tokens_exceeded() or self._time_exceeded()

    def check(self) -> None:
        """Raise if a cap is reached.

        Raises:
            BudgetError: a cap is reached or cannot be enforced.
        """
        if (exceeded := self.exceeded) is not None:
            raise BudgetError(
                f"{exceeded}; no further request is made. Run the same command again with a higher cap, or another "
                "one, to continue"
            )

    def add(self, completion: Completion) -> None:
        """Count a reply."""
        with self._lock:
            self._usage += Usage.of(completion)

    def _cost_exceeded(self) -> str | None:
        used, cap = self._usage, self.max_cost
        if cap is None or (not used.unpriced and (used.cost or 0.0) < cap):
            return None
        if used.unpriced:
            return f"the cap of ${cap:g} cannot be enforced: {plural(used.unpriced, 'reply')} came without a price"
        return f"the cap of ${cap:g} is reached: {plural(used.replies, 'reply')} cost ${used.cost:.4f}"

    def _tokens_exceeded(self) -> str | None:
        used, cap = self._usage, self.max_total_tokens
        if cap is None or (not used.uncounted and used.tokens < cap):
            return None
        if used.uncounted:
            replies = plural(used.uncounted, "reply")
            return f"the cap of {cap} tokens cannot be enforced: {replies} came without a count of tokens"
        return f"the cap of {cap} tokens is reached: {plural(used.replies, 'reply')} took {used.tokens}"

    def _time_exceeded(self) -> str | None:
        if self.max_seconds is None or self.seconds < self.max_seconds:
            return None
        return f"the cap of {self.max_seconds:g} seconds is reached: {self.seconds:.0f} have passed"


class SpendingCap(Protocol):
    """Interface of a `Budget` to a `BudgetedChat`. A run on several machines has one over the network."""

    @property
    def max_cost(self) -> float | None:
        """See `Budget.max_cost`."""

    def check(self) -> None:
        """See `Budget.check`."""

    def add(self, completion: Completion) -> None:
        """See `Budget.add`."""


@runtime_checkable
class Priced(Protocol):
    """A chat with a price list, such as `ChatModel`."""

    def price(self, prompt: int, completion: int) -> float | None:
        """Return US dollars for these numbers of tokens. None without a price."""


class BudgetedChat(ChatMiddleware):
    """Middleware that makes no request once a cap is reached."""

    def __init__(self, chat: Chat, budget: SpendingCap) -> None:
        """Count the replies of ``chat`` in ``budget``.

        Raises:
            OptionError: the cost is capped and the price of a `Priced` model unknown. Other models are trusted until
                their first reply without a cost.
        """
        super().__init__(chat)
        self.budget = budget
        model = innermost(chat)
        if budget.max_cost is not None and isinstance(model, Priced) and model.price(0, 0) is None:
            raise OptionError(
                f"litellm knows no price for '{chat.config['model']}', so a cap on its cost cannot be enforced; cap "
                "the tokens instead"
            )

    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        """Return the reply of the wrapped chat, and count it.

        Raises:
            BudgetError: a cap is reached.
        """
        self.budget.check()
        completion = await self.chat.complete(messages, seed=seed)
        self.budget.add(completion)
        return completion
