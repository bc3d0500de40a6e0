"""Runtime of a task under one set of rules: texts, judge and weights, and the info of its turns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from inquitree_gym.embeddings import Embedder, TextVectors, load_embedder
from inquitree_gym.envs.asking import AskedJudge
from inquitree_gym.envs.episode_records import RecordedStep, ServiceReply
from inquitree_gym.envs.text import Runtimes, Scope, TextEnv, TextRecords, not_started_error
from inquitree_gym.judging.judgement import LOCAL
from inquitree_gym.log import Turn
from inquitree_gym.log.records import JUDGE_ROLE
from inquitree_gym.projection.events import ProjectionEvent, ProjectionSetup
from inquitree_gym.projection.judges.alignment import Alignment, Floats, ProjectionScore, level_weights
from inquitree_gym.projection.judging import alignment_record, recorded_alignment
from inquitree_gym.projection.observations import ProjectionRenderer
from inquitree_gym.projection.settings import ProjectionRules
from inquitree_gym.prompts import Prompts
from inquitree_gym.text_limits import MAX_ACTION_LENGTH
from inquitree_gym.trees.disclosure import Level, OutcomeClaim, ProjectionTask

if TYPE_CHECKING:
    from inquitree_gym.projection.judges.local import LocalProjectionJudge

MAX_CACHED_ASSESSMENTS = 1_024
"""Assessed projections cached per runtime."""
MAX_CACHED_TASKS = 64
"""Runtimes cached per `ProjectionRuntimes`."""


class Assessment(NamedTuple):
    """One projection as a judge aligned it, and its score."""

    alignment: Alignment | None
    """None for a projection that the judge could not align."""
    score: ProjectionScore | None
    """None if a rating is missing."""
    f1: float | None
    """F1 in [0, 1]. None for an unscored projection, whose reward is 0."""

    @classmethod
    def of(cls, alignment: Alignment | None) -> Assessment:
        """Return an alignment with its score as printed."""
        if alignment is None or not alignment.complete:
            return cls(alignment, None, None)
        score = alignment.score()
        return cls(alignment, score, float(score.f1))


class ProjectionState(NamedTuple):
    """Seed of an episode, and its turns so far."""

    seed: int
    turn: int


class ProjectionTransition(NamedTuple):
    """One turn: a projection with its assessment. Privileged."""

    state: ProjectionState
    """State after the turn."""
    level: Level | None = None
    """Level at which the projection was made. None after a reset."""
    assessment: Assessment | None = None
    """The projection as it was judged. None after a reset."""
    action: str = ""
    """The projection. Empty after a reset."""


@dataclass(frozen=True, slots=True, eq=False)
class ProjectionRuntime:
    """Everything that an environment needs to play one task under one set of rules."""

    task: ProjectionTask
    rules: ProjectionRules
    observations: ProjectionRenderer
    judge: LocalProjectionJudge
    weights: tuple[float, ...]
    """Weight of the F1 of each turn. They sum to 1."""
    _assessments: dict[str, Assessment] = field(default_factory=dict)
    """Latest assessments by the text that the judge reads."""

    def assess(self, projection: str) -> Assessment:
        """Return the local judge's assessment of a projection, cached by the text that the judge reads."""
        text = projection[:MAX_ACTION_LENGTH]
        assessment = self._assessments.get(text)
        if assessment is None:
            assessment = self._assessments[text] = Assessment.of(self.judge.judge(text))
            if len(self._assessments) > MAX_CACHED_ASSESSMENTS:
                del self._assessments[next(iter(self._assessments))]
        return assessment

    def uncached_texts(self, projection: str) -> Iterator[tuple[TextVectors, str]]:
        """Return the texts that `assess` will embed, each with its vector cache."""
        text = projection[:MAX_ACTION_LENGTH]
        return iter(()) if text in self._assessments else self.judge.uncached_texts(text)


@dataclass(frozen=True)
class LocalProjections:
    """The local judges of all tasks, on one embedder."""

    embedder: Embedder
    scope: Scope = "shared"
    """Lifetime of the vectors of a task. See `Runtimes.scope`."""

    @classmethod
    def load(cls, embedder: str | Embedder | None) -> Self:
        """Return the judges on an embedder. None for the embedder that their settings are calibrated for."""
        from inquitree_gym.judging.sense import JUDGE_EMBEDDER

        named = JUDGE_EMBEDDER if embedder is None else embedder
        return cls(load_embedder(named) if isinstance(named, str) else named)

    @property
    def config(self) -> dict[str, Any]:
        """Name, version and settings of the judge, for logs."""
        from inquitree_gym.projection.judges.local import local_projection_config

        return {"name": LOCAL, **local_projection_config(self.embedder)}

    def within(self, scope: Scope) -> Self:
        """Return the judges with vectors of another lifetime."""
        return replace(self, scope=scope)

    def for_task(self, task: ProjectionTask) -> LocalProjectionJudge:
        """Return the judge of a task."""
        from inquitree_gym.projection.judges.local import LocalProjectionJudge, local_projection_judge

        if self.scope == "shared":
            return local_projection_judge(task, self.embedder)
        lasting = self.scope == "private"
        vectors = TextVectors(task.digest, tuple(task.texts()), self.embedder, lasting=lasting)
        return LocalProjectionJudge(task, vectors)


class ProjectionRuntimes(Runtimes[ProjectionTask, ProjectionRules, ProjectionRuntime]):
    """Runtimes by task and rules, for one local judge and one set of templates. Built on first use."""

    most = MAX_CACHED_TASKS

    def __init__(self, judges: LocalProjections, prompts: Prompts) -> None:
        """Create an empty cache. With ``judges`` in scope "episode", tasks are played once and are not cached."""
        super().__init__()
        self._judges, self._prompts = judges, prompts

    @property
    def scope(self) -> Scope:
        """See `Runtimes.scope`."""
        return self._judges.scope

    @property
    def judge_config(self) -> dict[str, Any]:
        """Name, version and settings of the local judge, for logs."""
        return self._judges.config

    def within(self, scope: Scope) -> ProjectionRuntimes:
        """Return an empty cache with vectors of another lifetime."""
        return ProjectionRuntimes(self._judges.within(scope), self._prompts)

    def _build(self, about: ProjectionTask, rules: ProjectionRules) -> ProjectionRuntime:
        return ProjectionRuntime(
            task=about,
            rules=rules,
            observations=ProjectionRenderer(about, self._prompts, rules),
            judge=self._judges.for_task(about),
            weights=tuple(level_weights(len(rules.levels)).tolist()),
        )


def projection_info(rules: ProjectionRules, turn: int) -> dict[str, Any]:
    """Return the info that agents may see after ``turn`` turns, as plain values."""
    levels = rules.levels
    over = turn == len(levels)
    return {"state": "end" if over else "project", "level": levels[turn - over], "turn": turn}


def privileged_projection_info(task: ProjectionTask, assessment: Assessment | None) -> dict[str, Any]:
    """Return the info that agents must not see, as plain values. Without an assessment only the true claims."""
    info: dict[str, Any] = {"claims": [_claim_info(claim) for claim in task.claims]}
    if assessment is None:
        return info
    alignment, score, _ = assessment
    scores = dict.fromkeys(ProjectionScore._fields) if score is None else score._asdict()
    info |= {name: None if value is None else float(value) for name, value in scores.items()}
    return info if alignment is None else info | _alignment_info(alignment)


def _alignment_info(alignment: Alignment) -> dict[str, Any]:
    ratings = {name: _plain(getattr(alignment, name)) for name in ("pair_ratings", "extra_ratings", "pairs", "extras")}
    return {"analogous": list(alignment.analogous), "extraneous": list(alignment.extraneous), **ratings}


def _claim_info(claim: OutcomeClaim) -> dict[str, Any]:
    named = {name: getattr(claim, name) for name in ("id", "text", "independent", "relation", "dependent")}
    return {**named, "contraries": list(claim.contraries)}


def _plain(ratings: Floats) -> list[Any]:
    """Return ratings as nested lists, with None for NaN."""
    values = ratings.astype(object)
    values[ratings != ratings] = None
    plain: list[Any] = values.tolist()
    return plain


class ProjectionRecords(TextRecords[ProjectionTask, ProjectionRules, ProjectionRuntime, ProjectionTransition]):
    """Records of the episode of one projection environment."""

    def __init__(
        self,
        env: TextEnv[ProjectionTask, ProjectionRules, ProjectionRuntime, ProjectionTransition],
        *,
        judge: AskedJudge[ProjectionTask] | None,
        local: Mapping[str, Any],
    ) -> None:
        """Describe the episodes of ``env``. ``judge`` sets the reward, or the ``local`` one with these settings."""
        super().__init__(env)
        self._judge, self._local = judge, local

    def observation(self) -> str:
        """Render the text after the last turn."""
        return self._env.runtime.observations.render(self._env.last.state.turn)

    def last_step(self) -> RecordedStep:
        """Record the claims of the last projection with their ratings. Raise `ResetNeeded` before the first step."""
        last = self._env.last
        if last.level is None or last.assessment is None:
            raise not_started_error()
        aligned = alignment_record(last.assessment.alignment, last.assessment.f1)
        state = projection_info(self._env.episode_rules, last.state.turn)["state"]
        return RecordedStep(last.action, ProjectionEvent(level=last.level, state=state, **dict(aligned)))

    def replies(self) -> Iterator[ServiceReply]:
        """Yield the judge's replies about the last projection."""
        if self._judge is not None and self._judge.judgement is not None:
            for asked in self._judge.judgement.replies:
                yield ServiceReply(JUDGE_ROLE, asked.reply, asked.fault)

    def judge(self) -> Mapping[str, Any]:
        """Return name, version and settings of the judge."""
        return self._local if self._judge is None else self._judge.config

    def recall(self, turn: Turn[ProjectionEvent]) -> None:
        """Take the judge's alignment from a logged turn."""
        if self._judge is not None:
            self._judge.recall(Assessment.of(recorded_alignment(turn.event)))

    def _setup(self) -> ProjectionSetup:
        return ProjectionSetup(judge=json.loads(json.dumps(dict(self.judge()))))
