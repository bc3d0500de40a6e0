"""Cells, rows and columns of a table compared with gold: lenient, and a mismatch in doubt (SciExplore, A.9)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from inquitree_gym.exploration.answers import MarkdownTable
from inquitree_gym.exploration.gold import TableGold
from inquitree_gym.exploration.quantities import Amount, comparable, convert, is_unit, near, quantity

ABSOLUTE, RELATIVE = 1e-6, 1e-3
"""Differences of numbers that are equal where a column has no tolerance of its own."""
NEAREST = 0.6
"""Least similarity of the header that stands for an asked one."""

_LIST = re.compile(r";|,(?!\d)")
_HEADER_UNIT = re.compile(r"\(([^()]+)\)\s*$")
_DASHES = frozenset("-–—−")


@dataclass(frozen=True, slots=True)
class Found:
    """Elements of gold that a table has, and elements that it gives."""

    keys: int = 0
    attributes: int = 0
    rows: int = 0
    given_keys: int = 0
    given_attributes: int = 0
    given_rows: int = 0
    format: bool = False


class _Column:
    """Rules by which the cells of one column are compared."""

    def __init__(self, gold: TableGold, header: str) -> None:
        named = _HEADER_UNIT.search(header)
        self._unit = gold.units.get(header, named[1] if named and is_unit(named[1]) else "")
        self._tolerance = gold.tolerances.get(header)
        self._aliases = {comparable(cell): {comparable(one) for one in names} for cell, names in gold.aliases.items()}
        self.dash = "-" in gold.vocabularies.get(header, ())

    def value(self, cell: str) -> str:
        """Return a cell without marks. Empty if it says nothing, "-" for a dash that is a value of this column."""
        bare = cell.strip(" \t*_`")
        if bare in _DASHES:
            return "-" if self.dash else ""
        return bare

    def same(self, cell: str, gold: str) -> bool:
        """Return True if a cell says what the gold cell says."""
        if self.equal(cell, gold):
            return True
        wanted = _elements(gold)
        given = _elements(cell) if len(wanted) > 1 else []
        return bool(given) and all(any(self.equal(one, element) for one in given) for element in wanted)

    def names(self, gold: str) -> set[str]:
        """Return the comparable forms of a gold cell."""
        name = comparable(gold)
        return {name, *self._aliases.get(name, ())}

    def is_number(self, cell: str) -> bool:
        """Return True if a cell is a number, so that other forms of it are equal."""
        return self._amount(cell) is not None

    def equal(self, cell: str, gold: str) -> bool:
        """Return True if two single values are equal."""
        if cell == "-" or gold == "-":
            return cell == gold
        if comparable(cell) in self.names(gold):
            return True
        given, wanted = self._amount(cell), self._amount(gold)
        if given is None or wanted is None:
            return False
        value = convert(given.value, given.unit, wanted.unit)
        tolerance = self._tolerance
        if tolerance is None:
            tolerance = max(ABSOLUTE, RELATIVE * abs(wanted.value) if abs(wanted.value) > ABSOLUTE else 0.0)
        return value is not None and near(value, wanted.value, tolerance)

    def _amount(self, cell: str) -> Amount | None:
        """Return the number of a cell, in the column's unit where it names none."""
        found = quantity(cell, self._unit)
        return found._replace(unit=found.unit or self._unit) if found else None


def graded_table(gold: TableGold, table: MarkdownTable | None) -> Found:
    """Count the elements of gold in an answer's table. Of several rows with one key the best counts."""
    if table is None:
        return Found()
    exact = sorted(map(comparable, table.headers)) == sorted(map(comparable, gold.headers))
    places = columns_of(gold.headers, table.headers)
    rules = [_Column(gold, header) for header in gold.headers]
    rows = [_aligned(row, places, rules) for row in table.rows]
    given = [sum(bool(cell) for cell in row[1:]) for row in rows]
    best = _best(gold, rules, rows)
    wanted = [sum(bool(cell) for cell in row[1:]) for row in gold.rows]
    return Found(
        keys=len(best),
        attributes=sum(best.values()),
        rows=sum(best.get(number, -1) == cells for number, cells in enumerate(wanted)),
        given_keys=sum(bool(row[0]) for row in rows),
        given_attributes=sum(given),
        given_rows=sum(bool(row[0]) or count > 0 for row, count in zip(rows, given, strict=True)),
        format=exact,
    )


def columns_of(asked: Sequence[str], headers: Sequence[str]) -> list[int | None]:
    """Return the place of every asked header in a table: of an equal one, else of the nearest. None without one."""
    left = {comparable(header[:200]): place for place, header in reversed(list(enumerate(headers)))}
    places: dict[str, int] = {}
    names = [comparable(header) for header in asked]
    for name in names:
        if name in left:
            places[name] = left.pop(name)
    for name in names:
        if name not in places and (near_ones := difflib.get_close_matches(name, list(left), n=1, cutoff=NEAREST)):
            places[name] = left.pop(near_ones[0])
    return [places.get(name) for name in names]


def _aligned(row: Sequence[str], places: Sequence[int | None], rules: Sequence[_Column]) -> list[str]:
    """Return the cells of a row in the order of gold's headers. Empty where the table has no such column."""
    return ["" if place is None else rule.value(row[place]) for place, rule in zip(places, rules, strict=True)]


def _best(gold: TableGold, rules: Sequence[_Column], rows: Sequence[Sequence[str]]) -> dict[int, int]:
    """Return the right attributes of the best row for every gold row whose key was found."""
    key = rules[0]
    by_name = {name: number for number, row in enumerate(gold.rows) for name in key.names(row[0])}
    others = [number for number, row in enumerate(gold.rows) if key.is_number(row[0])]
    best: dict[int, int] = {}
    for row in rows:
        number = by_name.get(comparable(row[0])) if row[0] else None
        if number is None and row[0]:
            number = next((other for other in others if key.equal(row[0], gold.rows[other][0])), None)
        if number is not None:
            cells = zip(rules[1:], row[1:], gold.rows[number][1:], strict=True)
            right = sum(bool(cell and wanted) and rule.same(cell, wanted) for rule, cell, wanted in cells)
            best[number] = max(best.get(number, 0), right)
    return best


def _elements(cell: str) -> list[str]:
    """Return the elements of a cell that lists several."""
    return [one for one in (part.strip(" \t*_`") for part in _LIST.split(cell)) if one]
