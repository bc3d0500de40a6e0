"""Tasks as data (``exploration/1``): question, machine-readable query, gold, evidence, and a path that finds it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from inquitree_gym.exploration.gold import Gold, Part
from inquitree_gym.exploration.library import LibrarySpec, Record
from inquitree_gym.trees.fields import CANARY, Canary, FrozenModel, Identifier, Text, document_digest

MAX_HOPS = 6
"""Records of a task at most."""
Operator = Literal["=", ">=", "<=", "has"]
"""Comparisons with the value of a column. "has" is for columns of several values."""
TURNS = {"T4": 120}
"""Turns of a task before it has to be answered, by type where they are not `USUAL_TURNS`."""
USUAL_TURNS = 60
TaskType = Literal["T1", "T2", "T3", "T4"]
"""Type of a task, in the paper's words: T1 database navigation, T2 ambiguous literature retrieval, T3 missing
references, T4 cross-source tables."""


class ShelfSpec(LibrarySpec):
    """Stands for the library of the shipped papers. See `shelf`."""

    seed: int = 0
    shelf: Literal[1]
    """Version of the shelf."""

    @property
    def name(self) -> str:
        """Name in logs."""
        return f"shelf-{self.shelf}"


class WebSpec(FrozenModel):
    """Stands for a source that this package does not build, such as the web: the `Provider` of the environment."""

    web: Literal[True] = True
    name: ClassVar[str] = "web"


class Condition(FrozenModel):
    """A constraint on one column of a record."""

    column: Text
    op: Operator
    value: float | str


class LeadsTo(FrozenModel):
    """A constraint that a column leads to a record."""

    column: Text
    record: Query


class Query(FrozenModel):
    """A record by what holds of it, and of the records that it leads to."""

    database: Text
    where: tuple[Condition, ...] = Field(min_length=1)
    links: tuple[LeadsTo, ...] = ()

    def records(self) -> Iterator[Query]:
        """Yield this query and all below it, the leaves first."""
        for link in self.links:
            yield from link.record.records()
        yield self

    @property
    def branches(self) -> bool:
        """True if a record leads to more than one."""
        return any(len(query.links) > 1 for query in self.records())


class TableColumn(FrozenModel):
    """A column of a table: where its values stand, seen from the record of a row."""

    header: Text
    path: tuple[Text, ...] = Field(min_length=1)
    """Links to follow, then a column. Of a link the cell has the name of the record that it leads to."""
    vocabulary: dict[str, Condition] = Field(default_factory=dict)
    """Closed vocabulary of the cells: what holds of the values of each word. A "-" stands for all others."""


class TableQuery(Query):
    """A scope, which several records meet, and the columns of their table after its key, the name."""

    columns: tuple[TableColumn, ...] = Field(min_length=2, max_length=6)


class TextQuery(FrozenModel):
    """The papers that every slot of a text cites, in the order of the slots."""

    slots: tuple[Query, ...] = Field(min_length=3, max_length=5)

    @property
    def database(self) -> str:
        """Facts that its answers are among."""
        return self.slots[0].database

    def records(self) -> Iterator[Query]:
        """Yield the queries of all slots and all below them, the leaves first."""
        for slot in self.slots:
            yield from slot.records()


UNKNOWN = Query(database="web", where=(Condition(column="question", op="=", value="as asked"),))
"""Query of a task on a source without facts, about which nothing can be proved."""


class GoldFact(FrozenModel):
    """A gold fact: the page that shows it."""

    document: Text
    page: int = Field(default=1, ge=1)
    fact: Text
    """Name of the record and the columns, for readers."""


class ExplorationTask(FrozenModel):
    """A question about a library, whose answer can be proved."""

    format: Literal["exploration/1"] = "exploration/1"
    id: Identifier
    version: int = Field(default=1, ge=1)
    canary: Canary = CANARY
    kind: TaskType
    library: LibrarySpec | ShelfSpec | WebSpec
    """Where the answer stands. A task on the web needs no more than its question and gold beside this."""
    question: Text
    query: Query | TableQuery | TextQuery = UNKNOWN
    asked: tuple[Text, ...] = Field(default=(), max_length=2)
    """Columns of the answer: one, or the name and a number. Of a table its key."""
    gold: Gold
    """The answer: one part, up to four of a list in any order, the works of every slot, or a table."""
    evidence: tuple[GoldFact, ...] = ()
    path: tuple[Text, ...] = ()
    """Actions that find the answer, which is the last."""
    published: str = ""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if isinstance(self.library, WebSpec):
            if self.gold.kind != self.kind:
                raise ValueError(f"gold must be of a {self.kind} task, got gold of {self.gold.kind}")
            return self
        if not (self.asked and self.evidence and self.path):
            raise ValueError("a task about a library must have asked, evidence and path, got an empty one")
        own = TextQuery if self.kind == "T3" else TableQuery if self.kind == "T4" else Query
        if self.hops > MAX_HOPS and own is not TextQuery:
            raise ValueError(f"a query must have at most {MAX_HOPS} records, got {self.hops}")
        if self.gold.kind != self.kind or type(self.query) is not own:
            raise ValueError(f"gold and query must be of a {self.kind} task, got gold of {self.gold.kind}")
        return self

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def hops(self) -> int:
        """Number of records that have to be identified, the answer's included. 0 where it is unknown."""
        return 0 if self.query == UNKNOWN else sum(1 for _ in self.query.records())

    @property
    def turns(self) -> int:
        """Turns before an answer is due, where the rules name no other number."""
        return TURNS.get(self.kind, USUAL_TURNS)

    @property
    def group(self) -> str:
        """Type of the task, its group in tables."""
        return self.kind

    def part_of(self, record: Record, part: Part) -> Part:
        """Return what a record has in the asked columns, in the form of a part of gold."""
        name = str(record[self.asked[0]]) if part.entity else ""
        number = None if part.number is None else float(record[self.asked[-1]] or 0)
        return Part(entity=name, number=number, tolerance=part.tolerance, unit=part.unit)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the task, in hex."""
        return document_digest(self)
