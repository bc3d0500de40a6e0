"""Field types and base class of the documents: trees, papers and projection tasks."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Mapping
from operator import not_
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

CANARY = "inquitree-gym benchmark data; keep out of training corpora; canary 5b0e0f8c-6a6e-4d0c-9d39-0f5c2b8a7e41"
"""Text in every shipped document and every log by which leaked data can be found."""
MAX_TEXT = 4_000
"""Maximum length of a text, in characters."""
HINT_LEVELS = 4
"""H: hints per ladder, level 1 vague to level 4 explicit."""
ID_PATTERN = r"^[a-z][a-z0-9_.-]{0,63}$"

_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"  # control codes, surrogates, non-characters
    r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # line separators and bidirectional controls
    r"\ufeff\U000e0000-\U000e007f]"  # text that is invisible to people but not to models
)


def _clean(text: str) -> str:
    if text != text.strip():
        raise PydanticCustomError("untidy_text", "text starts or ends with white space; strip it")
    if found := _CONTROL.search(text):
        message = "text holds the control character {code}; remove it"
        raise PydanticCustomError("control_character", message, {"code": f"U+{ord(found.group()):04X}"})
    return text


CLEAN = AfterValidator(_clean)
"""Validator of texts: no control characters, no white space at either end. It runs after the bounds are checked."""
Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT), CLEAN]
Identifier = Annotated[str, Field(pattern=ID_PATTERN)]
Canary = Annotated[str, Field(min_length=1, max_length=200), CLEAN]


class FrozenModel(BaseModel):
    """Base of every part of a document: frozen, strict, without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a validated copy with some fields replaced. ``deep`` has no effect on frozen values.

        Raises:
            ValidationError: a new value is invalid.
        """
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate(fields | dict(update or {}))


class Node(FrozenModel):
    """A node whose text is matched with actions or conclusions."""

    id: Identifier
    text: Text


def document_digest(document: FrozenModel, *, exclude: set[str] | None = None) -> str:
    """Return the SHA-256 of the canonical form of a document, in hex, without the fields in ``exclude``."""
    return written_digest(document.model_dump(mode="json", exclude=exclude))


def written_digest(fields: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the fields of a document as they are written, in hex, whatever their order."""
    written = json.dumps(fields, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(written.encode()).hexdigest()


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
    """ISO date. The first day of the period if the precision is month or year."""
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
    """Evidence tier of the whole tree. Not written if it is None."""
    sources: tuple[Source, ...] = ()
    support: tuple[Support, ...] = ()
