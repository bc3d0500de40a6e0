"""`ProjectionEnv`: the agent says in free text what it expects a study to find."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any

from gymnasium.error import ResetNeeded

from inquitree_gym.embeddings import Embedder, TextVectors
from inquitree_gym.engine import seed_of_agent
from inquitree_gym.envs.keywords import suggest_keywords
from inquitree_gym.envs.observations import MAX_OBSERVATION
from inquitree_gym.envs.projection.judging import AskedProjectionJudge, LocalProjections
from inquitree_gym.envs.projection.keywords import load_tasks, projection_rules
from inquitree_gym.envs.projection.records import ProjectionRecords
from inquitree_gym.envs.projection.rules import Form, ProjectionRules, RewardTime
from inquitree_gym.envs.projection.runtime import (
    Assessment,
    ProjectionRuntime,
    ProjectionRuntimes,
    ProjectionState,
    ProjectionTransition,
    privileged_projection_info,
    projection_info,
)
from inquitree_gym.envs.spaces import FreeText
from inquitree_gym.envs.text import TextEnv, TextStep, not_a_text_error
from inquitree_gym.errors import OptionError
from inquitree_gym.judges.projections.judgement import AsyncProjectionJudge
from inquitree_gym.judges.registry import LOCAL
from inquitree_gym.matching import MAX_ACTION_LENGTH
from inquitree_gym.prompts import PROJECTION_TEMPLATE_NAMES, Prompts
from inquitree_gym.trees.disclosure import LEVELS, Level, ProjectionTask
from inquitree_gym.trees.tasks import TaskLike


class ProjectionEnv(TextEnv[ProjectionTask, ProjectionRuntime, ProjectionTransition]):
    """Say what a study will find, while it is disclosed level by level (ProjectionBench, arXiv:2605.30284).

    ## Description
    A study is disclosed level by level: its topic and question, a null hypothesis, its procedure. At each level the
    agent says what it expects the study to find: its projection. The agent is never told its score.

    ## Action space
    `FreeText`: any string. A judge splits it into claims and aligns them with the claims of the true outcome. Text
    beyond the length of the space is ignored; an empty text has no claims.

    ## Observation space
    `FreeText`: everything disclosed so far, so that an agent without memory sees all of it. The last observation says
    that the task is over.

    ## Reward
    w·F1 of the projection at each turn, or the sum of these at the end. The weights w are those of the trapezoid over
    the levels: ¼, ½, ¼ for three levels. The return is in [0, 1], and is AUC/2 for three levels.

    ## Episode end
    ``terminated`` after the projection at the last level; ``truncated`` is never set.

    ## Info
    ``state`` ("project" or "end"), ``level`` (the last one disclosed), ``turn``; with ``privileged=True`` also a dict
    ``privileged`` that the agent must not see: the true ``claims``, and after a step the ``analogous`` and
    ``extraneous`` claims of the last projection, their ratings in both orders and averaged, and its score.

    ## Arguments
    ``task``: an id, a path, a `Tree` with a disclosure, a `ProjectionTask`, or a sequence of them to sample from, by
    the seed of each episode. ``levels``, ``form``, ``reward``: see `ProjectionRules`. ``judge``: ``"local"``,
    ``"nli:MODEL"``, ``"llm:MODEL"`` or an `AsyncProjectionJudge`, which aligns the claims. ``embedder``: a name or an
    `Embedder` for the local judge; None for the embedder that it is calibrated for. ``prompts``: ``"default"``, or a
    folder whose templates replace the package's. ``privileged``: see Info. ``render_mode``: ``"ansi"`` or ``"human"``.
    ``reset(options=...)`` takes ``task`` and any rule, for that episode.

    ## Version history
    v0: first release.
    """

    metadata = {"render_modes": ["ansi", "human"], "render_fps": 1}  # noqa: RUF012  (as Gymnasium has it)

    runtimes: ProjectionRuntimes

    @suggest_keywords
    def __init__(  # noqa: PLR0913  (keywords)
        self,
        task: TaskLike | Sequence[TaskLike],
        *,
        levels: Sequence[Level] = LEVELS,
        form: Form = "sentence",
        reward: RewardTime = "each",
        judge: str | AsyncProjectionJudge = LOCAL,
        embedder: str | Embedder | None = None,
        prompts: str | os.PathLike[str] | None = None,
        privileged: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """See the class for the arguments.

        Raises:
            OptionError: an unknown keyword, or a value out of range.
            TreeError: a task is unknown or invalid.
        """
        self.rules = ProjectionRules(levels=levels, form=form, reward=reward)  # type: ignore[arg-type]
        self._check_render_mode(render_mode)
        self.tasks = load_tasks(task)
        self.judging = AskedProjectionJudge.load(judge)
        """The judge that sets the reward; None for the local judge."""
        if self.judging is not None and embedder is not None:
            raise OptionError(f"embedder is a setting of the judge '{LOCAL}'; leave it out with another judge")
        self.prompts = Prompts(prompts, PROJECTION_TEMPLATE_NAMES)
        self.privileged, self.render_mode = privileged, render_mode
        self.action_space, self.observation_space = FreeText(MAX_ACTION_LENGTH), FreeText(MAX_OBSERVATION)
        self.runtimes = ProjectionRuntimes(LocalProjections.load(embedder), self.prompts)
        self._earned = 0.0

    @property
    def task(self) -> ProjectionTask:
        """The task of this episode."""
        return self.runtime.task

    @property
    def episode_rules(self) -> ProjectionRules:
        """The rules of this episode, including the options of its reset."""
        return self.runtime.rules

    @property
    def state(self) -> ProjectionState:
        """Seed of the episode and turns so far; privileged."""
        if self.last_transition is None:
            raise self._not_started()
        return self.last_transition.state

    @property
    def agent_seed(self) -> int:
        """Seed for the agent of this episode, a hash of seed and task; pass it to `Agent.reset`."""
        return seed_of_agent(self.state.seed, self.task.id)

    @property
    def records(self) -> ProjectionRecords:
        """Records of its episodes, for logs."""
        return ProjectionRecords(self)

    def _start(self, runtime: ProjectionRuntime, episode_seed: int) -> tuple[str, dict[str, Any]]:
        self.last_transition = ProjectionTransition(ProjectionState(episode_seed, 0))
        self._earned = 0.0
        return runtime.observations.render(0), self._info()

    def resolve_options(self, options: Mapping[str, Any] | None) -> tuple[tuple[ProjectionTask, ...], ProjectionRules]:
        """Return the tasks to sample from and the rules of an episode with these `reset` options."""
        if not options:
            return self.tasks, self.rules
        tasks = load_tasks(options["task"]) if "task" in options else self.tasks
        return tasks, projection_rules(self.rules, options)

    def step(self, action: str) -> TextStep:
        """Project the outcome at one level.

        Returns: observation, reward, terminated, truncated (always False) and info.

        Raises:
            ActionError: the action is not a string.
            RewardError: the judge gave no usable answer; the same step can be taken again.
            BudgetError: a cap of the judge is reached.
            ResetNeeded: before the first reset, or after the end.
            ClosedEnvironmentError: after `close`.
        """
        runtime, last = self._runtime, self.last_transition
        if runtime is None or last is None:
            raise self._not_started()
        if not isinstance(action, str):
            raise not_a_text_error(action)
        (seed, turn), levels = last.state, runtime.rules.levels
        if turn == len(levels):
            raise ResetNeeded("the episode is over: all levels were projected; call reset() before the next step()")
        judge = self.judging
        assessment = runtime.assess(action) if judge is None else Assessment.of(judge.align(runtime.task, action))
        self._earned += (gain := runtime.weights[turn] * (assessment.f1 or 0.0))
        terminated = turn + 1 == len(levels)
        self.last_transition = ProjectionTransition(ProjectionState(seed, turn + 1), levels[turn], assessment, action)
        if self.render_mode == "human":
            self.render()
        reward = gain if runtime.rules.reward == "each" else self._earned * terminated
        return runtime.observations.render(turn + 1), reward, terminated, False, self._info()

    def uncached_texts(self, action: str) -> Iterator[tuple[TextVectors, str]]:
        """Return the texts that `step` will embed for ``action``, each with its vector cache."""
        return self.runtime.uncached_texts(action) if self.judging is None else iter(())

    def ask_ahead(self, action: str) -> Coroutine[Any, Any, None] | None:
        """Return a coroutine that asks the judge about ``action`` ahead of its step; None if no service is asked."""
        if self.judging is None or not self.judging.waits:
            return None
        return self.judging.ask_ahead(self.task, action)

    def _as_text(self) -> str:
        from inquitree_gym.envs import rendering

        runtime, turn = self.runtime, self.state.turn
        level = projection_info(runtime.rules, turn)["level"]
        status = f"{runtime.task.id} · turn {turn} of {len(runtime.weights)} · {level}"
        return rendering.under_status(status, runtime.observations.render(turn))

    def _info(self) -> dict[str, Any]:
        assert self._runtime is not None
        assert self.last_transition is not None
        info = projection_info(self._runtime.rules, self.last_transition.state.turn)
        if self.privileged:
            info["privileged"] = privileged_projection_info(self._runtime.task, self.last_transition.assessment)
        return info
