"""What judging has taken."""

from __future__ import annotations

from typing import NamedTuple

from inquitree_gym.llm import Completion, Usage


class Spent(NamedTuple):
    """What rulings took; tokens and dollars of replies that were paid for now."""

    asked: int = 0
    """Replies that were paid for."""
    cached: int = 0
    """Replies that had been paid for before."""
    failed: int = 0
    """Questions without an answer that can be used."""
    unread: int = 0
    """Verdicts that no answer gave in a form that can be read, one per item and question."""
    skipped: int = 0
    """Questions that were not asked, because the budget was used up."""
    tokens: int = 0
    """As the service counted them, prompt and completion."""
    dollars: float = 0.0
    """Of the replies whose price is known."""
    unpriced: int = 0
    """Replies of unknown price: the dollars are then a lower bound."""
    uncounted: int = 0
    """Replies whose tokens the service did not count: the tokens are then a lower bound."""

    @classmethod
    def on(cls, completion: Completion) -> Spent:
        """Return what one reply took."""
        paid = Usage.of(completion)
        return cls(
            asked=paid.replies,
            cached=int(completion.cached),
            tokens=paid.tokens,
            dollars=paid.cost or 0.0,
            unpriced=paid.unpriced,
            uncounted=paid.uncounted,
        )

    def __add__(self, other: object) -> Spent:
        """Sum field by field."""
        if not isinstance(other, Spent):
            return NotImplemented
        return Spent._make(mine + theirs for mine, theirs in zip(self, other, strict=True))
