"""Failures of an episode, from its answer and what was shown (SciExplore, 5.2 and A.7; the counts are ours)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from inquitree_gym.exploration.answers import citations, final_answer, last_table, refuses
from inquitree_gym.exploration.gold import AnswerGold, Frozen
from inquitree_gym.exploration.graders import AnswerGrade, Grade, TableGrade, grade
from inquitree_gym.exploration.library import NAME, PAPERS, Library, Record
from inquitree_gym.exploration.proofs import answers
from inquitree_gym.exploration.quantities import comparable
from inquitree_gym.exploration.schema import ExplorationTask, TextQuery

if TYPE_CHECKING:
    from inquitree_gym.exploration.results import ExplorationDetail

Failure = Literal["abandoned", "hallucinated", "format", "premature", "breadth"]
"""Failures of the paper, but "abstract for body": no task asks for a number that the two give differently."""
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


def contradicted(detail: ExplorationDetail, task: ExplorationTask, library: Library) -> bool:
    """Return True if the page of a record was shown that breaks a constraint and still is in the answer."""
    records, text = library.facts[task.query.database], detail.answer or ""
    if isinstance(task.query, TextQuery):
        return _cites_shown(detail, task.query, library)
    wrong = {name for name, _ in detail.shown if name in records} - answers(task.query, library)
    if isinstance(task.gold, AnswerGold):
        kind, part = task.gold.kind, task.gold.parts[0]
        golds = (AnswerGold(kind=kind, parts=(task.part_of(records[name], part),)) for name in wrong)
        return any(grade(gold, text).score == 1 for gold in golds)
    table = last_table(text)
    keys = {comparable(row[0]) for row in table.rows} if table is not None else set()
    return any(comparable(str(records[name][NAME])) in keys for name in wrong)


def _cites_shown(detail: ExplorationDetail, query: TextQuery, library: Library) -> bool:
    """Return True if a paper that was shown is cited in a slot whose claim it does not report."""
    papers = library.facts[PAPERS]
    shown = {name for name, _ in detail.shown if name in papers}
    wrong = {number: shown - answers(slot, library) for number, slot in enumerate(query.slots, 1)}
    cited = [(each.slot, f" {comparable(each.text)} ") for each in citations(detail.answer or "")]
    return any(_titled(papers[name]) in text for slot, text in cited for name in wrong.get(slot, ()))


def unchecked(detail: ExplorationDetail, task: ExplorationTask, library: Library) -> bool:
    """Return True if a T2 answer names a paper, and a page with one of its constraints was not shown."""
    if task.kind != "T2":
        return False
    (column,), said = task.asked, comparable(final_answer(detail.answer or ""))
    named = [name for name, record in library.facts[PAPERS].items() if comparable(str(record[column])) == said]
    pages = [{library.papers[name].places[place] for place in ("head", "methods")} for name in named]
    return bool(pages) and not any(each <= detail.shown for each in pages)


def invented(detail: ExplorationDetail, task: ExplorationTask, library: Library) -> int:
    """Return the number of works that a T3 answer cites and the library has not."""
    titles = [_titled(record) for record in library.facts[PAPERS].values()] if task.kind == "T3" else []
    texts = [f" {comparable(cited.text)} " for cited in citations(detail.answer or "")] if titles else []
    return sum(not any(title in text for title in titles) for text in texts)


def _titled(record: Record) -> str:
    """Return the title of a paper as it stands between the words of a citation."""
    return f" {comparable(str(record[NAME]))} "


def failures(answer: str | None, given: Grade, shown: Shown) -> tuple[Failure, ...]:
    """Return the failures of an episode. Several may hold, and none where the score is 1."""
    if given.score >= 1.0:
        return ()
    text = answer or ""
    found: dict[Failure, bool] = {
        "abandoned": _gave_up(text, given) and shown.searches <= max(FEWEST_SEARCHES, SHARE_OF_TURNS * shown.max_turns),
        "hallucinated": _hallucinated(text, given, shown),
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
