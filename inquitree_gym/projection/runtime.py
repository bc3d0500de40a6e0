"""Runtime of a task under one set of rules: texts and weights, and the info of its turns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from inquitree_gym.envs.asking import AskedJudge
from inquitree_gym.envs.episode_records import RecordedStep, ServiceReply
from inquitree_gym.envs.text import Runtimes, Scope, TextEnv, TextRecords, not_started_error
from inquitree_gym.log import Setup, Turn
from inquitree_gym.log.records import JUDGE_ROLE, SheetRecord
from inquitree_gym.projection.events import ProjectionEvent
from inquitree_gym.projection.judges.alignment import Alignment, Floats, ProjectionScore, level_weights
from inquitree_gym.projection.judging import alignment_record, recorded_alignment
from inquitree_gym.projection.observations import ProjectionRenderer
from inquitree_gym.projection.settings import ProjectionRules
from inquitree_gym.projection.sheets import draw_layout, sheet_score
from inquitree_gym.prompts import Prompts
from inquitree_gym.sheets import Layout, SheetReading
from inquitree_gym.trees.disclosure import Level, OutcomeClaim, ProjectionTask

SHEET_VERSION = 1
"""Version of the score of sheets."""
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
    """Seed of an episode, and how far it is."""

    seed: int
    done: int = 0
    """Projections and sheets so far."""
    turn: int = 0
    """Turns so far: one more for each sheet that was asked for again."""
    again: bool = False
    """True if the last sheet had no readable answer and is asked for once more."""


class ProjectionTransition(NamedTuple):
    """One turn: a projection with its assessment, or a sheet. Privileged."""

    state: ProjectionState
    """State after the turn."""
    level: Level | None = None
    """Level of the projection or sheet. None after a reset."""
    action: str = ""
    """The action. Empty after a reset."""
    assessment: Assessment | None = None
    """The projection as it was judged. None after a reset, and where no judge is asked."""
    sheet: SheetReading | None = None
    """The sheet as it was read. None for a projection."""


@dataclass(frozen=True, slots=True, eq=False)
class ProjectionRuntime:
    """Everything that an environment needs to play one task under one set of rules."""

    task: ProjectionTask
    rules: ProjectionRules
    observations: ProjectionRenderer
    weights: tuple[float, ...]
    """Weight of the score of each level. They sum to 1."""

    def place(self, state: ProjectionState) -> tuple[int, bool]:
        """Return the number of the level, and whether a sheet is asked for. The number is that of levels at the end."""
        level, part = divmod(state.done, 2) if self.rules.reward == "sheet" else (state.done, 0)
        return level, part == 1

    def layout(self, state: ProjectionState) -> Layout:
        """Return the order of the statements of the sheet that is asked for."""
        return draw_layout(self.task.claims, state.seed, self.rules.levels[self.place(state)[0]])

    def observe(self, state: ProjectionState) -> str:
        """Return the observation in a state."""
        level, is_sheet = self.place(state)
        if is_sheet:
            return self.observations.render_sheet(level + 1, self.layout(state), again=state.again)
        return self.observations.render(level + 1)

    def score(self, moved: ProjectionTransition) -> float:
        """Return the score of a sheet, or the F1 of a projection, 0 where it has none."""
        if moved.sheet is not None:
            return sheet_score(self.task.claims, moved.sheet.sheet)
        return 0.0 if moved.assessment is None else moved.assessment.f1 or 0.0

    def info(self, state: ProjectionState) -> dict[str, Any]:
        """Return the info that agents may see, as plain values."""
        (level, is_sheet), levels = self.place(state), self.rules.levels
        over = level == len(levels)
        name = "end" if over else "sheet" if is_sheet else "project"
        return {"state": name, "level": levels[level - over], "turn": state.turn}


class ProjectionRuntimes(Runtimes[ProjectionTask, ProjectionRules, ProjectionRuntime]):
    """Runtimes by task and rules, for one set of templates. Built on first use."""

    most = MAX_CACHED_TASKS

    def __init__(self, prompts: Prompts, scope: Scope = "shared") -> None:
        """Create an empty cache. With the scope "episode", tasks are played once and are not cached."""
        super().__init__()
        self._prompts, self._scope = prompts, scope

    @property
    def scope(self) -> Scope:
        """See `Runtimes.scope`."""
        return self._scope

    def within(self, scope: Scope) -> ProjectionRuntimes:
        """Return an empty cache of another lifetime."""
        return ProjectionRuntimes(self._prompts, scope)

    def _build(self, about: ProjectionTask, rules: ProjectionRules) -> ProjectionRuntime:
        return ProjectionRuntime(
            task=about,
            rules=rules,
            observations=ProjectionRenderer(about, self._prompts, rules),
            weights=tuple(level_weights(len(rules.levels)).tolist()),
        )


def privileged_projection_info(task: ProjectionTask, last: ProjectionTransition | None) -> dict[str, Any]:
    """Return the info that agents must not see, as plain values: true claims, and how the last action was read."""
    info: dict[str, Any] = {"claims": [_claim_info(claim) for claim in task.claims]}
    if last is not None and last.sheet is not None:
        info |= {"choices": list(last.sheet.sheet.choices), "score": sheet_score(task.claims, last.sheet.sheet)}
    if last is None or last.assessment is None:
        return info
    alignment, score, _ = last.assessment
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
        judge: AskedJudge[ProjectionTask] | None,
    ) -> None:
        """Describe the episodes of ``env``. ``judge`` sets the reward, if it is not None."""
        super().__init__(env)
        self._judge = judge

    def observation(self) -> str:
        """Render the text after the last turn."""
        return self._env.runtime.observe(self._env.last.state)

    def last_step(self) -> RecordedStep:
        """Record the last projection with its ratings, or the last sheet. Raise `ResetNeeded` before the first step."""
        runtime, last = self._env.runtime, self._env.last
        if last.level is None:
            raise not_started_error()
        judged, read = last.assessment, last.sheet
        event = ProjectionEvent(
            kind="projection" if read is None else "sheet",
            level=last.level,
            state=runtime.info(last.state)["state"],
            judged=None if judged is None else alignment_record(judged.alignment, judged.f1),
            sheet=None if read is None else SheetRecord.of(read),
            after_sheet=read is None and runtime.rules.reward == "sheet" and last.level != runtime.rules.levels[0],
        )
        return RecordedStep(last.action, event)

    def replies(self) -> Iterator[ServiceReply]:
        """Yield the judge's replies about the last projection."""
        if self._judge is not None and self._judge.judgement is not None:
            for asked in self._judge.judgement.replies:
                yield ServiceReply(JUDGE_ROLE, asked.reply, asked.fault)

    def judge(self) -> Mapping[str, Any]:
        """Describe the sheets, or the judge that was given."""
        if self._judge is not None:
            return self._judge.config
        return {"name": self._env.episode_rules.reward, "version": SHEET_VERSION}

    def recall(self, turn: Turn[ProjectionEvent]) -> None:
        """Take the judge's alignment from a logged turn."""
        if self._judge is not None and turn.event.judged is not None:
            self._judge.recall(Assessment.of(recorded_alignment(turn.event.judged)))

    def _setup(self) -> Setup:
        judge = None if self._judge is None else json.loads(json.dumps(dict(self._judge.config)))
        return Setup(judge=judge)
