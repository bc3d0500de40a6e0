"""Gold answers of the four kinds of tasks, and the forms in which answers are written (SciExplore, Figs. 14–17).

They need no library: a task of anybody's own can be written down with them and graded.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

MAX_PARTS = 4
"""Most pairs that the answer of a T1 task lists."""
Text = Annotated[str, Field(min_length=1)]


class Frozen(BaseModel):
    """Base of what is kept of a task and its grade: frozen, and without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Part(Frozen):
    """One part of an answer: an entity, a number, or an entity with its number."""

    entity: str = ""
    aliases: tuple[Text, ...] = ()
    """Other names of the entity."""
    number: float | None = None
    tolerance: float = Field(default=0.0, ge=0.0)
    """Allowed difference from ``number``, absolute and in its unit. 0 is equality of values."""
    unit: str = ""
    """Unit of ``number``. Empty for a pure number."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.entity and self.number is None:
            raise ValueError("a part must have an entity or a number, got neither. Give one.")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The entity and its aliases. Empty for a bare number."""
        return (self.entity, *self.aliases) if self.entity else ()

    def written(self) -> str:
        """Return the part as an answer writes it."""
        number = "" if self.number is None else f"{self.number:.15g} {self.unit}".strip()
        return f"{self.entity}: {number}" if self.entity and number else self.entity or number


class AnswerGold(Frozen):
    """Gold of T1 and T2: every part must be right, and none may be extra."""

    kind: Literal["T1", "T2"]
    parts: tuple[Part, ...] = Field(min_length=1, max_length=MAX_PARTS)

    def written(self) -> str:
        """Return the answer in the form that the task asks for."""
        return "; ".join(part.written() for part in self.parts)


class Work(Frozen):
    """A work that a text cites. What is empty or None is not asked of a citation."""

    authors: tuple[Text, ...] = Field(min_length=1)
    """Names such as "Ada Osk" or "Osk, A.". Citations are compared by the surname of the first."""
    title: Text
    venue: str = ""
    year: int | None = None
    unique: bool = False
    """True if the library has no other work of this first author and year, so that they name it without a title."""

    def written(self) -> str:
        """Return the work as "authors. title. venue. year." says."""
        return " ".join(f"{part}." for part in (", ".join(self.authors), self.title, self.venue, self.year) if part)


class Slot(Frozen):
    """A place ``[ref.i]`` of a text, with the works that belong there."""

    number: int = Field(ge=1)
    works: tuple[Work, ...] = Field(min_length=1)


class CitationGold(Frozen):
    """Gold of T3: the works of every slot."""

    kind: Literal["T3"] = "T3"
    slots: tuple[Slot, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _numbers_differ(self) -> Self:
        numbers = [slot.number for slot in self.slots]
        if len(set(numbers)) < len(numbers):
            raise ValueError(f"slots must have different numbers, got {numbers}. Merge the works of one slot.")
        return self

    def written(self) -> str:
        """Return the answer in the form that the task asks for: one line per work."""
        return "\n".join(f"[ref.{slot.number}: {work.written()}]" for slot in self.slots for work in slot.works)


class TableGold(Frozen):
    """Gold of T4: rows of cells under the asked headers. The first column is the key."""

    kind: Literal["T4"] = "T4"
    headers: tuple[Text, ...] = Field(min_length=2)
    rows: tuple[tuple[str, ...], ...] = Field(min_length=1)
    """Cells as text, one per header. Empty where gold has no value; such a cell is not counted."""
    units: dict[str, str] = {}
    """Unit of the bare numbers of a column, by header. A header such as "Intensity (mA)" names its own."""
    tolerances: dict[str, Annotated[float, Field(ge=0.0)]] = {}
    """Allowed difference of the numbers of a column, by header, absolute. Without one, a thousandth (A.9)."""
    vocabularies: dict[str, tuple[Text, ...]] = {}
    """Closed vocabulary of a column, by header. A "-" is a value only where it stands here."""
    aliases: dict[str, tuple[Text, ...]] = {}
    """Other ways to write a cell, by the cell."""

    @model_validator(mode="after")
    def _is_a_table(self) -> Self:
        width = len(self.headers)
        if any(len(row) != width for row in self.rows):
            raise ValueError(f"every row must have {width} cells, one per header. Write empty cells as ''.")
        keys = [row[0] for row in self.rows]
        if not all(keys) or len(set(keys)) < len(keys):
            raise ValueError("every row must have a key of its own in its first cell. Merge rows with one key.")
        if unknown := {*self.units, *self.tolerances, *self.vocabularies} - set(self.headers):
            raise ValueError(
                f"units, tolerances and vocabularies must be by header, got {sorted(unknown)}. Correct them."
            )
        for header, cell in (
            (header, cell) for row in self.rows for header, cell in zip(self.headers, row, strict=True)
        ):
            if cell in {"-", "–"} and cell not in self.vocabularies.get(header, ()):
                raise ValueError(f"'{cell}' must be in the vocabulary of '{header}'. Write '' where no value is known.")
        return self

    def written(self) -> str:
        """Return the answer in the form that the task asks for: a Markdown table."""
        rows = (self.headers, ("---",) * len(self.headers), *self.rows)
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


Gold = Annotated[AnswerGold | CitationGold | TableGold, Field(discriminator="kind")]
"""Gold of a task of any kind."""
