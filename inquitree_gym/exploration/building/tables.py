"""T4, tables across sources: the records of a scope, with values from the pages of several databases.

Rows are found by sets of keys per constraint. `proofs` finds them again without this module.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inquitree_gym.exploration.building.generate import build_library
from inquitree_gym.exploration.building.navigation import (
    LISTED,
    SEEDS,
    WIDTHS,
    Hop,
    Index,
    claims,
    constrain,
    constraints,
    frozen_specs,
    letters_of,
    lookup_text,
    sentence,
)
from inquitree_gym.exploration.building.records import stream
from inquitree_gym.exploration.gold import TableGold
from inquitree_gym.exploration.library import NAME, Column, Database, Library, Record, number_text
from inquitree_gym.exploration.schema import (
    TURNS,
    Condition,
    ExplorationTask,
    GoldFact,
    Meaning,
    TableColumn,
    TableQuery,
)
from inquitree_gym.fiction.documents import RandomStream

TABLES = 18
"""Frozen tasks."""
ROWS = (8, 20)
LARGEST = 4
"""Databases that rows are drawn from, so that a guess is seldom within the scope."""
WIDE = (0.6, 0.95)
"""Share of the records within a range of a scope that also leads to one record."""
CHAINS = 2
"""Records beyond that of the row on whose pages values stand, at most."""
DRAWS = 4_000
"""Drawings of a task before it is given up."""
COUNTS = frozenset(("people", "times", "pairs", "samples"))
"""Units of what is counted. Counts and years have no tolerance."""
_PART = 2_000
"""Number of the draws of the first task, beyond those of T1."""
_CUTS = ((0.25, 0.45), (0.55, 0.8))
"""Shares of the records below the two ends of a class of numbers, lowest and highest."""


@dataclass(frozen=True)
class _Drawn:
    """A column, that of the library whose values it shows, and a sentence of the question about it."""

    column: TableColumn
    source: Column
    said: str

    @property
    def exact(self) -> bool:
        """True for years and counts."""
        return not self.column.vocabulary and (self.source.kind == "year" or self.source.unit in COUNTS)


def table_task(index: Index, number: int) -> ExplorationTask:
    """Return the first drawing that has a scope of the right size, a closed vocabulary and a short path.

    Raises:
        RuntimeError: none of many drawings has.
    """
    library = index.library
    draws = stream(library.spec, _PART + number, "shape")
    for _ in range(DRAWS):
        root = _scope(index, draws, linked=number % 3 == 1)
        drawn = _columns(index, root, draws) if root is not None else []
        if root is not None and drawn and (path := _path(library, root, drawn)):
            return _written(library, root, drawn, path, f"t4-s{library.spec.seed}-{number + 1:02}", draws)
    raise RuntimeError(f"{library.name} must have a table, got none in {DRAWS} drawings")


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
        if not constrain(index, below, draws) or below.answers != {below.key}:
            return None
        root.links[column.name] = below
    root.where = constraints(index, root, draws, WIDE if linked else WIDTHS)
    met = index.meeting(database, root.where) + index.leading(root)
    ranged = any(each.op == ">=" for each in root.where)
    fits = ranged and index.settle(root, met) and ROWS[0] <= len(root.answers) <= ROWS[1]
    return root if fits else None


def _columns(index: Index, root: Hop, draws: RandomStream) -> list[_Drawn]:
    """Return two to six columns, from at least two databases and with a closed vocabulary. Empty for a poor drawing."""
    library = index.library
    constant = {each.column for each in root.where if each.op == "="} | set(root.links)
    paths = [path for path in _paths(library, root.database, CHAINS) if path[0] not in constant or len(path) > 1]
    chains = draws.shuffled(list(dict.fromkeys(path[:-1] for path in paths)))[:CHAINS]
    able = draws.shuffled([path for path in paths if len(path) == 1 or path[:-1] in chains])
    drawn = [_column(index, root, path, draws) for path in able[: draws.between(2, 6)]]
    headers = {each.column.header for each in drawn} | {_key(library, root)}
    scattered = {path[:-1] for path in able[: len(drawn)]} - {()}
    rows = zip(*_rows(library, root, drawn), strict=True)
    varied = all(len(set(cells)) > 1 for cells in rows)
    closed = [each for each in drawn if each.column.vocabulary]
    fits = len(headers) == len(drawn) + 1 and len(drawn) > 1 and scattered and varied and closed
    return drawn if fits and all(_known(library, root, each) for each in closed) else []


def _paths(library: Library, database: str, links: int) -> Iterator[tuple[str, ...]]:
    """Yield the way to every column that can be reached over some links."""
    for column in library.databases[database].columns:
        yield (column.name,)
        if column.kind == "link" and links:
            yield from ((column.name, *path) for path in _paths(library, column.to, links - 1))


def _column(index: Index, root: Hop, path: tuple[str, ...], draws: RandomStream) -> _Drawn:
    """Return a column as it stands, or as a closed vocabulary in half of the cases."""
    database, schema, nouns = root.database, index.library.databases[root.database], list[str]()
    for link in path[:-1]:
        nouns.insert(0, f"the {schema.noun}")
        database = _source(schema, link).to
        schema = index.library.databases[database]
    source = _source(schema, path[-1])
    label = source.labels[0]
    page = " of ".join([f"the page of the {schema.noun}", *nouns])
    if source.kind == "category" and draws.chance(0.5):
        words = draws.shuffled(source.choices)[: draws.between(2, 3)]
        meanings = tuple(Meaning(word=word, values=(word,)) for word in words)
        said = f"{label} stands on {page}: one of {', '.join(words)}, or - if none applies"
        return _Drawn(TableColumn(header=label, path=path, vocabulary=meanings), source, said)
    if source.kind == "number" and draws.chance(0.5):
        return _classes(index.ordered(database, source.name)[0], source, path, page, draws)
    unit = f" ({source.unit})" if source.unit and source.unit not in COUNTS else ""
    return _Drawn(TableColumn(header=f"{label}{unit}", path=path), source, f"{label} stands on {page}")


def _classes(numbers: Sequence[float], source: Column, path: tuple[str, ...], page: str, draws: RandomStream) -> _Drawn:
    """Return a column whose words are implied by a number, with ends in a unit that may differ from the page's."""
    unit, factor = draws.choice(source.units)
    low, high = (numbers[int(len(numbers) * (a + (b - a) * draws.uniform()))] for a, b in _CUTS)
    ends = [f"{number_text(end * factor, source.decimals + 4)} {unit}" for end in (low, high)]
    column = TableColumn(
        header=f"{source.labels[0]} class",
        path=path,
        vocabulary=(Meaning(word="low", below=low), Meaning(word="high", least=high)),
    )
    said = f"{column.header} follows from {page}: low below {ends[0]}, high from {ends[1]} on, or - between them"
    return _Drawn(column, source, said)


def _source(schema: Database, name: str) -> Column:
    return next(column for column in schema.columns if column.name == name)


def _holder(library: Library, root: Hop, key: str, path: Sequence[str]) -> tuple[Record, list[str]]:
    """Return the record that has the value of a row, and the keys from the row's record to it."""
    database, keys = root.database, [key]
    for link in path[:-1]:
        keys.append(str(library.records[database][keys[-1]][link]))
        database = _source(library.databases[database], link).to
    return library.records[database][keys[-1]], keys


def _known(library: Library, root: Hop, drawn: _Drawn) -> bool:
    """Return whether no row lacks the value, so that "-" always stands for a class."""
    name = drawn.source.name
    return all(_holder(library, root, key, drawn.column.path)[0][name] is not None for key in root.answers)


def _cell(library: Library, root: Hop, key: str, drawn: _Drawn) -> str:
    """Return the cell of a row. Empty for a value that its database lacks."""
    value = _holder(library, root, key, drawn.column.path)[0][drawn.source.name]
    if value is None:
        return ""
    for meaning in drawn.column.vocabulary:
        low = meaning.below is not None and float(value) < meaning.below
        if value in meaning.values or low or (meaning.least is not None and float(value) >= meaning.least):
            return meaning.word
    if drawn.column.vocabulary:
        return "-"
    if drawn.source.kind == "link":
        return str(library.records[drawn.source.to][str(value)][NAME])
    return value if isinstance(value, str) else number_text(float(value), drawn.source.decimals)


def _keys(library: Library, root: Hop) -> list[str]:
    return [key for key in library.records[root.database] if key in root.answers]


def _key(library: Library, root: Hop) -> str:
    """Return the header of the key."""
    return library.databases[root.database].noun.capitalize()


def _rows(library: Library, root: Hop, drawn: Sequence[_Drawn]) -> Iterator[tuple[str, ...]]:
    for key in _keys(library, root):
        yield (
            str(library.records[root.database][key][NAME]),
            *(_cell(library, root, key, each) for each in drawn),
        )


def _path(library: Library, root: Hop, drawn: Sequence[_Drawn]) -> list[str]:
    """Return the actions that show all evidence. Empty if half of the turns are too few, or no LOOKUP lists a row."""
    path = [action for hop in root.below() if hop is not root for action in (lookup_text(hop), f"OPEN {hop.key}")]
    lookups = list(_lookups(library, root))
    opened = dict.fromkeys(
        other
        for key in _keys(library, root)
        for each in drawn
        for other in _holder(library, root, key, each.column.path)[1]
    )
    path += [*lookups, *(f"OPEN {key}" for key in opened if f"OPEN {key}" not in path)]
    return path if lookups and len(path) < TURNS["T4"] // 2 else []


def _lookups(library: Library, root: Hop) -> Iterator[str]:
    """Yield the LOOKUPs of the scope: one, or more over parts of a range, each of which lists all of its rows."""
    if len(root.answers) <= LISTED:
        yield lookup_text(root)
        return
    column = next(each.column for each in root.where if each.op == ">=")
    values = sorted(float(library.records[root.database][key][column] or 0) for key in root.answers)
    start = 0
    while start < len(values):
        end = min(start + LISTED, len(values))
        if end < len(values):
            end = bisect_left(values, values[end])
        if end <= start:
            return
        bounds = (
            Condition(column=column, op=">=", value=values[start]),
            Condition(column=column, op="<=", value=values[end - 1]),
        )
        yield lookup_text(root, bounds)
        start = end


def _written(
    library: Library, root: Hop, drawn: Sequence[_Drawn], path: Sequence[str], name: str, draws: RandomStream
) -> ExplorationTask:
    """Return the task of a scope and its columns."""
    columns = tuple(each.column for each in drawn)
    closed = {each.header: (*(one.word for one in each.vocabulary), "-") for each in columns if each.vocabulary}
    gold = TableGold(
        headers=(_key(library, root), *(each.header for each in columns)),
        rows=tuple(_rows(library, root, drawn)),
        tolerances={each.column.header: 0.0 for each in drawn if each.exact},
        vocabularies=closed,
    )
    query = root.query
    return ExplorationTask(
        id=name,
        kind="T4",
        library=library.spec,
        question=_question(library, root, drawn, gold.headers, draws),
        query=TableQuery(database=query.database, where=query.where, links=query.links, columns=columns),
        asked=(NAME,),
        gold=gold,
        evidence=tuple(_evidence(library, root, drawn)),
        path=(*path, f"ANSWER\n{gold.written()}"),
    )


def _evidence(library: Library, root: Hop, drawn: Sequence[_Drawn]) -> Iterator[GoldFact]:
    """Yield the page of every cell."""
    for key in _keys(library, root):
        yield GoldFact(document=key, fact=_key(library, root))
        for each in drawn:
            if _cell(library, root, key, each):
                holder = _holder(library, root, key, each.column.path)[1][-1]
                yield GoldFact(document=holder, fact=each.column.header)


def _question(library: Library, root: Hop, drawn: Sequence[_Drawn], headers: Sequence[str], draws: RandomStream) -> str:
    """Return the question: the scope, the headers, and what each of them stands for."""
    letters = letters_of(root)
    before = [f"{sentence(library, hop, letters, draws)} " for hop in root.below() if hop is not root]
    noun = library.databases[root.database].noun
    told = ". ".join(each.said for each in drawn)
    scope = f"{''.join(before)}List every {noun} that {claims(library, root, letters, draws)}"
    return (
        f"{scope}, as a Markdown table with the headers {' | '.join(headers)}. {headers[0]} is the name, one row each. {told}. Give numbers in the unit of "
        "their header, and leave a cell empty where the page has no value."
    )


def draw_tables() -> list[ExplorationTask]:
    """Return the frozen tasks, one library after the other."""
    indexes = [Index(build_library(spec)) for spec in frozen_specs()]
    return [table_task(indexes[number % len(SEEDS)], number) for number in range(TABLES)]
