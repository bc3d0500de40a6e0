"""Results of explorations: the score of the answer, and the evidence that was shown before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inquitree_gym.exploration.graders import AnswerGrade, Grade
from inquitree_gym.exploration.library import Place
from inquitree_gym.exploration.schema import ExplorationTask
from inquitree_gym.exploration.settings import USUAL_LIMIT
from inquitree_gym.results.score import KindResults, Measure

if TYPE_CHECKING:
    from inquitree_gym.exploration.events import ExplorationEvent
    from inquitree_gym.judging.judgement import Judged
    from inquitree_gym.log import Episode, Header

SEARCHES = ("search", "lookup")
"""Tools whose calls are searches."""
LEGEND = (
    "n: episodes (tasks). score: 1 for a right answer, of T3 the mean F of slots, of T4 right cells / gold cells.\n"
    "p: gold facts whose page was shown / gold facts. guessed: right at p < 1. searches: SEARCH and LOOKUP.\n"
    "The tasks are drawn by a program, so no figure stands beside the paper's."
)


@dataclass(frozen=True, slots=True)
class ExplorationDetail:
    """Part of a score that only explorations have."""

    answer: str | None
    grade: Grade | None
    evidence: float | None
    """Share of the gold facts whose page was shown. None for a task that names none."""
    hops: int
    calls: dict[str, int]
    """Turns by tool."""
    shown: frozenset[Place]
    """Pages that were shown."""
    max_turns: int
    provider: str
    """Name of the source of documents."""
    library: str
    """Name of the library of the task. Its tasks are not independent of each other."""
    repeatable: bool
    """False where the source can answer otherwise tomorrow, as the live web."""

    @property
    def searches(self) -> int:
        """Number of SEARCH and LOOKUP."""
        return sum(self.calls.get(name, 0) for name in SEARCHES)

    @property
    def score(self) -> float | None:
        """Score of the answer in [0, 1]. None for an answer that the judge could not grade."""
        return None if self.grade is None else self.grade.score

    @property
    def verdict(self) -> str:
        """Verdict on a T1 or T2 answer. Empty for another."""
        return self.grade.verdict if isinstance(self.grade, AnswerGrade) else ""


def _grounded(detail: ExplorationDetail) -> float | None:
    return None if detail.score is None or detail.evidence is None else detail.evidence * detail.score


def _guessed(detail: ExplorationDetail) -> float | None:
    return None if detail.score is None or detail.evidence is None else float(detail.score == 1 > detail.evidence)


def _refused(detail: ExplorationDetail) -> float | None:
    return None if detail.grade is None else float(detail.verdict == "not_attempted")


class ExplorationResults(KindResults[ExplorationTask, ExplorationDetail]):
    """Results of explorations. See `KindResults` for the methods."""

    measures = (
        Measure("score", lambda detail: detail.score, "score of the answer", judged=True),
        Measure("p", lambda detail: detail.evidence, "share of the gold facts whose page was shown"),
        Measure("p·score", _grounded, "grounded score", judged=True),
        Measure("guessed", _guessed, "right at p < 1", judged=True),
        Measure("not attempted", _refused, "answers that refuse or are incomplete", judged=True),
        Measure("searches", lambda detail: detail.searches, "searches", digits=1),
    )
    shown = ("score", "p", "p·score", "guessed", "searches")
    groups = "type"
    legend = LEGEND

    def detail(self, episode: Episode[ExplorationEvent], task: ExplorationTask, judged: Judged) -> ExplorationDetail:
        """Return the grade of the answer, and what was shown before it."""
        answered = next((turn for turn in episode.turns if turn.event.answer is not None), None)
        shown = frozenset(place for turn in episode.turns for place in turn.event.shown)
        found = sum((each.document, each.page) in shown for each in task.evidence)
        tools = [turn.event.kind for turn in episode.turns]
        return ExplorationDetail(
            answer=None if answered is None else answered.event.answer,
            grade=None if answered is None else judged.payloads.get(answered.turn),
            evidence=found / len(task.evidence) if task.evidence else None,
            hops=task.hops,
            calls={tool: tools.count(tool) for tool in dict.fromkeys(tools)},
            shown=shown,
            max_turns=episode.header.rules["max_turns"],
            provider=str(episode.header.setup.provider["name"]),
            library=task.library.name,
            repeatable=episode.header.setup.repeatable,
        )

    def limit(self, header: Header, task: ExplorationTask) -> str:
        """Return the turn limit, the same for all types where each has its own."""
        turns = header.rules["max_turns"]
        return USUAL_LIMIT if turns == task.turns else f"{turns} turns"

    def unscored(self, detail: ExplorationDetail) -> int:
        """Return 1 for an answer without a grade."""
        return int(detail.grade is None)

    def plain(self, detail: ExplorationDetail) -> dict[str, Any]:
        """Return the answer, its verdict and how it was found, for JSON."""
        names = ("answer", "verdict", "hops", "calls", "provider", "repeatable")
        return {name: getattr(detail, name) for name in names}


RESULTS = ExplorationResults()
