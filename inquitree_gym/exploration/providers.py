"""Providers of documents: the tools' view of a library, or of anything else that can be searched."""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property, lru_cache, reduce
from itertools import accumulate
from math import isnan, nan
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from inquitree_gym.errors import InquiTreeError, OptionError, require
from inquitree_gym.exploration.actions import Test, words_of
from inquitree_gym.exploration.building.generate import build_library
from inquitree_gym.exploration.library import NAME, Column, Database, Document, Library, LibrarySpec, Value
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
_NUMBERS = 2_000_000
"""Scores of words that a library keeps at most, 8 MB."""
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
        self._fields: dict[tuple[str, str], _Field] = {}
        self._rows: dict[str, NDArray[np.float32]] = {}

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
        longest = sorted(sorted(set(words)), key=len, reverse=True)
        return [_hit(self._documents[place], self._lowered[place], longest) for place in best.tolist()]

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
        passed = (1 << len(records)) - 1
        for test in tests:
            passed &= self._field(database, schema, test.field).passing(test)
        total, places = passed.bit_count(), list[int]()
        while passed and len(places) < ROWS:
            places.append((passed & -passed).bit_length() - 1)
            passed &= passed - 1
        return Listing(total, tuple(records[place] for place in places))

    @cached_property
    def _records(self) -> dict[str, list[tuple[str, str]]]:
        """Keys and names of the records of every database."""
        tables = self.library.records.items()
        return {name: [(key, str(record[NAME])) for key, record in records.items()] for name, records in tables}

    def _field(self, database: str, schema: Database, name: str) -> _Field:
        """Return the values of a field. Raise `ToolFault` for an unknown one."""
        if (database, name) not in self._fields:
            column = schema.column(name)
            if column is None and name not in (KEY, NAME):
                known = ", ".join((KEY, NAME, *(each.name for each in schema.columns)))
                raise ToolFault(f"field must be one of {known}, got '{name:.60}'.")
            records = self.library.records[database].items()
            cells = [key if name == KEY else record[name] for key, record in records]
            numeric = column is not None and column.kind in ("number", "year")
            self._fields[database, name] = _Field(cells, numeric=numeric)
        return self._fields[database, name]

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
        """Return the score of every document, the sum over the words in their order. Words of no document add none."""
        scores = np.zeros(len(self._documents), np.float32)
        for word in words:
            if word in self._index.vocab_dict:
                scores += self._row(word)
        return scores

    def _row(self, word: str) -> NDArray[np.float32]:
        """Return what a word adds to the score of every document. Those of the last words are kept."""
        if word not in self._rows:
            self._rows[word] = self._index.get_scores_from_ids([self._index.vocab_dict[word]])
            if len(self._rows) * len(self._documents) > _NUMBERS:
                del self._rows[next(iter(self._rows))]
        return self._rows[word]


def _hit(document: Document, lowered: Sequence[str], longest: Sequence[str]) -> Hit:
    """Return a document with a snippet around the first of some words that it has."""
    for word in longest:
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


class _Field:
    """Values of a field, each with its records as the bits of an integer, so that a test goes over no record."""

    def __init__(self, cells: Sequence[Value], *, numeric: bool) -> None:
        self._numeric, self._places = numeric, dict[Any, int]()
        for place, cell in enumerate(cells):
            if cell is not None:
                value = float(cell) if numeric else str(cell).lower()
                self._places[value] = self._places.get(value, 0) | 1 << place
        self._values = sorted(self._places)
        self._below = list(accumulate((self._places[value] for value in self._values), operator.or_, initial=0))
        """Records below each value, and in the end all that have one."""

    def passing(self, test: Test) -> int:
        """Return the records that pass a test. A missing value passes none.

        Raises:
            ToolFault: the values cannot be compared in this way.
        """
        op, wanted = test.op, _wanted(test, numeric=self._numeric)
        if op == "~":
            return reduce(operator.or_, (self._places[text] for text in self._values if wanted in text), 0)
        passed = self._below[bisect_left(self._values, wanted)] if op[0] in "<>" else 0
        if op not in ("<", ">="):
            passed |= self._places.get(wanted, 0)
        return self._below[-1] ^ passed if op in ("!=", ">", ">=") else passed


def _wanted(test: Test, *, numeric: bool) -> Any:
    """Return the value of a test as a number or a text in small letters."""
    if not numeric:
        if test.op not in ("=", "!=", "~"):
            raise ToolFault(f"'{test.field}' holds texts, so its op must be =, != or ~, got {test.op}.")
        return test.value.lower()
    if test.op == "~":
        raise ToolFault(f"'{test.field}' holds numbers, so its op must be one of = != < <= > >=, got ~.")
    try:
        wanted = float(test.value.split()[0].replace(",", ""))
    except ValueError:
        wanted = nan
    if isnan(wanted):
        raise ToolFault(f"'{test.field}' must be compared with a number, got '{test.value:.40}'.")
    return wanted
