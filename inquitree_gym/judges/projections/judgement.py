"""Judgements of projections about any task, and the judges that give them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from inquitree_gym.judges.projections.alignment import Alignment, ProjectionJudge
from inquitree_gym.judges.records import JudgeReply
from inquitree_gym.judges.registry import Configured
from inquitree_gym.llm import Usage
from inquitree_gym.trees.disclosure import ProjectionTask


@dataclass(frozen=True, slots=True)
class ProjectionJudgement:
    """Alignment of one projection."""

    alignment: Alignment | None
    """None for a projection that the judge could not align, which is unscored."""
    usage: Usage = field(default_factory=Usage)
    unread: int = 0
    """Number of replies that could not be read."""
    why: str = ""
    """Reason why the projection is unscored; empty if it is scored."""
    replies: tuple[JudgeReply, ...] = ()
    """Replies of a chat model behind the alignment, in the order of the requests; empty for other judges."""

    @property
    def unscored(self) -> bool:
        """True if a rating is missing, so that there is no score."""
        return self.alignment is None or not self.alignment.complete


class AsyncProjectionJudge(Protocol):
    """Judge of projections about any task."""

    @property
    def name(self) -> str:
        """Name by which the judge was requested."""

    @property
    def config(self) -> dict[str, Any]:
        """Settings that determine the ratings, apart from task and projection; plain values, with ``version``."""

    async def align(self, task: ProjectionTask, projection: str) -> ProjectionJudgement:
        """Align one projection with the true claims of a task."""


@dataclass(frozen=True)
class InProcessProjectionJudge(Configured):
    """`AsyncProjectionJudge` without a service: one judge per task that computes in this process."""

    for_task: Callable[[ProjectionTask], ProjectionJudge]
    """Function that returns the judge of a task, the same object for the same task."""

    async def align(self, task: ProjectionTask, projection: str) -> ProjectionJudgement:
        """See `AsyncProjectionJudge.align`. Blocks the event loop while it computes."""
        return ProjectionJudgement(self.for_task(task).align(projection))
