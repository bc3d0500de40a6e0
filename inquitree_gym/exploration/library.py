"""Libraries as data: databases with their columns, records, papers, and documents of pages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pydantic import Field

from inquitree_gym.trees.fields import CANARY, FrozenModel

PAGE = 2_000
"""Characters of a page at most."""
NAME = "name"
"""Column of every database that holds the name of a record."""
PAPERS = "papers"
"""Name of the facts of papers, which no LOOKUP reads."""
METHOD = ("tool_kind", "condition_kind")
"""Columns of papers that have the broader words of their method."""
HEAD = ("year", "venue", "figures", "references")
"""Columns of papers that the head of their first page shows."""
CLAIM = ("quantity", "condition", "direction")
"""Columns of papers that have what they report of a compound."""
JOIN = "; "
"""Sign between the values of a column that has several."""

Value = float | int | str | None
"""Value of a cell in the first unit of its column. None for one that is missing. A link holds a key."""
Record = Mapping[str, Value]
Place = tuple[str, int]
"""Id of a document, and number of one of its pages from 1."""


class LibrarySpec(FrozenModel):
    """Arguments that determine a library."""

    seed: int = Field(ge=0, lt=2**63)
    """Even for training, odd for tests, as for synthetic trees."""
    world: int = Field(default=0, ge=0)
    """0 for the relations as drawn. World n has relation n turned around."""
    size: int = Field(default=200, ge=100, le=20_000)
    """Number of documents."""
    version: Literal[1] = 1
    """Version of the generator."""

    @property
    def name(self) -> str:
        """Name in logs."""
        return f"library-s{self.seed}-w{self.world}-n{self.size}"


class Column(FrozenModel):
    """One column of a database."""

    name: str
    kind: Literal["number", "year", "category", "link"]
    labels: tuple[str, ...]
    """Headings on pages. Each page draws one."""
    asks: str
    """Verb of a question about it."""
    low: int = 0
    high: int = 0
    """Range of a number in steps of 10^-``decimals``, or of a year."""
    decimals: int = 0
    units: tuple[tuple[str, float], ...] = ()
    """Units with their factors. The database keeps numbers in the first."""
    choices: tuple[str, ...] = ()
    to: str = ""
    """Database that a link leads to."""

    @property
    def unit(self) -> str:
        """Unit of the database. Empty for none."""
        return self.units[0][0] if self.units else ""


class Database(FrozenModel):
    """Schema of one database."""

    title: str
    noun: str
    key: str
    """Format of its keys."""
    weight: int
    """Share of the records of a library."""
    name: str
    """Form of the names of its records."""
    columns: tuple[Column, ...]

    def column(self, name: str) -> Column | None:
        """Return the column with a name, or None."""
        return next((column for column in self.columns if column.name == name), None)

    @property
    def links(self) -> tuple[Column, ...]:
        """The columns that lead to other databases."""
        return tuple(column for column in self.columns if column.kind == "link")


@dataclass(frozen=True, slots=True)
class Document:
    """A document of pages: a record of a database, or a paper."""

    id: str
    title: str
    pages: tuple[str, ...]


@dataclass(frozen=True)
class PaperFacts:
    """The facts of one paper. Only documents say them to an agent."""

    id: str
    title: str
    authors: tuple[str, ...]
    """Keys in the directory of scholars."""
    venue: str
    year: int
    science: str
    factor: str
    compound: str
    """Key of the factor in the index of compounds."""
    quantity: str
    thing: str
    tool: str
    tool_kind: str
    """Broader words for the tool, as glossaries have them."""
    condition: str
    condition_kind: str
    direction: Literal[-1, 1]
    change: int
    """Size of the effect in percent."""
    enrolled: int
    completed: int
    """Number of samples that the result stands on."""
    abstract_number: int
    """Number that the abstract gives. In three of ten papers that of the samples enrolled."""
    figures: int
    references: int
    cites: tuple[str, ...]
    """Ids of the papers of this library that it cites."""
    places: Mapping[str, Place]
    """Page on which each fact stands, by field."""

    def record(self, names: Sequence[str]) -> Record:
        """Return the facts that a query can ask for, as a record. ``names`` are those of its authors."""
        asked: dict[str, Value] = {NAME: self.title, "first_author": names[0]}
        asked |= {"authors": JOIN.join(names), "surnames": JOIN.join(name.split()[-1] for name in names)}
        return asked | {each: getattr(self, each) for each in (*HEAD, *METHOD, *CLAIM, "compound")}


@dataclass(frozen=True, eq=False)
class Library:
    """A library: databases with records, papers, and the documents that show them."""

    spec: LibrarySpec
    databases: Mapping[str, Database]
    records: Mapping[str, Mapping[str, Record]]
    """Records by database and key."""
    papers: Mapping[str, PaperFacts]
    documents: Mapping[str, Document]
    """All documents by id, in order. The id of a record is its key."""
    canary: str = CANARY

    @cached_property
    def facts(self) -> Mapping[str, Mapping[str, Record]]:
        """Records by database and key, papers included: all that a query can ask for."""
        people = self.records["people"]
        named = {key: [str(people[each][NAME]) for each in paper.authors] for key, paper in self.papers.items()}
        return {**self.records, PAPERS: {key: paper.record(named[key]) for key, paper in self.papers.items()}}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all documents and facts, in hex."""
        facts = {name: dict(records) for name, records in self.records.items()}
        papers = [(paper.id, paper.direction, paper.completed, paper.abstract_number) for paper in self.papers.values()]
        pages = [(document.id, document.title, *document.pages) for document in self.documents.values()]
        whole = json.dumps([self.spec.model_dump(), self.canary, facts, papers, pages], ensure_ascii=False)
        return hashlib.sha256(whole.encode()).hexdigest()


def number_text(value: float, decimals: int = 0) -> str:
    """Return a number without trailing zeros.

    >>> number_text(12.50, 2), number_text(300.0)
    ('12.5', '300')
    """
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def paged(text: str, most: int = PAGE) -> tuple[str, ...]:
    """Return a text as pages, cut at the last line end or blank before the limit.

    >>> paged("one two three", 8)
    ('one two', 'three')
    """
    pages = []
    while len(text) > most:
        cut = max(text.rfind("\n", most // 2, most + 1), 0) or max(text.rfind(" ", 1, most + 1), 0) or most
        pages.append(text[:cut].rstrip())
        text = text[cut:].lstrip()
    return (*pages, text)
