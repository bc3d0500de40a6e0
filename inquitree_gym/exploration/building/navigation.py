"""T1, database navigation: from a record backwards along its links, names replaced by constraints on attributes.

Answers are found by sets of keys per constraint. `proofs` finds them again without this module.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from inquitree_gym.exploration.building.records import stream
from inquitree_gym.exploration.gold import MAX_PARTS, AnswerGold, Part
from inquitree_gym.exploration.library import JOIN, NAME, Column, Library, Record, Value
from inquitree_gym.exploration.schema import Condition, ExplorationTask, GoldFact, LeadsTo, Query
from inquitree_gym.fiction.documents import RandomStream

HOPS = (2,) * 9 + (3,) * 10 + (4,) * 8 + (5,) * 8 + (6,) * 4
"""Records of each of 39 tasks: the only numbers that fit all rows of the paper's Table 6."""
NEAR_MISSES = 2
"""Records, for each hop, that meet all but one of its constraints, at least."""
LISTED = 10
"""Records that a LOOKUP lists. Every LOOKUP of a gold path finds no more, so that no place in the order says more."""
LONGEST_CHAIN = 4
"""Records of a task that need not branch at most. The databases have few longer chains."""
TRIES = 12
"""Drawings of the constraints of a hop."""
DRAWS = 4_000
"""Drawings of a task before it is given up."""
WORLDS = 8
"""Worlds that a library draws its own from."""
_PART = 1_000
"""Number of the draws of the first task, beyond those of records and papers."""
WIDTHS = (0.06, 0.35)
"""Share of the records within a range, lowest and highest."""


@dataclass
class Hop:
    """A record on the way, with its constraints and the hops that it leads to."""

    database: str
    key: str
    where: list[Condition] = field(default_factory=list)
    links: dict[str, Hop] = field(default_factory=dict)
    answers: set[str] = field(default_factory=set)
    """Keys of the records that meet all constraints."""

    def below(self) -> Iterator[Hop]:
        """Yield all hops, the leaves first."""
        for hop in self.links.values():
            yield from hop.below()
        yield self

    @property
    def query(self) -> Query:
        """The query that the hop is the answer of."""
        links = tuple(LeadsTo(column=column, record=hop.query) for column, hop in self.links.items())
        return Query(database=self.database, where=tuple(self.where), links=links)


class Index:
    """Keys of the records of a library by column and value."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._sorted: dict[tuple[str, str], tuple[list[float], list[str]]] = {}
        self._equal: dict[tuple[str, str], dict[Value, set[str]]] = {}

    def ordered(self, database: str, column: str) -> tuple[list[float], list[str]]:
        """Return the numbers of a column in order, and their keys."""
        place = (database, column)
        if place not in self._sorted:
            records = self.library.facts[database].items()
            pairs = sorted((float(v), key) for key, record in records if (v := record[column]) is not None)
            self._sorted[place] = [number for number, _ in pairs], [key for _, key in pairs]
        return self._sorted[place]

    def equal(self, database: str, column: str, value: Value) -> set[str]:
        """Return the keys of the records with a value."""
        place = (database, column)
        if place not in self._equal:
            table: dict[Value, set[str]] = {}
            for key, record in self.library.facts[database].items():
                table.setdefault(record[column], set()).add(key)
            self._equal[place] = table
        return self._equal[place].get(value, set())

    def between(self, database: str, column: str, low: float, high: float) -> set[str]:
        """Return the keys of the records within a range."""
        numbers, keys = self.ordered(database, column)
        return set(keys[bisect_left(numbers, low) : bisect_right(numbers, high)])

    def meeting(self, database: str, where: Sequence[Condition]) -> list[set[str]]:
        """Return the keys that meet each value or range. The high end of a range, if any, follows its low end."""
        met = []
        for each, after in zip(where, [*where[1:], *where[:1]], strict=True):
            if each.op == "=":
                met.append(self.equal(database, each.column, each.value))
            elif each.op == ">=":
                high = float(after.value) if after.op == "<=" else inf
                met.append(self.between(database, each.column, float(each.value), high))
            elif each.op == "has":
                records = self.library.facts[database].items()
                met.append({key for key, record in records if each.value in str(record[each.column]).split(JOIN)})
        return met

    def leading(self, hop: Hop) -> list[set[str]]:
        """Return the keys whose links lead to an answer of each hop below."""
        return [
            set().union(*(self.equal(hop.database, column, target) for target in below.answers))
            for column, below in hop.links.items()
        ]

    def settle(self, hop: Hop, met: list[set[str]]) -> bool:
        """Keep the answers of a hop, and return whether enough records meet all but one of its constraints."""
        hop.answers = set.intersection(*met)
        counts = Counter(key for each in met for key in each)
        alone = len(self.library.facts[hop.database]) - len(hop.answers) if len(met) == 1 else 0
        return (alone or sum(1 for count in counts.values() if count == len(met) - 1)) >= NEAR_MISSES


def navigation_task(index: Index, number: int, depth: int) -> ExplorationTask:
    """Return the first drawing that has one answer, near misses and a short path.

    Every second task of three records or more branches.

    Raises:
        RuntimeError: none of many drawings has.
    """
    draws = stream(index.library.spec, _PART + number, "shape")
    branching = depth > LONGEST_CHAIN or (depth > 2 and number % 2 == 0)
    for _ in range(DRAWS):
        root = _drawn(index, draws, depth, branching)
        if root is not None and (found := _answer(index, root, draws)) is not None:
            return _written(index, root, found, f"t1-s{index.library.spec.seed}-{number + 1:02}", draws)
    raise RuntimeError(f"{index.library.spec.name} must have a task of {depth} records, got none in {DRAWS} drawings")


def _drawn(index: Index, draws: RandomStream, depth: int, branching: bool) -> Hop | None:
    """Return a record with others that it leads to, as a tree or a chain. None if it came to an end too early."""
    library = index.library
    database = draws.choice([name for name, schema in library.databases.items() if schema.links])
    root = Hop(database, draws.choice(tuple(library.records[database])))
    hops = [root]
    while len(hops) < depth:
        grown = draws.choice(hops) if branching else hops[-1]
        open_links = [each for each in library.databases[grown.database].links if each.name not in grown.links]
        if not open_links and not (branching and len(hops) > 1):
            return None
        if open_links:
            column = draws.choice(open_links)
            below = Hop(column.to, str(library.records[grown.database][grown.key][column.name]))
            grown.links[column.name] = below
            hops.append(below)
        elif not any(len(library.databases[hop.database].links) > len(hop.links) for hop in hops):
            return None
    distinct = len({hop.key for hop in hops}) == depth
    branched = any(len(hop.links) > 1 for hop in hops)
    fits = distinct and branched == branching and all(constrain(index, hop, draws) for hop in root.below())
    return root if fits else None


def constrain(index: Index, hop: Hop, draws: RandomStream) -> bool:
    """Draw the constraints of a hop, those below it known. Return whether it has near misses, and LOOKUP lists it."""
    leading = index.leading(hop)
    direct = [index.equal(hop.database, column, below.key) for column, below in hop.links.items()]
    for _ in range(TRIES):
        hop.where = constraints(index, hop, draws)
        met = index.meeting(hop.database, hop.where)
        listed = bool(met) and len(set.intersection(*met, *direct)) <= LISTED
        if listed and index.settle(hop, met + leading):
            return True
    return False


def constraints(index: Index, hop: Hop, draws: RandomStream, widths: tuple[float, float] = WIDTHS) -> list[Condition]:
    """Return one to three constraints that a record meets."""
    record = index.library.records[hop.database][hop.key]
    columns = [each for each in index.library.databases[hop.database].columns if each.kind != "link"]
    known = [each for each in columns if record[each.name] is not None]
    found: list[Condition] = []
    for column in draws.shuffled(known)[: draws.between(1, 3)]:
        if column.kind == "category":
            found.append(Condition(column=column.name, op="=", value=str(record[column.name])))
        else:
            found += _range(index, hop, column, draws, widths)
    return found


def _range(index: Index, hop: Hop, column: Column, draws: RandomStream, widths: tuple[float, float]) -> list[Condition]:
    """Return the ends of a range around the value of a record, at values of other records."""
    value = float(index.library.records[hop.database][hop.key][column.name] or 0)
    numbers, _ = index.ordered(hop.database, column.name)
    share = widths[0] + (widths[1] - widths[0]) * draws.uniform()
    width = max(2, int(len(numbers) * share))
    first = max(0, bisect_left(numbers, value) - draws.below(width))
    high = max(value, numbers[min(len(numbers) - 1, first + width)])
    return [
        Condition(column=column.name, op=">=", value=numbers[first]),
        Condition(column=column.name, op="<=", value=high),
    ]


def _answer(index: Index, root: Hop, draws: RandomStream) -> list[str] | None:
    """Return the keys of the answer: one, or up to four as a list in one task of six. None for a poor task.

    All rows of a list lead to the same records, so that one LOOKUP finds them.
    """
    most = MAX_PARTS if draws.below(6) == 0 else 1
    records = index.library.records[root.database]
    same = all(records[key][column] == below.key for key in root.answers for column, below in root.links.items())
    if not 1 <= len(root.answers) <= most or not same:
        return None
    return [key for key in records if key in root.answers]


def _written(index: Index, root: Hop, keys: list[str], name: str, draws: RandomStream) -> ExplorationTask:
    """Return the task of an answer: an attribute of the record, its name, or a list of names with numbers."""
    library = index.library
    schema, records = library.databases[root.database], library.records[root.database]
    used = {condition.column for condition in root.where}
    numbers = [
        each for each in schema.columns
        if each.kind == "number" and each.name not in used and all(records[key][each.name] is not None for key in keys)
    ]  # fmt: skip
    column = draws.choice(numbers) if numbers and (len(keys) > 1 or draws.chance(0.7)) else None
    asked = (NAME,) if column is None else (column.name,) if len(keys) == 1 else (NAME, column.name)
    tolerance = 0.0 if column is None or draws.chance(0.5) else 10.0**-column.decimals
    gold = AnswerGold(kind="T1", parts=tuple(_part(records[key], asked, column, tolerance) for key in keys))
    return ExplorationTask(
        id=name,
        kind="T1",
        library=library.spec,
        question=question_text(library, root, asked, tolerance, many=len(keys) > 1, draws=draws),
        query=root.query,
        asked=asked,
        gold=gold,
        evidence=tuple(_evidence(root, keys, asked)),
        path=(*_path(root, keys), f"ANSWER {gold.written()}"),
    )


def _part(record: Record, asked: tuple[str, ...], column: Column | None, tolerance: float) -> Part:
    """Return one part of the answer: the name of a record, a number of it, or both."""
    name = str(record[NAME]) if NAME in asked else ""
    if column is None:
        return Part(entity=name)
    return Part(entity=name, number=float(record[column.name] or 0), tolerance=tolerance, unit=column.unit)


def _evidence(root: Hop, keys: list[str], asked: tuple[str, ...]) -> Iterator[GoldFact]:
    """Yield the page of every record on the way, and of every record of the answer."""
    for hop in root.below():
        columns = [*dict.fromkeys([*(each.column for each in hop.where), *hop.links]), *(asked if hop is root else ())]
        fact = f"{hop.database}: {', '.join(columns)}"
        yield from (GoldFact(document=key, fact=fact) for key in (keys if hop is root else [hop.key]))


def _path(root: Hop, keys: list[str]) -> Iterator[str]:
    """Yield the actions that find the answer: each hop is looked up by its constraints and opened."""
    for hop in root.below():
        yield lookup_text(hop)
        yield from (f"OPEN {key}" for key in (keys if hop is root else [hop.key]))


def lookup_text(hop: Hop, more: Sequence[Condition] = ()) -> str:
    """Return the LOOKUP of the constraints of a hop, those below it known, and of ``more``."""
    values = [each.value if isinstance(each.value, str) else f"{each.value:.10g}" for each in (*hop.where, *more)]
    tests = [f"{each.column} {each.op} {value}" for each, value in zip((*hop.where, *more), values, strict=True)]
    tests += [f"{column} = {below.key}" for column, below in hop.links.items()]
    return f"LOOKUP {hop.database}: {'; '.join(tests)}"


def question_text(
    library: Library, root: Hop, asked: tuple[str, ...], tolerance: float, *, many: bool, draws: RandomStream
) -> str:
    """Return the question: a sentence for every record, which has a letter in place of its name."""
    letters = {id(hop): chr(ord("A") + place) for place, hop in enumerate(root.below())}
    sentences = [sentence(library, hop, letters, draws) for hop in root.below()]
    noun, letter = library.databases[root.database].noun, letters[id(root)]
    column = next((each for each in library.databases[root.database].columns if each.name == asked[-1]), None)
    error = "" if column is None else f" [error range ± {tolerance:g}]"
    return f"{' '.join(sentences)} {_asking(column, noun, letter, many)}{error}"


def _asking(column: Column | None, noun: str, letter: str, many: bool) -> str:
    if column is None:
        return f"Give the name of {noun} {letter}."
    what = f"{column.labels[0][0].lower()}{column.labels[0][1:]}{f' in {column.unit}' if column.unit else ''}"
    if many:
        return f"Several records fit {noun} {letter}: list the name of each with its {what}, as NAME: NUMBER."
    return f"Give the {what} of {noun} {letter}."


def sentence(library: Library, hop: Hop, letters: Mapping[int, str], draws: RandomStream) -> str:
    """Return a sentence about one record."""
    noun = library.databases[hop.database].noun.capitalize()
    return f"{noun} {letters[id(hop)]} {claims(library, hop, letters, draws)}."


def claims(library: Library, hop: Hop, letters: Mapping[int, str], draws: RandomStream) -> str:
    """Return what holds of one record, in units that may differ from those of the database."""
    schema = library.databases[hop.database]
    said: list[str] = []
    for low, high in zip(hop.where, hop.where[1:] + hop.where[:1], strict=True):
        column = schema.column(low.column)
        if column is not None and low.op != "<=":
            said.append(_claim(column, low, high, draws.choice))
    for name, below in hop.links.items():
        column = schema.column(name)
        if column is not None:
            said.append(f"{column.asks} {library.databases[below.database].noun} {letters[id(below)]}")
    *rest, last = said
    return f"{', '.join(rest)} and {last}" if rest else last


def _claim(column: Column, low: Condition, high: Condition, choose: Callable[..., tuple[str, float]]) -> str:
    if column.kind == "category":
        return f"{column.asks} {low.value}"
    if column.kind == "year":
        return f"{column.asks} between {low.value:g} and {high.value:g}"
    unit, factor = choose(column.units)
    ends = (f"{float(each.value) * factor:.10g}" for each in (low, high))
    return f"{column.asks} {' to '.join(ends)} {unit}"
