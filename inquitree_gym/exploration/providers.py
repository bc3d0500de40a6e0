"""Providers of documents: the tools' view of a library, or of anything else that can be searched."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from inquitree_gym.errors import InquiTreeError, OptionError, require
from inquitree_gym.exploration.actions import Test, words_of
from inquitree_gym.exploration.building.generate import build_library
from inquitree_gym.exploration.library import NAME, Column, Database, Document, Library, LibrarySpec
from inquitree_gym.exploration.schema import ShelfSpec, WebSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEY = "key"
"""Field of every database that holds the key of a record."""
HITS = 5
SNIPPET = 200
"""Characters of a snippet."""
ROWS = 10
"""Records that a LOOKUP lists."""
_LEAD = 60
"""Characters of a snippet before the first word that was asked for."""


class ToolFault(InquiTreeError):
    """A request that a provider cannot answer. Its message is shown to the agent."""


class Hit(NamedTuple):
    """A document that a search found."""

    id: str
    title: str
    page: int
    snippet: str


class Listing(NamedTuple):
    """Records that a LOOKUP found: their number, and key and name of the first."""

    total: int
    records: tuple[tuple[str, str], ...]
    fields: tuple[str, ...] = ()
    """Descriptions of the fields, for a LOOKUP without tests."""


class Provider(Protocol):
    """Source of documents and records."""

    @property
    def name(self) -> str:
        """Name in logs."""

    @property
    def digest(self) -> str | None:
        """Digest of all that it can answer. None if it changes, as the web does."""

    def search(self, query: str) -> Sequence[Hit]:
        """Return the documents that fit a query best."""

    def open(self, name: str) -> Document:
        """Return a document. Raise `ToolFault` for an unknown one."""

    def lookup(self, database: str, tests: Sequence[Test]) -> Listing:
        """Return the records that pass all tests. Raise `ToolFault` for an unknown database or field."""


@lru_cache(maxsize=8)
def local_library(spec: LibrarySpec | WebSpec) -> LocalLibrary:
    """Return the provider of a library of this package, the same object while it is kept.

    Raises:
        OptionError: the task is about the web.
    """
    if isinstance(spec, WebSpec):
        raise OptionError("a task on the web must have a provider, got none. Give provider=WebSearch(…) or a Cassette.")
    if isinstance(spec, ShelfSpec):
        from inquitree_gym.exploration.shelf import build_shelf

        return LocalLibrary(build_shelf(spec))
    return LocalLibrary(build_library(spec))


class LocalLibrary:
    """A fictional library: BM25 over all documents, and its databases."""

    def __init__(self, library: Library) -> None:
        self.library, self.name = library, library.spec.name
        self._documents = tuple(library.documents.values())
        self._columns: dict[tuple[str, str], NDArray[Any]] = {}

    @property
    def digest(self) -> str:
        """See `Provider.digest`."""
        return self.library.digest

    def search(self, query: str) -> list[Hit]:
        """Return up to five documents by BM25, ties in the order of the library."""
        words = words_of(query)
        scores = self._scores(words)
        count = min(HITS, len(scores))
        least = np.partition(scores, -count)[-count]
        able = np.flatnonzero((scores >= least) & (scores > 0))
        best = able[np.argsort(-scores[able], kind="stable")][:count]
        return [_hit(self._documents[place], self._lowered[place], words) for place in best.tolist()]

    def open(self, name: str) -> Document:
        """Return a document by id."""
        document = self.library.documents.get(name)
        if document is None:
            raise ToolFault(f"no document has the id '{name:.60}'. Search for one, or look one up.")
        return document

    def lookup(self, database: str, tests: Sequence[Test]) -> Listing:
        """Return the records that pass all tests, in the order of the database."""
        schema = self.library.databases.get(database)
        if schema is None:
            known = ", ".join(self.library.databases)
            raise ToolFault(f"database must be one of {known}, got '{database:.60}'.")
        records = self._records[database]
        if not tests:
            return Listing(len(records), (), _fields(schema))
        passed = np.ones(len(records), np.bool_)
        for test in tests:
            passed &= self._passing(database, schema, test)
        places = np.flatnonzero(passed)
        return Listing(len(places), tuple(records[place] for place in places[:ROWS].tolist()))

    @cached_property
    def _records(self) -> dict[str, list[tuple[str, str]]]:
        """Keys and names of the records of every database."""
        tables = self.library.records.items()
        return {name: [(key, str(record[NAME])) for key, record in records.items()] for name, records in tables}

    def _passing(self, database: str, schema: Database, test: Test) -> NDArray[np.bool_]:
        """Return the records that pass a test. A missing value passes none.

        Raises:
            ToolFault: the field is unknown, or its values cannot be compared in this way.
        """
        column = schema.column(test.field)
        if column is None and test.field not in (KEY, NAME):
            known = ", ".join((KEY, NAME, *(each.name for each in schema.columns)))
            raise ToolFault(f"field must be one of {known}, got '{test.field:.60}'.")
        numeric = column is not None and column.kind in ("number", "year")
        wanted = _wanted(test, numeric=numeric)
        values = self._column(database, test.field, numeric=numeric)
        passed: NDArray[np.bool_] = _COMPARE[test.op](values, wanted)
        return passed & ~np.isnan(values) if numeric else passed

    def _column(self, database: str, field: str, *, numeric: bool) -> NDArray[Any]:
        """Return the values of a field: numbers, NaN where one is missing, or texts in small letters."""
        place = (database, field)
        if place not in self._columns:
            records = self.library.records[database].items()
            cells = [key if field == KEY else record[field] for key, record in records]
            texts = ["" if cell is None else str(cell).lower() for cell in cells]
            self._columns[place] = (
                np.array([text or "nan" for text in texts], np.float64) if numeric else np.array(texts)
            )
        return self._columns[place]

    @cached_property
    def _lowered(self) -> list[list[str]]:
        """Pages of all documents in small letters, for snippets."""
        return [[page.lower() for page in document.pages] for document in self._documents]

    @cached_property
    def _index(self) -> Any:
        """BM25 over the pages and titles of all documents, built at the first search."""
        index = require("bm25s", "explore").BM25()
        corpus = [words_of("\n".join((document.title, *document.pages))) for document in self._documents]
        index.index(corpus, show_progress=False)
        return index

    def _scores(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the score of every document."""
        known = [word for word in words if word in self._index.vocab_dict]
        if not known:
            return np.zeros(len(self._documents), np.float32)
        scores: NDArray[np.float32] = self._index.get_scores(known)
        return scores


def _hit(document: Document, lowered: Sequence[str], words: Sequence[str]) -> Hit:
    """Return a document with a snippet around the longest of the words that it has."""
    for word in sorted(set(words), key=lambda each: (-len(each), each)):
        for number, page in enumerate(lowered, 1):
            if (place := page.find(word)) >= 0:
                return Hit(document.id, document.title, number, snippet(document.pages[number - 1], place))
    return Hit(document.id, document.title, 1, snippet(document.pages[0], 0))


def snippet(page: str, place: int) -> str:
    """Return the text around a place as one line."""
    start = max(0, place - _LEAD)
    return " ".join(page[start : start + SNIPPET].split())


def _fields(schema: Database) -> tuple[str, ...]:
    """Return the fields of a database with their units, choices or targets."""
    return (KEY, NAME, *(f"{column.name} ({_about(column)})" for column in schema.columns))


def _about(column: Column) -> str:
    if column.kind == "category":
        return ", ".join(column.choices)
    if column.kind == "link":
        return f"key in {column.to}"
    return column.unit or "year"


_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "~": lambda values, wanted: np.char.find(values, wanted) >= 0,
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _wanted(test: Test, *, numeric: bool) -> Any:
    """Return the value of a test as a number or a text in small letters."""
    if not numeric:
        if test.op not in ("=", "!=", "~"):
            raise ToolFault(f"'{test.field}' holds texts, so its op must be =, != or ~, got {test.op}.")
        return test.value.lower()
    if test.op == "~":
        raise ToolFault(f"'{test.field}' holds numbers, so its op must be one of = != < <= > >=, got ~.")
    try:
        return float(test.value.split()[0].replace(",", ""))
    except ValueError:
        raise ToolFault(f"'{test.field}' must be compared with a number, got '{test.value:.40}'.") from None
