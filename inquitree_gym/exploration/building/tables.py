"""T4, tables across sources: the records of a scope, with values from the pages of several databases.

Rows are found by sets of keys per constraint. `proofs` finds them again without this module.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from inquitree_gym.exploration.building import navigation
from inquitree_gym.exploration.building.navigation import Hop, Index
from inquitree_gym.exploration.building.records import stream
from inquitree_gym.exploration.gold import TableGold
from inquitree_gym.exploration.library import NAME, Column, Library, Value, number_text
from inquitree_gym.exploration.schema import TURNS, Condition, ExplorationTask, GoldFact, TableColumn, TableQuery
from inquitree_gym.fiction.documents import RandomStream

TRIES = 10
"""Drawings for each record at most."""
ROWS = (8, 20)
LARGEST = 4
"""Databases that rows are drawn from, so that a guess is seldom within the scope."""
WIDE = (0.6, 0.95)
"""Share of the records within a range of a scope that also leads to one record."""
LINKS = 2
"""Links between the record of a row and a value at most, and ways that the columns of a table take."""
COUNTS = frozenset(("people", "times", "pairs", "samples"))
"""Units of what is counted. Counts and years have no tolerance."""
_PART = 2_000
"""Number of the draws of the first task, beyond those of T1."""
_CUTS = ((0.25, 0.45), (0.55, 0.8))
"""Shares of the records below the two ends of a class of numbers, lowest and highest."""


class _Drawn(NamedTuple):
    """A column of a table with its cells."""

    column: TableColumn
    source: Column
    """Column of the library whose values it shows."""
    said: str
    """Sentence of the question about it."""
    cells: tuple[str, ...]
    trails: list[list[str]]
    """Keys from the record of each row to the one whose page shows the cell."""


def table_task(index: Index, number: int) -> ExplorationTask:
    """Return the first drawing that has a scope of the right size, a closed vocabulary and a short path.

    Raises:
        RuntimeError: none of many drawings has.
    """
    library = index.library
    draws = stream(library.spec, _PART + number, "shape")
    tries = min(navigation.DRAWS, TRIES * sum(map(len, library.records.values())))
    for _ in range(tries):
        root = _scope(index, draws, linked=number % 3 == 1)
        drawn = _columns(index, root, draws) if root is not None else []
        if root is not None and drawn and (path := _path(library, root, drawn)):
            return _written(library, root, drawn, path, f"t4-s{library.spec.seed}-{number + 1:02}", draws)
    raise RuntimeError(f"{library.spec.name} must have a table, got none in {tries} drawings")


def _scope(index: Index, draws: RandomStream, *, linked: bool) -> Hop | None:
    """Return a record whose constraints hold for all rows. None for too few, too many, or no number among them.

    With ``linked`` all rows lead to one record, which has constraints in place of its name.
    """
    library = index.library
    able = [name for name, schema in library.databases.items() if schema.links]
    database = draws.choice(sorted(able, key=lambda name: -len(library.records[name]))[:LARGEST])
    root = Hop(database, draws.choice(tuple(library.records[database])))
    if linked:
        column = draws.choice(library.databases[database].links)
        below = Hop(column.to, str(library.records[database][root.key][column.name]))
        if not navigation.constrain(index, below, draws) or below.answers != {below.key}:
            return None
        root.links[column.name] = below
    root.where = navigation.constraints(index, root, draws, WIDE if linked else navigation.WIDTHS)
    ranged = any(each.op == ">=" for each in root.where)
    fits = ranged and index.settle(root, index.meeting(database, root.where) + index.leading(root))
    return root if fits and ROWS[0] <= len(root.answers) <= ROWS[1] else None


def _columns(index: Index, root: Hop, draws: RandomStream) -> list[_Drawn]:
    """Return two to six columns, from at least two databases and with a closed vocabulary. Empty for a poor drawing."""
    constant = {each.column for each in root.where if each.op == "="} | set(root.links)
    paths = [path for path in _paths(index.library, root.database, LINKS) if len(path) > 1 or path[0] not in constant]
    ways = draws.shuffled(list(dict.fromkeys(path[:-1] for path in paths)))[:LINKS]
    able = draws.shuffled([path for path in paths if len(path) == 1 or path[:-1] in ways])
    drawn = [_column(index, root, path, draws) for path in able[: draws.between(2, 6)]]
    headers = {each.column.header for each in drawn} | {index.library.databases[root.database].noun.capitalize()}
    # Without a missing value a "-" always stands for a value of no class.
    sound = all(len(set(each.cells)) > 1 and not (each.column.vocabulary and "" in each.cells) for each in drawn)
    scattered = any(len(each.column.path) > 1 for each in drawn) and any(each.column.vocabulary for each in drawn)
    return drawn if sound and scattered and len(headers) > len(drawn) > 1 else []


def _paths(library: Library, database: str, links: int) -> Iterator[tuple[str, ...]]:
    """Yield the way to every column that can be reached over some links."""
    for column in library.databases[database].columns:
        yield (column.name,)
        if column.kind == "link" and links:
            yield from ((column.name, *path) for path in _paths(library, column.to, links - 1))


def _column(index: Index, root: Hop, path: tuple[str, ...], draws: RandomStream) -> _Drawn:
    """Return a column as it stands, or with a closed vocabulary in half of the cases."""
    library, database, nouns = index.library, root.database, list[str]()
    trails = [[key] for key in _keys(library, root)]
    for name in path:
        schema, records = library.databases[database], library.records[database]
        nouns.insert(0, f"the {schema.noun}")
        source = next(column for column in schema.columns if column.name == name)
        if len(nouns) < len(path):
            database = source.to
            trails = [[*trail, str(records[trail[-1]][name])] for trail in trails]
    label, page = source.labels[0], f"the page of {' of '.join(nouns)}"
    column, said = TableColumn(header=label, path=path), f"{label} stands on {page}"
    if source.kind == "number" and draws.chance(0.5):
        column, said = _classes(index.ordered(database, source.name)[0], source, path, page, draws)
    elif source.kind == "category" and draws.chance(0.5):
        words = draws.shuffled(source.choices)[: draws.between(2, 3)]
        meanings = {word: Condition(column=source.name, op="=", value=word) for word in words}
        column = TableColumn(header=label, path=path, vocabulary=meanings)
        said = f"{said}: one of {', '.join(words)}, or - if none applies"
    elif source.unit and source.unit not in COUNTS:
        column = TableColumn(header=f"{label} ({source.unit})", path=path)
    values = [records[trail[-1]][source.name] for trail in trails]
    return _Drawn(column, source, said, tuple(_cell(library, column, source, value) for value in values), trails)


def _classes(
    numbers: Sequence[float], source: Column, path: tuple[str, ...], page: str, draws: RandomStream
) -> tuple[TableColumn, str]:
    """Return a column whose words are implied by a number, with ends in a unit that may differ from the page's."""
    unit, factor = draws.choice(source.units)
    low, high = (numbers[int(len(numbers) * (a + (b - a) * draws.uniform()))] for a, b in _CUTS)
    ends = [f"{number_text(end * factor, source.decimals + 4)} {unit}" for end in (low, high)]
    meanings = {
        "low": Condition(column=source.name, op="<=", value=low),
        "high": Condition(column=source.name, op=">=", value=high),
    }
    column = TableColumn(header=f"{source.labels[0]} class", path=path, vocabulary=meanings)
    return column, f"{column.header} follows from {page}: low up to {ends[0]}, high from {ends[1]} on, - between them"


def _cell(library: Library, column: TableColumn, source: Column, value: Value) -> str:
    """Return the cell of a value. Empty for one that its database lacks."""
    if value is None:
        return ""
    if column.vocabulary and source.kind == "number":
        low, high = (float(each.value) for each in column.vocabulary.values())
        return "low" if float(value) <= low else "high" if float(value) >= high else "-"
    if column.vocabulary:
        return str(value) if value in column.vocabulary else "-"
    if source.kind == "link":
        return str(library.records[source.to][str(value)][NAME])
    return value if isinstance(value, str) else number_text(float(value), source.decimals)


def _keys(library: Library, root: Hop) -> list[str]:
    return [key for key in library.records[root.database] if key in root.answers]


def _path(library: Library, root: Hop, drawn: Sequence[_Drawn]) -> list[str]:
    """Return the actions that show all evidence. Empty if half of the turns are too few, or no LOOKUP lists a row."""
    lookups = _lookups(library, root)
    before = [each for hop in root.links.values() for each in (navigation.lookup_text(hop), f"OPEN {hop.key}")]
    rows = zip(*(each.trails for each in drawn), strict=True)
    opened = [key for row in rows for trail in row for key in trail]
    path = list(dict.fromkeys((*before, *lookups, *(f"OPEN {key}" for key in opened))))
    return path if lookups and len(path) < TURNS["T4"] // 2 else []


def _lookups(library: Library, root: Hop) -> list[str]:
    """Return the LOOKUPs of the scope: more than one, over parts of a range, if one does not list all rows.

    They are cut between different values. None for a value with more rows than a LOOKUP lists.
    """
    column = next(each.column for each in root.where if each.op == ">=")
    values = sorted(float(library.records[root.database][key][column] or 0) for key in root.answers)
    if len(values) <= navigation.LISTED:
        return [navigation.lookup_text(root)]
    found: list[str] = []
    while values:
        rest = values[navigation.LISTED :]
        end = bisect_left(values, rest[0]) if rest else len(values)
        if not end:
            return []
        low = Condition(column=column, op=">=", value=values[0])
        high = Condition(column=column, op="<=", value=values[end - 1])
        found.append(navigation.lookup_text(root, (low, high)))
        values = values[end:]
    return found


def _written(
    library: Library, root: Hop, drawn: Sequence[_Drawn], path: Sequence[str], name: str, draws: RandomStream
) -> ExplorationTask:
    """Return the task of a scope and its columns."""
    columns, query, keys = tuple(each.column for each in drawn), root.query, _keys(library, root)
    counted = [each for each in drawn if each.source.kind == "year" or each.source.unit in COUNTS]
    names = [str(library.records[root.database][key][NAME]) for key in keys]
    gold = TableGold(
        headers=(library.databases[root.database].noun.capitalize(), *(each.header for each in columns)),
        rows=tuple(zip(names, *(each.cells for each in drawn), strict=True)),
        tolerances={each.column.header: 0.0 for each in counted if not each.column.vocabulary},
        vocabularies={each.header: (*each.vocabulary, "-") for each in columns if each.vocabulary},
    )
    shown = [
        GoldFact(document=trail[-1], fact=each.column.header)
        for each in drawn
        for cell, trail in zip(each.cells, each.trails, strict=True)
        if cell
    ]
    return ExplorationTask(
        id=name,
        kind="T4",
        library=library.spec,
        question=_question(library, root, drawn, gold.headers, draws),
        query=TableQuery(database=query.database, where=query.where, links=query.links, columns=columns),
        asked=(NAME,),
        gold=gold,
        evidence=(*(GoldFact(document=key, fact=gold.headers[0]) for key in keys), *shown),
        path=(*path, f"ANSWER\n{gold.written()}"),
    )


def _question(library: Library, root: Hop, drawn: Sequence[_Drawn], headers: Sequence[str], draws: RandomStream) -> str:
    """Return the question: the scope, the headers, and what each of them stands for."""
    letters = {id(hop): "A" for hop in root.links.values()}
    before = [f"{navigation.sentence(library, hop, letters, draws)} " for hop in root.links.values()]
    scope = f"List every {headers[0].lower()} that {navigation.claims(library, root, letters, draws)}"
    form = f"as a Markdown table with the headers {' | '.join(headers)}. {headers[0]} is the name, one row each"
    rest = "Give numbers in the unit of their header, and leave a cell empty where the page has no value."
    return f"{''.join(before)}{scope}, {form}. {'. '.join(each.said for each in drawn)}. {rest}"
