"""What asking may take, in money, tokens and time, and what it has taken."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from inquitree_gym.errors import BudgetError, OptionError
from inquitree_gym.llm.middleware import Around, Way, innermost
from inquitree_gym.llm.model import Chat, Clock, Message, SystemClock
from inquitree_gym.llm.response import Completion


class Paid(NamedTuple):
    """What was paid for."""

    replies: int = 0
    tokens: int = 0
    """As the service counted them, prompt and completion."""
    dollars: float = 0.0
    """Of the replies whose price is known."""
    unpriced: int = 0
    """Replies of unknown price: the dollars are then a lower bound."""
    uncounted: int = 0
    """Replies whose tokens the service did not count: the tokens are then a lower bound."""

    @classmethod
    def of(cls, completion: Completion) -> Paid:
        """Return what a reply took; nothing where it comes from a cache."""
        if completion.cached:
            return cls()
        cost, tokens = completion.cost, completion.tokens
        counted = tokens.get("prompt", 0) + tokens.get("completion", 0)
        return cls(1, counted, cost or 0.0, unpriced=int(cost is None), uncounted=int(not tokens))

    def __add__(self, other: object) -> Paid:
        """Sum field by field."""
        if not isinstance(other, Paid):
            return NotImplemented
        return Paid._make(mine + theirs for mine, theirs in zip(self, other, strict=True))


@dataclass(eq=False)
class Budget:
    """Caps on what one command takes, from when it is made. Threads and event loops may share it.

    Requests under way when a cap is reached are still paid.

    Raises:
        OptionError: a cap is no positive number.
    """

    max_cost: float | None = None
    """US dollars; None is no cap."""
    max_total_tokens: int | None = None
    """Tokens as the service counts them, prompt and completion; None is no cap."""
    max_seconds: float | None = None
    """Seconds of wall time; None is no cap."""
    clock: Clock = field(default_factory=SystemClock, repr=False)

    def __post_init__(self) -> None:
        for name in ("max_cost", "max_total_tokens", "max_seconds"):
            cap = getattr(self, name)
            if cap is not None and not cap > 0:
                raise OptionError(f"{name} is a number above 0, not {cap}; leave it out for no cap")
        self._paid = Paid()
        self._begun = self.clock.now()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle what is taken so far; another process has another clock."""
        return {**vars(self), "_begun": self.seconds, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        vars(self).update(state, _begun=state["clock"].now() - state["_begun"], _lock=threading.Lock())

    @property
    def paid(self) -> Paid:
        """What was paid for so far."""
        return self._paid

    @property
    def seconds(self) -> float:
        """Wall time so far."""
        return self.clock.now() - self._begun

    @property
    def reached(self) -> str | None:
        """Which cap is reached, or cannot be held for want of a price or a count, in words; None while none is."""
        paid = self._paid
        if self.max_cost is not None and paid.unpriced:
            return f"the cap of ${self.max_cost:g} cannot be held: {_replies(paid.unpriced)} came without a price"
        if self.max_cost is not None and paid.dollars >= self.max_cost:
            return f"the cap of ${self.max_cost:g} is reached: {_replies(paid.replies)} cost ${paid.dollars:.4f}"
        if self.max_total_tokens is not None and paid.uncounted:
            return (
                f"the cap of {self.max_total_tokens} tokens cannot be held: of {_replies(paid.uncounted)} the service "
                "counted none"
            )
        if self.max_total_tokens is not None and paid.tokens >= self.max_total_tokens:
            return f"the cap of {self.max_total_tokens} tokens is reached: {_replies(paid.replies)} took {paid.tokens}"
        if self.max_seconds is not None and self.seconds >= self.max_seconds:
            return f"the cap of {self.max_seconds:g} seconds is reached: {self.seconds:.0f} have passed"
        return None

    def check(self) -> None:
        """Do nothing while more may be asked.

        Raises:
            BudgetError: a cap is reached, or cannot be held.
        """
        if (reached := self.reached) is not None:
            raise BudgetError(
                f"{reached}; nothing more is asked. Run the same command again with a higher cap, or another one, to "
                "go on"
            )

    def pay(self, completion: Completion) -> None:
        """Count a reply."""
        with self._lock:
            self._paid += Paid.of(completion)


class Purse(Protocol):
    """What a `BudgetedChat` needs of a budget."""

    @property
    def max_cost(self) -> float | None:
        """See `Budget.max_cost`."""

    def check(self) -> None:
        """See `Budget.check`."""

    def pay(self, completion: Completion) -> None:
        """See `Budget.pay`."""


@runtime_checkable
class Priced(Protocol):
    """A chat whose price is known beforehand, or known to be unknown, as `ChatModel`'s is."""

    def price(self, prompt: int, completion: int) -> float | None:
        """Return the US dollars for so many tokens; None without a price."""


class BudgetedChat(Around):
    """Asks while no cap is reached.

    Raises:
        OptionError: the cost is capped and the price of the model unknown. A chat without a `Priced.price` is believed
            until its first reply without a cost.
    """

    def __init__(self, chat: Chat, budget: Purse) -> None:
        """Pay for the replies of ``chat`` out of ``budget``."""
        super().__init__(chat)
        self.budget = budget
        inside = innermost(chat)
        if budget.max_cost is not None and isinstance(inside, Priced) and inside.price(0, 0) is None:
            raise OptionError(
                f"litellm knows no price for '{chat.config['model']}', so a cap on its cost cannot be held; cap the "
                "tokens instead"
            )

    async def _through(self, way: Way, messages: Sequence[Message], seed: int | None) -> Completion:
        self.budget.check()
        completion = await way.ask(messages, seed)
        self.budget.pay(completion)
        return completion


def _replies(number: int) -> str:
    return f"{number} repl{'y' if number == 1 else 'ies'}"
