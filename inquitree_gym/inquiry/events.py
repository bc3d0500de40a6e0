"""Records in the log of an inquiry: the outcome of each action, and what read the actions."""

from __future__ import annotations

from operator import not_
from typing import Any, Self

from pydantic import Field

from inquitree_gym.log.jsonl import JsonlRecord
from inquitree_gym.log.records import Setup, SheetRecord, TurnEvent


class EmbedderRef(JsonlRecord):
    """Identity of an embedder."""

    name: str
    digest: str


class InquirySetup(Setup):
    """Embedder and reader of the actions."""

    embedder: EmbedderRef
    world: str = "actual"
    """Id of the world. Never told to an agent."""
    reader: dict[str, Any] | None = None
    """Configuration of the reader that was asked about actions. None where the embedder read them."""


class ReadingRecord(JsonlRecord):
    """Interpretation of an action."""

    candidate: str | None
    """Id of the most similar candidate."""
    similarity: float
    decision: str
    margin: float | None
    top: tuple[tuple[str, float], ...]
    repeats: bool = Field(default=False, exclude_if=not_)
    """True if the action repeats a text shown before, and so earns no credit for its candidate."""


class InquiryEvent(TurnEvent):
    """Outcome of an action: its ``kind`` is ``result``, ``subtopic_hint``, …, its ``state`` the phase."""

    reading: ReadingRecord
    node: str | None
    """Id of the subtopic, study or conclusion item in the next observation."""
    fake: int
    """Result shown: 0 for the true one, i for the i-th fake."""
    accepted: bool
    forced: bool
    hint_level: int
    """Level of the hint in the next observation. 0 for none."""
    limit: bool
    """True if this action reached the turn limit."""
    reason: str
    """Reason for a rejected action. ``none`` otherwise."""
    decision: str
    """The decision as taken."""
    wording: int = Field(default=0, exclude_if=not_)
    """Wording of the result: 0 as the tree has it, which is not written, i for its i-th rewording."""
    sheet: SheetRecord | None = Field(default=None, exclude_if=lambda sheet: sheet is None)
    """Answers to the exam, at its end."""
    credit: float | None = Field(default=None, exclude_if=lambda credit: credit is None)
    """Earned credit of the result that is shown, in [0, 1]. Not written where none is."""

    def matches(self, other: Self) -> bool:
        """Tell whether a replay read the action alike, up to `SIMILARITY_TOLERANCE`, with the same outcome."""
        from inquitree_gym.embeddings.protocol import SIMILARITY_TOLERANCE

        mine, theirs = self.reading, other.reading
        alike = (mine.candidate, mine.decision) == (theirs.candidate, theirs.decision)
        near = abs(mine.similarity - theirs.similarity) <= SIMILARITY_TOLERANCE
        return alike and near and self.model_copy(update={"reading": theirs}) == other


EVENT = InquiryEvent
SETUP = InquirySetup
