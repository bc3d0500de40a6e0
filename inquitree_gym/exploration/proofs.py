"""Proofs of tasks: one answer, near misses, evidence, and a path that finds it, by brute force over the facts.

Nothing of the builder is used here, so that neither shares a fault of the other. The proofs hold for anybody's tasks
about a library.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from inquitree_gym.exploration.actions import words_of
from inquitree_gym.exploration.citing import work_of
from inquitree_gym.exploration.gold import AnswerGold, CitationGold, TableGold
from inquitree_gym.exploration.graders import grade
from inquitree_gym.exploration.library import JOIN, METHOD, NAME, PAPERS, Document, Library, Place, Value
from inquitree_gym.exploration.providers import Provider
from inquitree_gym.exploration.rules import ExplorationState, ToolView, act
from inquitree_gym.exploration.schema import Condition, ExplorationTask, Query, ShelfSpec, TableQuery, TextQuery
from inquitree_gym.exploration.settings import ExplorationRules

FEWEST_ROWS, MOST_ROWS = 8, 20
NEAR_MISSES = 2
"""Records, for each hop, that meet all but one of its constraints, at least."""
AMBIGUOUS = 8
"""Papers, at least, that the words of a T2 question leave, and that its other constraints leave."""
MOST_WORKS = 2
"""Papers that a slot of a text cites at most."""
SHARED = 0.2
"""Share of the content words of a T2 question that its paper has, at most."""
STOP_WORDS = frozenset(
    words_of(
        "a about after all along among an and are as at be been before by did do does each for from gave give had has "
        "have how in into is it its more most much no not of on one or other out over some something than that the "
        "their them then there these they this to under up was were what when where whether which while who with would"
    )
)
"""Words that are no content."""
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, ">=": operator.ge, "<=": operator.le, "has": lambda value, one: one in str(value).split(JOIN),
}  # fmt: skip
_Check = Callable[[str], bool]
_KEY = re.compile(r"\((\S+)\)$", re.MULTILINE)
"""Key at the end of a line of a page."""


def proof_faults(task: ExplorationTask, library: Library, provider: Provider) -> list[str]:
    """Return everything that keeps a task from being proved. Empty for a sound one.

    The shelf has too few papers for ambiguity and near misses. There an answer is only the right one, and in reach.
    """
    checks: tuple[Callable[[ExplorationTask, Library], Iterator[str]], ...]
    checks = (_answer_faults, _table_faults, _wording_faults, _evidence_faults)
    if not isinstance(task.library, ShelfSpec):
        checks += (_retrieval_faults, _citation_faults, _overlap_faults, _near_miss_faults)
    faults = [fault for check in checks for fault in check(task, library)]
    return [*faults, *_path_faults(task, provider)]


def _checks(query: Query, library: Library) -> list[_Check]:
    """Return the constraints of a query as tests of a key. The two ends of a range are one."""
    records = library.facts[query.database]

    def compares(conditions: list[Condition]) -> _Check:
        return lambda key: all(_meets(records[key][each.column], each) for each in conditions)

    def leads(column: str, below: set[str]) -> _Check:
        return lambda key: records[key][column] in below

    columns = dict.fromkeys(each.column for each in query.where)
    checks = [compares([each for each in query.where if each.column == column]) for column in columns]
    return checks + [leads(link.column, answers(link.record, library)) for link in query.links]


def _meets(value: Value, condition: Condition) -> bool:
    return value is not None and _COMPARE[condition.op](value, condition.value)


def answers(query: Query, library: Library) -> set[str]:
    """Return the keys that meet every constraint, each record tried."""
    checks = _checks(query, library)
    return {key for key in library.facts[query.database] if all(check(key) for check in checks)}


def _answer_faults(task: ExplorationTask, library: Library) -> Iterator[str]:
    """Yield a fault unless the query has the gold as its answer, and nothing else."""
    if not isinstance(task.gold, AnswerGold) or isinstance(task.query, TextQuery):
        return
    records = library.facts[task.query.database]
    found = Counter(tuple(records[key][column] for column in task.asked) for key in answers(task.query, library))
    parts = [(part.entity, part.number) for part in task.gold.parts]
    if found != Counter(tuple(value for value in part if value not in ("", None)) for part in parts):
        yield f"the answer of the query must be gold, got {sorted(map(str, found))} for {parts}"


def _retrieval_faults(task: ExplorationTask, library: Library) -> Iterator[str]:
    """Yield a fault unless words and constraints are ambiguous, each without the other, and say little of the paper."""
    if isinstance(task.query, TextQuery) or task.query.database != PAPERS:
        return
    words = tuple(each for each in task.query.where if each.column in METHOD)
    others = tuple(each for each in task.query.where if each.column not in METHOD)
    for part, where in (("words", words), ("other constraints", others)):
        left = answers(task.query.model_copy(update={"where": where}), library) if where else ()
        if len(left) < AMBIGUOUS:
            yield f"the {part} of the question must leave {AMBIGUOUS} papers at least, got {len(left)}"


def _citation_faults(task: ExplorationTask, library: Library) -> Iterator[str]:
    """Yield a fault unless each slot has all papers that report its claim, and others report near ones."""
    query, gold, papers = task.query, task.gold, library.facts[PAPERS]
    if not isinstance(query, TextQuery) or not isinstance(gold, CitationGold):
        return
    numbers = [slot.number for slot in gold.slots]
    if numbers != [*range(1, len(query.slots) + 1)] or any(f"[ref.{each}]" not in task.question for each in numbers):
        yield f"gold must have the {len(query.slots)} slots of the query, each in the question, got {numbers}"
    for slot, wanted in zip(gold.slots, query.slots, strict=False):
        found, claim = answers(wanted, library), {each.column: each.value for each in wanted.where}
        if not 1 <= len(found) <= MOST_WORKS or {work_of(key, library) for key in found} != {*slot.works}:
            yield f"slot {slot.number} must have the 1 to {MOST_WORKS} papers of its query, got {sorted(found)}"
        alike = wanted.model_copy(update={"where": tuple(each for each in wanted.where if each.column == "quantity")})
        others = [papers[key] for key in answers(alike, library)]
        same = [each["condition"] for each in others if each["direction"] == claim.get("direction")]
        if len(same) == len(others) or {*same} <= {claim.get("condition")}:
            yield f"other papers must report the opposite of slot {slot.number}, and the same elsewhere"


def _overlap_faults(task: ExplorationTask, library: Library) -> Iterator[str]:
    """Yield a fault for every gold paper with too many words of the question."""
    queries = task.query.slots if isinstance(task.query, TextQuery) else (task.query,)
    for key in {key for query in queries if query.database == PAPERS for key in answers(query, library)}:
        if (share := shared_words(task.question, library.documents[key])) > SHARED:
            yield f"the question must share at most {SHARED:.0%} of its content words with its paper, got {share:.0%}"


def shared_words(question: str, document: Document) -> float:
    """Return the share of the content words of a question that a document has."""
    asked = {*words_of(question)} - STOP_WORDS
    return len(asked & {*words_of("\n".join((document.title, *document.pages)))}) / len(asked)


def _table_faults(task: ExplorationTask, library: Library) -> Iterator[str]:
    """Yield a fault unless a table has the rows of its scope, each with its values, and the page of every value."""
    query, gold = task.query, task.gold
    if not isinstance(query, TableQuery) or not isinstance(gold, TableGold):
        return
    closed = {each.header: {*each.vocabulary, "-"} for each in query.columns if each.vocabulary}
    asked = (gold.headers[0], *(column.header for column in query.columns))
    if gold.headers != asked or closed != {name: set(words) for name, words in gold.vocabularies.items()}:
        yield f"gold must have the columns of the query, got {' | '.join(gold.headers)}"
    if lost := [header for header in gold.headers if header not in task.question]:
        yield f"the question must ask for every header, got none of {' | '.join(lost)}"
    found = {row[0][0]: row for row in (_row(key, query, library) for key in answers(query, library))}
    fewest = 1 if isinstance(task.library, ShelfSpec) else FEWEST_ROWS
    if not fewest <= len(gold.rows) <= MOST_ROWS or set(found) != {row[0] for row in gold.rows}:
        yield f"the rows must be the {len(found)} of the scope, {fewest} to {MOST_ROWS}, got {len(gold.rows)}"
    for row in gold.rows:
        true = [cell for cell, _ in found.get(row[0], ())]
        if true and true != list(row):
            yield f"the row of {row[0]} must be {' | '.join(true)}, got {' | '.join(row)}"
    pairs = [pair for row in found.values() for pair in zip(asked, row, strict=True)]
    pages = Counter((page, header) for header, (cell, page) in pairs if cell)
    if pages != Counter((each.document, each.fact) for each in task.evidence):
        yield "every cell of gold must have the page that shows it as evidence, and no other"


def _row(key: str, query: TableQuery, library: Library) -> list[tuple[str, str]]:
    """Return the cells of a row with the records whose pages show them, each by its own way through the facts."""
    row = [(str(library.records[query.database][key][NAME]), key)]
    for column in query.columns:
        database, value, page = query.database, cast(Value, key), key
        for name in column.path:
            page = str(value)
            value = library.records[database][page][name]
            database = next(each.to for each in library.databases[database].columns if each.name == name)
        if database:
            value = library.records[database][str(value)][NAME]
        cell = "" if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)
        if column.vocabulary and value is not None:
            cell = next((word for word, holds in column.vocabulary.items() if _meets(value, holds)), "-")
        row.append((cell, page))
    return row


def near_misses(query: Query, library: Library) -> set[str]:
    """Return the keys that meet all constraints but one, each record tried."""
    checks = _checks(query, library)
    return {key for key in library.facts[query.database] if sum(check(key) for check in checks) == len(checks) - 1}


def _near_miss_faults(task: ExplorationTask, library: Library) -> Iterator[str]:
    """Yield a fault for every hop with fewer near misses than there have to be."""
    for query in task.query.records():
        if (near := len(near_misses(query, library))) < NEAR_MISSES:
            yield f"{query.database} must have {NEAR_MISSES} near misses, got {near}"


def _wording_faults(task: ExplorationTask, library: Library) -> Iterator[str]:
    """Yield a fault for every key and every invented name that the question says."""
    said = task.question.lower()
    for query in task.query.records():
        for key, record in library.facts[query.database].items():
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
    read = {*words_of(task.question)}
    for action in task.path:
        state, view = act(state, action, provider, rules)
        if view.tool == "search" and (unread := {*words_of(action)[1:]} - read):
            yield f"the path must search with words of the question or of pages, got {', '.join(sorted(unread))}"
        if view.fault:
            yield f"the path must use the tools rightly, got '{action}': {view.fault}"
        if view.document is not None and view.document.id not in listed:
            yield f"the path must open what a tool or a page names, got {view.document.id}"
        if view.document is not None:
            read |= {*words_of(view.document.pages[view.page - 1])}
            listed |= set(_KEY.findall(view.document.pages[view.page - 1]))
        read |= {word for _, name in view.listing.records for word in words_of(name)} if view.listing else set()
        listed |= {key for key, _ in view.listing.records} if view.listing else {hit.id for hit in view.hits}
        shown |= set(view.shown)
    if missing := [each.document for each in task.evidence if (each.document, each.page) not in shown]:
        yield f"the path must show all evidence, got none of {', '.join(missing)}"
    if state.phase != "end" or grade(task.gold, view.answer).score < 1:
        yield "the path must end with the right answer"
