"""The scores of one episode of projections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from inquitree_gym.errors import LogError
from inquitree_gym.judges.projections.alignment import Alignment, Area, Variant, area_under_levels
from inquitree_gym.judges.projections.records import recorded_alignment
from inquitree_gym.judges.quality import judge_label
from inquitree_gym.judges.records import version_of
from inquitree_gym.log import AlignmentRecord, Episode, Header
from inquitree_gym.scoring.episode import agent_label, optional_word
from inquitree_gym.trees.disclosure import LEVELS, ProjectionTask

VARIANTS: tuple[Variant, ...] = get_args(Variant)


@dataclass(frozen=True, slots=True)
class LevelScore:
    """Score of the projection at one level."""

    level: str
    text: str
    """The projection."""
    alignment: Alignment | None = field(compare=False)
    """Claims and ratings; None where the judge found no claims."""
    f1: Mapping[Variant, float | None]
    """F1 in [0, 1] by variant; None for an unscored projection."""

    @property
    def unscored(self) -> bool:
        """True for a projection that the judge could not score."""
        return self.f1["paper"] is None


@dataclass(frozen=True, slots=True)
class ProjectionEpisodeScore:
    """Scores of one episode of projections."""

    task: str
    domain: str
    """Group of the paper in reports."""
    agent: str
    """See `agent_label`."""
    model: str | None
    """litellm's name of the agent's model; None for an agent without one."""
    published: str
    """Publication date of the paper, as precise as known: a day, a month or a year."""
    seed: int
    rules: str
    """Form of the projections, and the levels if they are not those of the paper."""
    judge: str
    """Name of the judge."""
    judge_version: int
    levels: tuple[LevelScore, ...]
    """Scores of the levels, in the order of the episode."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Configuration of the agent, as logged."""

    @property
    def cluster(self) -> str:
        """Episodes with the same cluster are not independent: those on one paper."""
        return self.task

    @property
    def judged_by(self) -> str:
        """Name and version of the judge."""
        return judge_label(self.judge, self.judge_version)

    @property
    def unscored(self) -> int:
        """Number of projections that the judge could not score."""
        return sum(each.unscored for each in self.levels)

    def f1_at(self, level: str, variant: Variant = "paper") -> float | None:
        """Return the F1 at a level; None without that level, or for an unscored projection."""
        return next((each.f1[variant] for each in self.levels if each.level == level), None)

    def mean_f1(self, variant: Variant = "paper") -> float | None:
        """Return the F1 averaged over the levels, in [0, 1]; None with an unscored projection."""
        return self.area(variant, "mean")

    def area(self, variant: Variant = "paper", auc: Area = "trapezoid") -> float | None:
        """Return the area under the F1 of the levels; None with an unscored projection. See `area_under_levels`."""
        found = [value for each in self.levels if (value := each.f1[variant]) is not None]
        return float(area_under_levels(np.array(found), auc)) if len(found) == len(self.levels) else None

    def as_plain(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        levels = [
            {"level": each.level, "projection": each.text, **{f"f1 ({name})": value for name, value in each.f1.items()}}
            for each in self.levels
        ]
        kept = ("task", "domain", "agent", "model", "published", "seed", "rules", "judge", "judge_version")
        return {name: getattr(self, name) for name in kept} | {"levels": levels, "auc": self.area()}


def score_projections(
    episode: Episode, task: ProjectionTask, judged: Mapping[int, AlignmentRecord] | None = None
) -> ProjectionEpisodeScore:
    """Score one finished episode of projections from its log and its task alone.

    Args:
        episode: the log.
        task: its task.
        judged: alignments by another judge, by turn; None takes the logged alignments, which are those of the judge of
            the reward. A turn without an alignment is unscored.

    Raises:
        LogError: the episode was played on another version of the task, or names no judge.
    """
    header = episode.header
    if header.task.digest != task.digest:
        raise LogError(
            f"the log is about {header.task.id} with digest {header.task.digest[:12]}, but the given task is {task.id} "
            f"with {task.digest[:12]}; score it with the task it was played on"
        )
    if header.judge is None:
        raise LogError(f"the log about {header.task.id} names no judge of its projections; play the episode again")
    return ProjectionEpisodeScore(
        task=task.id,
        domain=task.disclosure.domain,
        agent=agent_label(header.agent),
        model=optional_word(header.agent.get("model")),
        published=task.paper.published.written,
        seed=header.seed,
        rules=rules_of(header),
        judge=str(header.judge.get("name", "unknown")),
        judge_version=version_of(header.judge),
        levels=tuple(
            level_score(
                turn.projection.level, turn.action, turn.projection if judged is None else judged.get(turn.turn)
            )
            for turn in episode.turns
        ),
        config=header.agent,
    )


def level_score(level: str, text: str, record: AlignmentRecord | None) -> LevelScore:
    """Return the score of one projection; a missing record leaves it unscored."""
    alignment = None if record is None else recorded_alignment(record)
    if alignment is None or record is None or record.f1 is None:
        return LevelScore(level, text, alignment, dict.fromkeys(VARIANTS))
    return LevelScore(level, text, alignment, {name: float(alignment.score(name).f1) for name in VARIANTS})


def rules_of(header: Header) -> str:
    """Return the form of the projections, and the levels in order if they are not those of the paper."""
    form, levels = str(header.rules["form"]), tuple(header.rules["levels"])
    return form if levels == LEVELS else f"{form}, {' → '.join(levels)}"
