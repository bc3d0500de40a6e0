"""Judges of the projections of an environment: the local judge of each task, or a judge that asks a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from inquitree_gym.embeddings import Embedder, TextVectors, load_embedder
from inquitree_gym.envs.asking import JudgeAhead
from inquitree_gym.envs.runtime_cache import Scope
from inquitree_gym.errors import JudgeError
from inquitree_gym.judges.projections.alignment import Alignment
from inquitree_gym.judges.projections.judgement import (
    AsyncProjectionJudge,
    InProcessProjectionJudge,
    ProjectionJudgement,
)
from inquitree_gym.judges.projections.local import (
    LocalProjectionJudge,
    local_projection_config,
    local_projection_judge,
)
from inquitree_gym.judges.projections.registry import load_projection_judge
from inquitree_gym.judges.registry import LOCAL
from inquitree_gym.judges.sense import JUDGE_EMBEDDER
from inquitree_gym.llm import Usage
from inquitree_gym.trees.disclosure import ProjectionTask


@dataclass(frozen=True)
class LocalProjections:
    """The local judges of all tasks, on one embedder."""

    embedder: Embedder
    scope: Scope = "shared"
    """Lifetime of the vectors of a task; see `RuntimeCache`."""

    @classmethod
    def load(cls, embedder: str | Embedder | None) -> Self:
        """Return the judges on an embedder; None for the embedder that their settings are calibrated for."""
        given = JUDGE_EMBEDDER if embedder is None else embedder
        return cls(load_embedder(given) if isinstance(given, str) else given)

    @property
    def config(self) -> dict[str, Any]:
        """Name, version and settings of the judge, for logs."""
        return {"name": LOCAL, **local_projection_config(self.embedder)}

    def within(self, scope: Scope) -> Self:
        """Return the judges with vectors of another lifetime."""
        return replace(self, scope=scope)

    def for_task(self, task: ProjectionTask) -> LocalProjectionJudge:
        """Return the judge of a task."""
        if self.scope == "shared":
            return local_projection_judge(task, self.embedder)
        lasting = self.scope == "private"
        vectors = TextVectors(task.digest, tuple(task.texts()), self.embedder, lasting=lasting)
        return LocalProjectionJudge(task, vectors)


class AskedProjectionJudge(JudgeAhead[AsyncProjectionJudge, ProjectionTask, ProjectionJudgement]):
    """The judge of the projections of one environment, if it is not the local judge."""

    graded = "a projection"

    def __init__(self, judge: AsyncProjectionJudge) -> None:
        """Ask ``judge``."""
        super().__init__(judge, waits=not isinstance(judge, InProcessProjectionJudge))
        self._recalled: ProjectionJudgement | None = None

    @classmethod
    def load(cls, judge: str | AsyncProjectionJudge) -> Self | None:
        """Return the judge with a name, or a given judge as it is; None for the local judge.

        See `load_projection_judge` for the errors.
        """
        return None if judge == LOCAL else cls(load_projection_judge(judge))

    def recall(self, alignment: Alignment | None) -> None:
        """Take the next alignment from a log instead of asking the judge; None for an unscored projection."""
        self._recalled = ProjectionJudgement(alignment)

    def align(self, task: ProjectionTask, projection: str) -> Alignment | None:
        """Return the alignment of a projection; None if a rating could not be read.

        Raises:
            RewardError: the judge gave no usable answer.
            BudgetError: a cap is reached.
        """
        recalled, self._recalled = self._recalled, None
        if recalled is not None:
            self._ahead = self.judgement = None
            return recalled.alignment
        return self._judge(task, projection).alignment

    def _judge_here(self, task: ProjectionTask, projection: str) -> ProjectionJudgement | None:
        if not isinstance(self.judge, InProcessProjectionJudge):
            return None
        return ProjectionJudgement(self.judge.for_task(task).align(projection))

    async def _request(self, task: ProjectionTask, projection: str) -> ProjectionJudgement:
        return await self.judge.align(task, projection)

    def _shortfall(self, task: ProjectionTask, judgement: ProjectionJudgement) -> tuple[Usage, str]:
        alignment = judgement.alignment
        if alignment is not None and len(alignment.analogous) != len(task.claims):
            raise JudgeError(
                f"the judge '{self.judge.name}' aligned {len(alignment.analogous)} of the {len(task.claims)} claims of "
                f"{task.id}; return one pair per claim, in their order"
            )
        return judgement.usage, judgement.why or "a rating is missing" if judgement.unscored else ""
