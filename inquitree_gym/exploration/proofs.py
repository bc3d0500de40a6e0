"""Proofs of tasks: one answer, near misses, evidence, and a path that finds it, by brute force over the facts.

Nothing of the builder is used here, so that neither shares a fault of the other. The proofs hold for anybody's tasks
about a library.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from inquitree_gym.exploration.gold import AnswerGold, TableGold
from inquitree_gym.exploration.graders import grade
from inquitree_gym.exploration.library import NAME, Library, Place, Value
from inquitree_gym.exploration.providers import Provider
from inquitree_gym.exploration.rules import ExplorationState, ToolView, act
from inquitree_gym.exploration.schema import Condition, ExplorationTask, Meaning, Query, TableQuery
from inquitree_gym.exploration.settings import ExplorationRules

FEWEST_ROWS, MOST_ROWS = 8, 20
NEAR_MISSES = 2
"""Records, for each hop, that meet all but one of its constraints, at least."""
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {"=": operator.eq, ">=": operator.ge, "<=": operator.le}
_Check = Callable[[str], bool]
_KEY = re.compile(r"\((\S+)\)$", re.MULTILINE)
"""Key at the end of a line of a page."""


def proof_faults(task: ExplorationTask, library: Library, provider: Provider) -> list[str]:
    """Return everything that keeps a task from being proved. Empty for a sound one."""
    checks = (_answer_faults, _table_faults, _near_miss_faults, _wording_faults, _evidence_faults)
    faults = [fault for check in checks for fault in check(task, library)]
    return [*faults, *_path_faults(task, provider)]


def _checks(query: Query, library: Library) -> list[_Check]:
    """Return the constraints of a query as tests of a key. The two ends of a range are one."""
    records = library.records[query.database]

    def compares(conditions: list[Condition]) -> _Check:
        return lambda key: all(_meets(records[key][each.column], each) for each in conditions)

    def leads(column: str, below: set[str]) -> _Check:
        return lambda key: records[key][column] in below

    columns = dict.fromkeys(each.column for each in query.where)
    checks = [compares([each for each in query.where if each.column == column]) for column in columns]
    return checks + [leads(link.column, _answers(link.record, library)) for link in query.links]


def _meets(value: Value, condition: Condition) -> bool:
    return value is not None and _COMPARE[condition.op](value, condition.value)


def _answers(query: Query, library: Library) -> set[str]:
    """Return the keys that meet every constraint, each record tried."""
    checks = _checks(query, library)
    return {key for key in library.records[query.database] if all(check(key) for check in checks)}


def _answer_faults(task: ExplorationTask, library: Library) -> Iterator[str]:
    """Yield a fault unless the query has the gold as its answer, and nothing else. Tables have checks of their own."""
    if isinstance(task.query, TableQuery) or not isinstance(task.gold, AnswerGold):
        return
    records = library.records[task.query.database]
    found = Counter(tuple(records[key][column] for column in task.asked) for key in _answers(task.query, library))
    parts = [(part.entity, part.number) for part in task.gold.parts]
    if found != Counter(tuple(value for value in part if value not in ("", None)) for part in parts):
        yield f"the answer of the query must be gold, got {sorted(map(str, found))} for {parts}"


def _table_faults(task: ExplorationTask, library: Library) -> Iterator[str]:
    """Yield a fault unless a table has query and gold, each of the right shape, and they agree."""
    query, gold = task.query, task.gold
    if isinstance(query, TableQuery) and isinstance(gold, TableGold):
        yield from _shape_faults(task.question, query, gold)
        yield from _cell_faults(query, gold, library, Counter((each.document, each.fact) for each in task.evidence))
    elif isinstance(query, TableQuery) or isinstance(gold, TableGold):
        yield "a table must have a query with columns, and a gold with rows"


def _shape_faults(question: str, query: TableQuery, gold: TableGold) -> Iterator[str]:
    """Yield a fault for wrong headers, vocabularies or numbers of rows."""
    columns = {column.header: {each.word for each in column.vocabulary} for column in query.columns}
    if gold.headers[1:] != tuple(columns) or any(header not in question for header in gold.headers):
        yield f"the question must ask for the headers of gold, got {' | '.join(gold.headers)}"
    if not FEWEST_ROWS <= len(gold.rows) <= MOST_ROWS:
        yield f"a table must have {FEWEST_ROWS} to {MOST_ROWS} rows, got {len(gold.rows)}"
    if {name: words | {"-"} for name, words in columns.items() if words} != {
        name: set(words) for name, words in gold.vocabularies.items()
    }:
        yield "the vocabularies of gold must be those of the query"


def _cell_faults(
    query: TableQuery, gold: TableGold, library: Library, evidence: Counter[tuple[str, str]]
) -> Iterator[str]:
    """Yield a fault unless gold has the rows of the scope with their values, and evidence the page of each."""
    found = {row[0].value: row for row in (_row(key, query, library) for key in _answers(query, library))}
    if set(found) != {row[0] for row in gold.rows}:
        yield f"the rows must be those of the scope, got {len(gold.rows)} for {len(found)}"
    for row in gold.rows:
        for header, cell, true in zip(gold.headers, row, found.get(row[0], ()), strict=False):
            if not _says(cell, true.value):
                yield f"'{header}' of {row[0]} must be {true.value}, got '{cell}'"
    named = [pair for row in found.values() for pair in zip(gold.headers, row, strict=False)]
    if evidence != Counter((true.holder, header) for header, true in named if true.value is not None):
        yield "every cell of gold must have the page that shows it as evidence, and no other"


class _True(NamedTuple):
    """A value of the facts, and the record whose page shows it."""

    value: Value
    holder: str


def _row(key: str, query: TableQuery, library: Library) -> tuple[_True, ...]:
    """Return the values of a row, each by its own way through the facts."""
    row = [_True(library.records[query.database][key][NAME], key)]
    for column in query.columns:
        database, holder = query.database, key
        for link in column.path[:-1]:
            holder, database = str(library.records[database][holder][link]), _target(library, database, link)
        value = library.records[database][holder][column.path[-1]]
        if target := _target(library, database, column.path[-1]):
            value = library.records[target][str(value)][NAME]
        words = [each.word for each in column.vocabulary if value is not None and _means(each, value)]
        row.append(_True((words or ["-"])[0] if column.vocabulary and value is not None else value, holder))
    return tuple(row)


def _target(library: Library, database: str, name: str) -> str:
    column = library.databases[database].column(name)
    return column.to if column is not None else ""


def _means(meaning: Meaning, value: float | str) -> bool:
    """Return whether a word stands for a value."""
    if isinstance(value, str):
        return value in meaning.values
    bounded = meaning.least is not None or meaning.below is not None
    return (
        bounded
        and (meaning.least is None or value >= meaning.least)
        and (meaning.below is None or value < meaning.below)
    )


def _says(cell: str, value: Value) -> bool:
    """Return whether a cell of gold is a value of the facts."""
    if value is None or isinstance(value, str):
        return cell == (value or "")
    return cell != "" and float(cell) == value


def _near_miss_faults(task: ExplorationTask, library: Library) -> Iterator[str]:
    """Yield a fault for every hop with fewer near misses than there have to be."""
    for query in task.query.records():
        checks = _checks(query, library)
        near = sum(sum(check(key) for check in checks) == len(checks) - 1 for key in library.records[query.database])
        if near < NEAR_MISSES:
            yield f"{query.database} must have {NEAR_MISSES} near misses, got {near}"


def _wording_faults(task: ExplorationTask, library: Library) -> Iterator[str]:
    """Yield a fault for every key and every invented name that the question says."""
    said = task.question.lower()
    for query in task.query.records():
        for key, record in library.records[query.database].items():
            if key.lower() in said or str(record[NAME]).lower() in said:
                yield f"the question must name no record, got {key} ({record[NAME]})"


def _evidence_faults(task: ExplorationTask, library: Library) -> Iterator[str]:
    """Yield a fault for evidence on a page that does not exist."""
    for each in task.evidence:
        document = library.documents.get(each.document)
        if document is None or each.page > len(document.pages):
            yield f"evidence must be on a page of the library, got {each.document}, page {each.page}"


def _path_faults(task: ExplorationTask, provider: Provider) -> Iterator[str]:
    """Yield a fault unless the gold path works through the tools, shows all evidence and takes half of the turns."""
    rules = ExplorationRules(max_turns=task.turns)
    if len(task.path) > task.turns // 2:
        yield f"the path must take at most {task.turns // 2} turns, got {len(task.path)}"
    state, view, shown, listed = ExplorationState(0), ToolView("invalid"), set[Place](), set[str]()
    for action in task.path:
        state, view = act(state, action, provider, rules)
        if view.fault:
            yield f"the path must use the tools rightly, got '{action}': {view.fault}"
        if view.document is not None and view.document.id not in listed:
            yield f"the path must open what a LOOKUP or a page names, got {view.document.id}"
        if view.document is not None:
            listed |= set(_KEY.findall(view.document.pages[view.page - 1]))
        listed |= {key for key, _ in view.listing.records} if view.listing else set()
        shown |= set(view.shown)
    if missing := [each.document for each in task.evidence if (each.document, each.page) not in shown]:
        yield f"the path must show all evidence, got none of {', '.join(missing)}"
    if state.phase != "end" or grade(task.gold, view.answer).score < 1:
        yield "the path must end with the right answer"
