"""Failures of an episode, from its answer and what was shown (SciExplore, 5.2 and A.7; the counts are ours)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from inquitree_gym.exploration.answers import final_answer, last_table, refuses
from inquitree_gym.exploration.gold import AnswerGold, Frozen, Gold
from inquitree_gym.exploration.graders import AnswerGrade, Grade, TableGrade, grade
from inquitree_gym.exploration.library import NAME, PAPERS, Library
from inquitree_gym.exploration.proofs import answers
from inquitree_gym.exploration.quantities import comparable
from inquitree_gym.exploration.schema import ExplorationTask

if TYPE_CHECKING:
    from inquitree_gym.exploration.results import ExplorationDetail

Failure = Literal[
    "abandoned", "hallucinated", "decoy_lost_before", "decoy_lost_in_context", "format", "premature", "breadth"
]
FEWEST_SEARCHES, SHARE_OF_TURNS = 3, 0.1
"""An agent that gives up after no more search calls than this, or this share of its turns, has abandoned the task."""
BREADTH = 0.5
"""Least key recall of a search that was broad enough."""


class Shown(Frozen):
    """Record of what an episode showed, as far as failures need it."""

    max_turns: int
    searches: int
    """Calls of SEARCH and LOOKUP."""
    pages: tuple[str, ...] = ()
    """Texts that were shown before the answer."""
    unchecked: bool = False
    """T2: no page shown of the named paper had one of the question's constraints."""
    invented: int = 0
    """T3: cited works that do not exist."""
    contradicted: bool = False
    """A record was shown by which the answered entity breaks a constraint."""
    decoys: tuple[Gold, ...] = ()
    """Gold with the abstract's value in place of the body's. A table has only the cells that a decoy exists for."""
    truth_shown: bool = False
    """The page with the true value was shown."""


def contradicted(detail: ExplorationDetail, task: ExplorationTask, library: Library) -> bool:
    """Return True if the page of a record was shown that breaks a constraint and still is in the answer."""
    records, text = library.facts[task.query.database], detail.answer or ""
    wrong = {name for name, _ in detail.shown if name in records} - answers(task.query, library)
    if isinstance(task.gold, AnswerGold):
        kind, part = task.gold.kind, task.gold.parts[0]
        golds = (AnswerGold(kind=kind, parts=(task.part_of(records[name], part),)) for name in wrong)
        return any(grade(gold, text).score == 1 for gold in golds)
    table = last_table(text)
    keys = {comparable(row[0]) for row in table.rows} if table is not None else set()
    return any(comparable(str(records[name][NAME])) in keys for name in wrong)


def unchecked(detail: ExplorationDetail, task: ExplorationTask, library: Library) -> bool:
    """Return True if a T2 answer names a paper, and a page with one of its constraints was not shown."""
    if task.query.database != PAPERS:
        return False
    (column,), said = task.asked, comparable(final_answer(detail.answer or ""))
    named = [name for name, record in library.facts[PAPERS].items() if comparable(str(record[column])) == said]
    pages = [{library.papers[name].places[place] for place in ("head", "methods")} for name in named]
    return bool(pages) and not any(each <= detail.shown for each in pages)


def failures(answer: str | None, given: Grade, shown: Shown) -> tuple[Failure, ...]:
    """Return the failures of an episode. Several may hold, and none where the score is 1."""
    if given.score >= 1.0:
        return ()
    text = answer or ""
    decoy: Failure = "decoy_lost_in_context" if shown.truth_shown else "decoy_lost_before"
    found: dict[Failure, bool] = {
        "abandoned": _gave_up(text, given) and shown.searches <= max(FEWEST_SEARCHES, SHARE_OF_TURNS * shown.max_turns),
        "hallucinated": _hallucinated(text, given, shown),
        decoy: any(_hits(one, text) for one in shown.decoys),
        "format": not isinstance(given, AnswerGrade) and not given.format,
        "premature": shown.contradicted,
        "breadth": isinstance(given, TableGrade) and given.keys.recall < BREADTH,
    }
    return tuple(name for name, holds in found.items() if holds)


def _gave_up(text: str, given: Grade) -> bool:
    """Return True if the answer was graded as none, or says that nothing exists."""
    return given.verdict == "not_attempted" if isinstance(given, AnswerGrade) else refuses(text)


def _hallucinated(text: str, given: Grade, shown: Shown) -> bool:
    """Return True if an answer stands on no page shown, or names a paper unchecked or works that do not exist."""
    if not isinstance(given, AnswerGrade):
        return shown.invented > 0
    if given.verdict != "incorrect":
        return False
    answered = f" {comparable(final_answer(text))} "
    return shown.unchecked or not any(answered in f" {comparable(page)} " for page in shown.pages)


def _hits(decoy: Gold, text: str) -> bool:
    """Return True if an answer gives a decoy, in a cell or as a whole."""
    given = grade(decoy, text)
    return given.attributes.right > 0 if isinstance(given, TableGrade) else given.score == 1.0
