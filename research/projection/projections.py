"""Projections of the shipped papers, labelled claim by claim by readers who did not write them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from inquitree_gym.errors import OptionError
from inquitree_gym.trees.disclosure import Level, ProjectionTask
from research.static.proposals import LabelledSet, load_sets

PROJECTIONS = Path(__file__).parent / "projections"
"""Folder of the labelled projections: one file per tree."""

ProjectionKind = Literal["perfect", "half", "reversed", "undirected", "hedged", "played"]
WRITTEN_KINDS: tuple[ProjectionKind, ...] = ("perfect", "half", "reversed", "undirected", "hedged")
Label = Literal["same", "opposed", "other", "none"]
RATINGS: dict[Label, int] = {"same": 1, "opposed": -1, "other": 0, "none": 0}
"""Rating of each label."""


class LabelledProjection(BaseModel):
    """A projection with a label for every true claim."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ProjectionKind
    level: Level | None = None
    """Level of a played projection. None for a written one."""
    author: str
    text: str
    labels: dict[str, Label]
    """Label by id of the true claim."""
    extra: int
    """Number of extraneous assertions, which belong to no true claim."""
    sure: bool
    """False if the labeller was in doubt."""
    labeller: str
    second: dict[str, Label] = {}
    """Labels of a second labeller, who did not see the first ones. Empty without one."""

    @property
    def group(self) -> str:
        """The kind, and the level of a played projection."""
        return self.kind if self.level is None else f"{self.kind}, {self.level}"

    def ratings(self, task: ProjectionTask) -> list[int]:
        """Return the rating of every true claim of the task by the labels.

        Raises:
            OptionError: the labels are not those of the task's claims.
        """
        ids = [claim.id for claim in task.claims]
        if set(ids) != set(self.labels):
            raise OptionError(
                f"a projection of {task.id} has labels for {', '.join(sorted(self.labels))}, but the task has the "
                f"claims {', '.join(ids)}; label it again"
            )
        return [RATINGS[self.labels[name]] for name in ids]


class ProjectionSet(LabelledSet):
    """The projections of one paper."""

    projections: tuple[LabelledProjection, ...]


def load_projections(folder: Path = PROJECTIONS) -> list[ProjectionSet]:
    """Read every set of a folder, in paper order.

    Raises:
        OptionError: the folder holds no set, or a file is invalid.
    """
    return load_sets(folder, ProjectionSet, "projections")
