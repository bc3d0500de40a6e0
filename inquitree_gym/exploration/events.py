"""Records in the log of explorations: the tool of each turn, the page that it showed, and the grade of the answer."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from inquitree_gym.exploration.graders import Grade
from inquitree_gym.log.records import Setup, TurnEvent


class ExplorationEvent(TurnEvent):
    """Outcome of one action. Its ``kind`` is the tool, its ``state`` ``explore``, ``answer`` or ``end``."""

    kind: Literal["search", "open", "find", "lookup", "answer", "invalid"]
    fault: str = ""
    """Reason why the action brought nothing, as the agent was told."""
    shown: tuple[tuple[str, int], ...] = ()
    """Documents and numbers of the pages that were shown whole."""
    listed: tuple[str, ...] = ()
    """Documents that a SEARCH or a LOOKUP listed."""
    total: int = Field(default=0, ge=0)
    """Records of a LOOKUP, or passages of a FIND, those that were not listed included."""
    answer: str | None = None
    """The answer without its verb, in the last turn."""
    grade: Grade | None = None
    """Grade of the answer. None before, and where the judge could not grade it."""

    @property
    def unscored(self) -> bool:
        """True for an answer that the judge could not grade."""
        return self.answer is not None and self.grade is None


class ExplorationSetup(Setup):
    """The judge of the answer, and the source of documents."""

    judge: dict[str, Any]
    provider: dict[str, str | None]
    """Its name and digest."""
    repeatable: bool
    """False where the source has no digest, as the web."""


EVENT = ExplorationEvent
SETUP = ExplorationSetup
