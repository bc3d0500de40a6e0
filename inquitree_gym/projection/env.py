"""`ProjectionEnv`: the agent says in free text what it expects a study to find."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from inquitree_gym.embeddings import Embedder, TextVectors
from inquitree_gym.envs.asking import AskedJudge, shared_judge
from inquitree_gym.envs.text import TextEnv, TextStep, not_a_text_error, under_status
from inquitree_gym.envs.text_vector import TextVectorEnv
from inquitree_gym.errors import OptionError
from inquitree_gym.judging.judgement import LOCAL, AsyncJudge
from inquitree_gym.projection.keywords import (
    ProjectionKeywords,
    load_tasks,
    projection_rules,
    suggest_keywords,
    unpack_keywords,
)
from inquitree_gym.projection.observations import projection_prompts
from inquitree_gym.projection.runtime import (
    Assessment,
    LocalProjections,
    ProjectionRecords,
    ProjectionRuntime,
    ProjectionRuntimes,
    ProjectionState,
    ProjectionTransition,
    privileged_projection_info,
    projection_info,
)
from inquitree_gym.projection.settings import Form, ProjectionRules, RewardTime
from inquitree_gym.projection.tasks import TaskLike
from inquitree_gym.trees.disclosure import LEVELS, Level, ProjectionTask


class ProjectionEnv(TextEnv[ProjectionTask, ProjectionRules, ProjectionRuntime, ProjectionTransition]):
    """Say what a study will find, while it is disclosed level by level (ProjectionBench, arXiv:2605.30284).

    ## Description
    A study is disclosed level by level: its topic and question, a null hypothesis, its procedure. At each level the
    agent says what it expects the study to find: its projection. The agent is never told its score.

    ## Action space
    `FreeText`: any string. A judge splits it into claims and aligns them with the claims of the true outcome. Text
    beyond the length of the space is ignored. An empty text has no claims.

    ## Observation space
    `FreeText`: everything disclosed so far, so that an agent without memory sees all of it. The last observation says
    that the task is over.

    ## Reward
    w·F1 of the projection at each turn, or the sum of these at the end. The weights w are those of the trapezoid over
    the levels: ¼, ½, ¼ for three levels. The return is in [0, 1], and is AUC/2 for three levels.

    ## Episode end
    ``terminated`` after the projection at the last level. ``truncated`` is never set.

    ## Info
    ``state`` ("project" or "end"), ``level`` (the last one disclosed), ``turn``. With ``privileged=True`` also a dict
    ``privileged`` that the agent must not see: the true ``claims``, and after a step the ``analogous`` and
    ``extraneous`` claims of the last projection, their ratings in both orders and averaged, and its score.

    ## Version history
    v0: first release.
    """

    metadata = {"render_modes": ["ansi", "human"], "render_fps": 1}  # noqa: RUF012  (as Gymnasium has it)

    kind = "projection"
    task_option = "task"
    runtimes: ProjectionRuntimes

    @suggest_keywords
    def __init__(  # noqa: PLR0913  (keywords)
        self,
        task: TaskLike | Sequence[TaskLike],
        *,
        levels: Sequence[Level] = LEVELS,
        form: Form = "sentence",
        reward: RewardTime = "each",
        judge: str | AsyncJudge[ProjectionTask] = LOCAL,
        embedder: str | Embedder | None = None,
        prompts: str | os.PathLike[str] | None = None,
        privileged: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """Choose the tasks, the rules, the judge and the views. ``reset(options=...)`` takes ``task`` and rules, too.

        Args:
            task: an id, a path, a `Tree` with a disclosure, a `ProjectionTask`, or a sequence of them to sample from,
                by the seed of each episode.
            levels: levels in the order of disclosure. See `ProjectionRules`.
            form: form of a projection. See `ProjectionRules`.
            reward: time of the reward. See `ProjectionRules`.
            judge: aligns the claims: ``"local"``, ``"nli:MODEL"``, ``"llm:MODEL"`` or an `AsyncJudge`.
            embedder: a name or an `Embedder` for the local judge. None for the embedder that it is calibrated for.
            prompts: ``"default"``, or a folder whose templates replace the package's.
            privileged: True to put a dict ``privileged`` into the infos.
            render_mode: ``"ansi"`` or ``"human"``.

        Raises:
            OptionError: an unknown keyword, or a value out of range.
            TreeError: a task is unknown or invalid.
        """
        self.rules = ProjectionRules(levels=levels, form=form, reward=reward)
        self.judging = AskedJudge.load(judge, self.kind)
        """The judge that sets the reward. None for the local judge."""
        if self.judging is not None and embedder is not None:
            raise OptionError(f"embedder is a setting of the judge '{LOCAL}'; leave it out with another judge")
        templates = projection_prompts(prompts)
        super().__init__(
            load_tasks(task),
            runtimes=ProjectionRuntimes(LocalProjections.load(embedder), templates),
            prompts=templates,
            privileged=privileged,
            render_mode=render_mode,
        )
        self._earned = 0.0

    @property
    def state(self) -> ProjectionState:
        """Seed of the episode and turns so far. Privileged."""
        return self.last.state

    @property
    def turn_limit(self) -> int:
        """Turns of this episode: one projection at each level."""
        return len(self.runtime.weights)

    @property
    def records(self) -> ProjectionRecords:
        """Records of its episodes, for logs."""
        local = self.runtimes.judge_config
        return ProjectionRecords(self, judge=self.judging, local=local)

    def _start(self, runtime: ProjectionRuntime, episode_seed: int) -> tuple[str, dict[str, Any]]:
        self.last_transition = ProjectionTransition(ProjectionState(episode_seed, 0))
        self._earned = 0.0
        return runtime.observations.render(0), self._info()

    def _load(self, tasks: Any) -> tuple[ProjectionTask, ...]:
        return load_tasks(tasks)

    def _override(self, options: Mapping[str, Any]) -> ProjectionRules:
        return projection_rules(self.rules, options)

    def step(self, action: str) -> TextStep:
        """Project the outcome at one level.

        Returns: observation, reward, terminated, truncated (always False) and info.

        Raises:
            ActionError: the action is not a string.
            RewardError: the judge gave no usable answer. The same step can be taken again.
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
        assessment = runtime.assess(action) if judge is None else judge.grade(runtime.task, action, Assessment.of)
        gain = runtime.weights[turn] * (assessment.f1 or 0.0)
        self._earned += gain
        terminated = turn + 1 == len(levels)
        if runtime.rules.reward == "each":
            reward = gain
        elif terminated:
            reward = self._earned
        else:
            reward = 0.0
        self.last_transition = ProjectionTransition(ProjectionState(seed, turn + 1), levels[turn], assessment, action)
        if self.render_mode == "human":
            self.render()
        return runtime.observations.render(turn + 1), reward, terminated, False, self._info()

    def uncached_texts(self, action: str) -> Iterator[tuple[TextVectors, str]]:
        """Return the texts that `step` will embed for ``action``, each with its vector cache."""
        return self.runtime.uncached_texts(action) if self.judging is None else iter(())

    def ask_ahead(self, action: str) -> Coroutine[Any, Any, None] | None:
        """Return a coroutine that asks the judge about ``action`` ahead of its step. None if no service is asked."""
        if self.judging is None or not self.judging.waits:
            return None
        return self.judging.ask_ahead(self.task, action)

    def _as_text(self) -> str:
        runtime, turn = self.runtime, self.state.turn
        level = projection_info(runtime.rules, turn)["level"]
        status = f"{runtime.task.id} · turn {turn} of {len(runtime.weights)} · {level}"
        return under_status(status, runtime.observations.render(turn))

    def _info(self) -> dict[str, Any]:
        info = projection_info(self.runtime.rules, self.state.turn)
        if self.privileged:
            info["privileged"] = privileged_projection_info(self.task, self.last.assessment)
        return info


class ProjectionVectorEnv(TextVectorEnv):
    """A `TextVectorEnv` of projections."""

    @unpack_keywords(ProjectionEnv.__init__, ProjectionKeywords)
    def __init__(
        self,
        num_envs: int,
        *,
        task: TaskLike | Sequence[TaskLike] | None = None,
        tasks: Sequence[TaskLike] | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        env_fn: Callable[..., ProjectionEnv] = ProjectionEnv,
        **keywords: Unpack[ProjectionKeywords],
    ) -> None:
        """Make environments that are stepped together.

        Args:
            num_envs: number of environments.
            task: as in `ProjectionEnv`, for every environment.
            tasks: one task for each environment, in place of ``task``.
            autoreset_mode: ``"NextStep"``, ``"SameStep"`` or ``"Disabled"``, as in Gymnasium.
            env_fn: constructor of one environment.
            **keywords: those of `ProjectionEnv`.

        Raises:
            OptionError: ``num_envs`` below 1, ``tasks`` of another length, an unknown ``autoreset_mode``, or any error
                of `ProjectionEnv`.
        """
        keywords["judge"] = shared_judge(keywords.get("judge", LOCAL), ProjectionEnv.kind)
        make = partial(env_fn, **keywords)
        super().__init__(num_envs, make, option="task", task=task, tasks=tasks, autoreset_mode=autoreset_mode)
