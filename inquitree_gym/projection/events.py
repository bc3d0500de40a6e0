"""Records in the log of projections: the level of each turn, and the alignment of a projection or a sheet."""

from __future__ import annotations

from operator import not_
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from inquitree_gym.log.jsonl import JsonlRecord
from inquitree_gym.log.records import Setup, SheetRecord, TurnEvent, nan_to_none

Rating = Annotated[Annotated[float, Field(ge=-1, le=1)] | None, BeforeValidator(nan_to_none)]
"""Rating of two claims in [-1, 1]. None for a pair that was not rated. NaN is taken as None and written as null."""


class AlignmentRecord(JsonlRecord):
    """Claims of a projection, and their ratings against the M claims of the true outcome.

    All fields are empty if the judge could not find the claims.
    """

    analogous: tuple[str | None, ...]
    """Shape (M,): the projected claim that is analogous to each true claim. None for none."""
    extraneous: tuple[str, ...]
    """Shape (E,): extraneous claims, those that are analogous to no true claim."""
    pair_ratings: tuple[tuple[Rating, Rating], ...]
    """Shape (M, 2): ratings of the pairs in both orders. None if there is no analogous claim or no readable rating."""
    extra_ratings: tuple[tuple[tuple[Rating, Rating], ...], ...]
    """Shape (E, M, 2): ratings of each extraneous claim against every true claim."""
    f1: float | None = Field(ge=0, le=1)
    """F1 in [0, 1]. None for an unscored projection, whose reward is 0 and which reports count apart."""
    reasons: tuple[str, ...] = ()
    """Reasons of the pairs' ratings, one per true claim. Empty if the judge gives none."""

    @model_validator(mode="after")
    def _has_a_rating_for_every_pair(self) -> Self:
        claims = len(self.analogous)
        rows = [len(self.pair_ratings) - claims, *(len(ratings) - claims for ratings in self.extra_ratings)]
        if any(rows) or len(self.extra_ratings) != len(self.extraneous):
            raise ValueError("the ratings do not have one entry for each claim")
        return self


class ProjectionEvent(TurnEvent):
    """Outcome of one turn. ``state`` is that of the next: ``project``, ``sheet``, or ``end`` after the last level."""

    kind: Literal["projection", "sheet"] = "projection"
    """Kind of the action."""
    level: str
    """Level of the disclosure that the action answered."""
    judged: AlignmentRecord | None = Field(default=None, exclude_if=lambda judged: judged is None)
    """Alignment of a projection by the judge of the reward. Not written where none is asked."""
    sheet: SheetRecord | None = Field(default=None, exclude_if=lambda sheet: sheet is None)
    """Answers to a sheet: 0 for the true claim, i for its i-th contrary. Not written for a projection."""
    after_sheet: bool = Field(default=False, exclude_if=not_)
    """True for a projection after a sheet, which had shown the claims: the paper's figures leave it out."""

    @property
    def unscored(self) -> bool:
        """True if the judge gave no F1."""
        return self.judged is not None and self.judged.f1 is None


EVENT = ProjectionEvent
SETUP = Setup
