"""The paper behind a document, and the support for each of its statements."""

from __future__ import annotations

import datetime
from operator import not_
from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from inquitree_gym.trees.fields import CLEAN, MAX_TEXT, FrozenModel, Text

GENERATED = "generated:"
"""Start of the address of a source that was made up together with the tree."""
SOURCE_PATTERN = r"^S\d{1,2}$"
FACT_PATTERN = r"^[FMB]\d{1,2}$"
DATE_PATTERN = r"^\d{4}-\d{2}-\d{2}$"
DOI_PATTERN = r"^$|^10\.\d{4,9}/\S+$"

SourceId = Annotated[str, Field(pattern=SOURCE_PATTERN)]
FactId = Annotated[str, Field(pattern=FACT_PATTERN)]


class PublicationDate(FrozenModel):
    """Publication date of a paper, with its precision."""

    date: str = Field(pattern=DATE_PATTERN)
    """ISO date; the first day of the period if the precision is month or year."""
    precision: Literal["day", "month", "year"]

    @model_validator(mode="after")
    def _is_a_date(self) -> PublicationDate:
        try:
            datetime.date.fromisoformat(self.date)
        except ValueError as error:
            raise PydanticCustomError("no_date", "'{date}' is not a calendar date", {"date": self.date}) from error
        return self

    @property
    def written(self) -> str:
        """The date at its precision: ``2024-10-03``, ``2024-10`` or ``2024``."""
        return self.date[: {"day": 10, "month": 7, "year": 4}[self.precision]]


class Paper(FrozenModel):
    """The paper behind the tree."""

    title: Text
    authors: tuple[Text, ...] = Field(min_length=1)
    journal: Text
    year: int = Field(ge=1600, le=2200)
    published: PublicationDate
    doi: Annotated[str, Field(pattern=DOI_PATTERN, max_length=300), CLEAN]
    """Digital object identifier without resolver, or an empty string."""
    licence: Text


class Source(FrozenModel):
    """A public source of the facts, by its address."""

    id: SourceId
    address: Text
    what: Text


Strength = Literal["full_text", "released_material", "recomputed", "abstract", "secondary", "unconfirmed"]
"""Directness of the support for a statement, strongest first."""


class Support(FrozenModel):
    """Sources of the statement of one node."""

    node: Text
    sources: tuple[SourceId, ...]
    facts: tuple[FactId, ...] = ()
    """Ids in the paper's fact sheet: F for findings, M for methods, B for background."""
    strength: Strength
    note: Annotated[str, Field(max_length=MAX_TEXT), CLEAN] = ""


Tier = Literal["A", "B", "C"]
"""Evidence behind a tree: A the full text, B the abstract with data or code, C the abstract."""


class Provenance(FrozenModel):
    """Sources of the facts, and the support for each node."""

    tier: Tier | None = Field(default=None, exclude_if=not_)
    """Evidence tier of the whole tree; not written if it is None."""
    sources: tuple[Source, ...] = ()
    support: tuple[Support, ...] = ()
