"""Judges of answers: the graders by program, and grades as logs and files of judgements keep them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from inquitree_gym.errors import JudgeError
from inquitree_gym.exploration.graders import Grade, grade
from inquitree_gym.exploration.schema import ExplorationTask
from inquitree_gym.judging.judgement import LOCAL, InProcessJudge, Judged, JudgedText, version_of
from inquitree_gym.judging.registry import ChatOptions
from inquitree_gym.judging.stored import Payload

if TYPE_CHECKING:
    from inquitree_gym.log import Episode

VERSION = 1
"""Version of the local judge."""


class StoredGrade(Payload):
    """Grade of an answer."""

    grade: Grade | None

    @classmethod
    def _of(cls, task: ExplorationTask, judged: Grade | None) -> Self:
        stored = cls(grade=judged)
        stored.check(task)
        return stored

    def check(self, task: ExplorationTask) -> None:
        """See `Payload.check`."""
        if self.grade is not None and self.grade.kind != task.kind:
            raise JudgeError(f"a grade of {task.id} must be of {task.kind}, got {self.grade.kind}. Judge it again.")

    @property
    def value(self) -> Grade | None:
        """The grade. None where the judge could not give one."""
        return self.grade

    @property
    def unscored(self) -> int:
        """1 for an answer without a grade, else 0."""
        return int(self.grade is None)


@dataclass(frozen=True)
class Grader:
    """The local judge of the answers to one task."""

    task: ExplorationTask

    def judge(self, text: str, /) -> Grade:
        """Return the grade of an answer by the rules of its type."""
        return grade(self.task.gold, text)


class ExplorationJudging:
    """Judges of explorations. See `protocols.Judging` for the members."""

    noun = "answer"
    part = "answer"
    payload = StoredGrade
    presets: Mapping[str, Mapping[str, Any]] = {}
    options = ChatOptions
    judges: Mapping[str, Any] = {LOCAL: lambda *_: InProcessJudge(LOCAL, lambda: {"version": VERSION}, Grader)}

    def texts(self, episode: Episode[Any]) -> Iterator[JudgedText]:
        """Yield the answer, if there is one."""
        answers = ((turn.turn, turn.event.answer) for turn in episode.turns)
        yield from (JudgedText(turn, answer) for turn, answer in answers if answer is not None)

    def about(self, task: ExplorationTask, episode: Episode[Any]) -> ExplorationTask:
        """Return the task."""
        return task

    def own_judged(self, episode: Episode[Any], task: ExplorationTask) -> Judged:
        """Return the grade by the judge of the reward."""
        judge = episode.header.setup.judge
        grades = {turn.turn: turn.event.grade for turn in episode.turns if turn.event.answer is not None}
        return Judged(str(judge.get("name", "unknown")), version_of(judge), grades)


JUDGING = ExplorationJudging()
