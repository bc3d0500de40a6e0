"""Runtime of a task under one set of rules: texts, judge and weights, and the info of its turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from inquitree_gym.envs.projection.observations import ProjectionRenderer
from inquitree_gym.envs.projection.rules import ProjectionRules
from inquitree_gym.envs.text import VectorTaker
from inquitree_gym.judges.projections.alignment import (
    Alignment,
    Floats,
    ProjectionJudge,
    ProjectionScore,
    level_weights,
)
from inquitree_gym.matching import MAX_ACTION_LENGTH
from inquitree_gym.prompts import Prompts
from inquitree_gym.trees.disclosure import Level, OutcomeClaim, ProjectionTask

MAX_CACHED_ASSESSMENTS = 1_024
"""Assessed projections cached per runtime."""
MAX_CACHED_TASKS = 64
"""Runtimes cached per `ProjectionRuntimes`."""


class Assessment(NamedTuple):
    """One projection as a judge aligned it, and its score."""

    alignment: Alignment
    score: ProjectionScore
    f1: float
    """F1 in [0, 1]."""

    @classmethod
    def of(cls, alignment: Alignment) -> Assessment:
        """Return an alignment with its score as printed."""
        score = alignment.score()
        return cls(alignment, score, float(score.f1))


class ProjectionState(NamedTuple):
    """Seed of an episode, and its turns so far."""

    seed: int
    turn: int


class ProjectionTransition(NamedTuple):
    """The turn of a projection; privileged."""

    state: ProjectionState
    """State after the turn."""
    level: Level | None = None
    """Level at which the projection was made; None after a reset."""
    assessment: Assessment | None = None
    """The projection as it was judged; None after a reset."""
    action: str = ""
    """The projection; empty after a reset."""


@dataclass(frozen=True, slots=True, eq=False)
class ProjectionRuntime:
    """Everything that an environment needs to play one task under one set of rules."""

    task: ProjectionTask
    rules: ProjectionRules
    observations: ProjectionRenderer
    judge: ProjectionJudge
    """Judge of projections about this task that computes in this process."""
    weights: tuple[float, ...]
    """Weight of the F1 of each turn; they sum to 1."""
    _assessments: dict[str, Assessment] = field(default_factory=dict)
    """Latest assessments by the text that is read."""

    def assess(self, projection: str) -> Assessment:
        """Return a projection as the judge aligns it, cached by the text that is read."""
        text = projection[:MAX_ACTION_LENGTH]
        assessment = self._assessments.get(text)
        if assessment is None:
            assessment = self._assessments[text] = Assessment.of(self.judge.align(text))
            if len(self._assessments) > MAX_CACHED_ASSESSMENTS:
                del self._assessments[next(iter(self._assessments))]
        return assessment

    def is_assessed(self, projection: str) -> bool:
        """Return whether the assessment of a projection is cached."""
        return projection[:MAX_ACTION_LENGTH] in self._assessments

    def uncached_texts(self, projection: str) -> Iterator[tuple[VectorTaker, str]]:
        """Return the texts that `assess` will embed, each with its vector cache."""
        embeds = getattr(self.judge, "uncached_texts", None)
        return iter(()) if embeds is None or self.is_assessed(projection) else embeds(projection[:MAX_ACTION_LENGTH])


class ProjectionRuntimes:
    """Runtimes by task and rules, for one judge and one set of templates; built on first use."""

    def __init__(
        self, judge_of: Callable[[ProjectionTask], ProjectionJudge], prompts: Prompts, *, lasting: bool = True
    ) -> None:
        """Create an empty cache.

        Args:
            judge_of: returns the judge of a task.
            prompts: templates of the observations.
            lasting: False drops a runtime after its episode, for tasks that are played once.
        """
        self._judge_of, self._prompts, self._lasting = judge_of, prompts, lasting
        self._runtimes: dict[tuple[ProjectionTask, ProjectionRules], ProjectionRuntime] = {}

    def get(self, task: ProjectionTask, rules: ProjectionRules) -> ProjectionRuntime:
        """Return the runtime of ``task`` under ``rules``, the same object while it is cached."""
        runtime = self._runtimes.get((task, rules))
        if runtime is None:
            runtime = self._build(task, rules)
            if self._lasting:
                self._runtimes[task, rules] = runtime
            if len(self._runtimes) > MAX_CACHED_TASKS:
                del self._runtimes[next(iter(self._runtimes))]
        return runtime

    def _build(self, task: ProjectionTask, rules: ProjectionRules) -> ProjectionRuntime:
        return ProjectionRuntime(
            task=task,
            rules=rules,
            observations=ProjectionRenderer(task, self._prompts, rules),
            judge=self._judge_of(task),
            weights=tuple(level_weights(len(rules.levels)).tolist()),
        )


def projection_info(runtime: ProjectionRuntime, turn: int) -> dict[str, Any]:
    """Return the info that agents may see after ``turn`` turns, as plain values."""
    levels = runtime.rules.levels
    over = turn == len(levels)
    return {"state": "end" if over else "project", "level": levels[turn - over], "turn": turn}


def privileged_projection_info(runtime: ProjectionRuntime, assessment: Assessment | None) -> dict[str, Any]:
    """Return the info that agents must not see, as plain values; without an assessment the true claims alone."""
    info: dict[str, Any] = {"claims": [_claim_info(claim) for claim in runtime.task.claims]}
    if assessment is None:
        return info
    alignment, score, _ = assessment
    return info | {
        "analogous": list(alignment.analogous),
        "extraneous": list(alignment.extraneous),
        "pair_ratings": _plain(alignment.pair_ratings),
        "extra_ratings": _plain(alignment.extra_ratings),
        "pairs": _plain(alignment.pairs),
        "extras": _plain(alignment.extras),
        **{name: float(value) for name, value in score._asdict().items()},
    }


def _claim_info(claim: OutcomeClaim) -> dict[str, Any]:
    named = {name: getattr(claim, name) for name in ("id", "text", "independent", "relation", "dependent")}
    return {**named, "contraries": list(claim.contraries)}


def _plain(ratings: Floats) -> list[Any]:
    """Return ratings as nested lists, with None for NaN."""
    values = ratings.astype(object)
    values[ratings != ratings] = None
    plain: list[Any] = values.tolist()
    return plain
