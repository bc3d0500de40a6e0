"""`ProjectionEnv`: the agent says in free text what it expects a study to find."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from inquitree_gym.embeddings import TextVectors
from inquitree_gym.envs.asking import AskedJudge, reward_of, shared_judge
from inquitree_gym.envs.text import TextEnv, TextStep, not_a_text_error, under_status
from inquitree_gym.envs.text_vector import TextVectorEnv
from inquitree_gym.errors import OptionError
from inquitree_gym.judging.judgement import AsyncJudge
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
    ProjectionRecords,
    ProjectionRuntime,
    ProjectionRuntimes,
    ProjectionState,
    ProjectionTransition,
    privileged_projection_info,
)
from inquitree_gym.projection.settings import Form, ProjectionRules, Reward
from inquitree_gym.projection.tasks import TaskLike
from inquitree_gym.sheets import read_sheet
from inquitree_gym.text_limits import MAX_ACTION_LENGTH
from inquitree_gym.trees.disclosure import LEVELS, Level, ProjectionTask

OWN_REWARD = "sheet", "sheets"
"""Reward without a judge, and the word for it."""


class ProjectionEnv(TextEnv[ProjectionTask, ProjectionRules, ProjectionRuntime, ProjectionTransition]):
    """Say what a study will find, while it is disclosed level by level (ProjectionBench, arXiv:2605.30284).

    ## Description
    A study is disclosed level by level: its topic and question, a null hypothesis, its procedure. At each level the
    agent says what it expects the study to find: its projection. Then it answers a sheet: for each claim of the true
    outcome it names the claim or one of its contraries. Nothing tells it its score before the end.

    ## Action space
    `FreeText`: any string. Text beyond the length of the space is ignored. An answer to a sheet is a claim's number and
    a letter per line, with a probability or without: see `inquitree_gym.sheets`. A reply without a single answer is
    asked for once more, and then counts as none.

    ## Observation space
    `FreeText`: everything disclosed so far, so that an agent without memory sees all of it, and the statements of a
    sheet. The last observation says that the task is over.

    ## Reward
    0 until the end, then the sum over the levels of w times the score of the sheet: the mean over claims of 1 for the
    claim, -1/(k - 1) for one of its k - 1 contraries and 0 for none. The weights w are those of the trapezoid over the
    levels: ¼, ½, ¼ for three. The return is in [-1, 1]; it is the paper's area, scaled. With ``reward="judge"`` there
    are no sheets, and the score of a level is the F1 of the projection by ``judge``, so that the return is AUC/2.

    ## Episode end
    ``terminated`` after the last level. ``truncated`` is never set.

    ## Info
    ``state`` ("project", "sheet" or "end"), ``level`` (the last one disclosed), ``turn``. With ``privileged=True`` also
    a dict ``privileged`` that the agent must not see: the true ``claims``, after a sheet its ``choices`` and ``score``,
    and after a judged projection its ``analogous`` and ``extraneous`` claims, their ratings in both orders and
    averaged, and its score.

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
        reward: Reward | None = None,
        judge: str | AsyncJudge[ProjectionTask] | None = None,
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
            reward: ``"sheet"``, ``"judge"``, which needs a judge, or ``"none"``, which asks as the paper does and pays
                nothing. None is ``"judge"`` with a judge, and ``"sheet"`` without one.
            judge: aligns the claims of projections: ``"nli:MODEL"``, ``"llm:MODEL"`` or an `AsyncJudge`.
            prompts: ``"default"``, or a folder whose templates replace the package's.
            privileged: True to put a dict ``privileged`` into the infos.
            render_mode: ``"ansi"`` or ``"human"``.

        Raises:
            OptionError: an unknown keyword, or a value out of range.
            TreeError: a task is unknown or invalid.
        """
        self.rules = ProjectionRules(levels=levels, form=form, reward=reward_of(reward, judge, *OWN_REWARD))
        self.judging = None if judge is None else AskedJudge.load(judge, self.kind)
        """The judge that sets the reward. None where no judge does."""
        templates = projection_prompts(prompts)
        super().__init__(
            load_tasks(task),
            runtimes=ProjectionRuntimes(templates),
            prompts=templates,
            privileged=privileged,
            render_mode=render_mode,
        )
        self._earned = 0.0

    @property
    def state(self) -> ProjectionState:
        """Seed of the episode, and how far it is. Privileged."""
        return self.last.state

    @property
    def turn_limit(self) -> int:
        """Turns of this episode, one more for each sheet that is asked for again."""
        return self.runtime.rules.turns

    @property
    def records(self) -> ProjectionRecords:
        """Records of its episodes, for logs."""
        return ProjectionRecords(self, self.judging)

    def _start(self, runtime: ProjectionRuntime, episode_seed: int) -> tuple[str, dict[str, Any]]:
        self.last_transition = ProjectionTransition(ProjectionState(episode_seed))
        self._earned = 0.0
        return runtime.observe(self.state), self._info()

    def _load(self, tasks: Any) -> tuple[ProjectionTask, ...]:
        return load_tasks(tasks)

    def _override(self, options: Mapping[str, Any]) -> ProjectionRules:
        rules = projection_rules(self.rules, options)
        if (rules.reward == "judge") != (self.judging is not None):
            raise OptionError(
                f"reward={rules.reward!r} does not go with {'a' if self.judging else 'no'} judge of the environment; "
                "make another one"
            )
        return rules

    def step(self, action: str) -> TextStep:
        """Project the outcome at one level, or answer a sheet.

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
        number, is_sheet = runtime.place(last.state)
        levels = runtime.rules.levels
        if number == len(levels):
            raise ResetNeeded("the episode is over: all levels were projected; call reset() before the next step()")
        moved = self._answer(runtime, action) if is_sheet else self._project(runtime, action)
        self.last_transition = moved._replace(level=levels[number], action=action)
        terminated = runtime.place(moved.state)[0] == len(levels)
        if not moved.state.again:
            self._earned += runtime.weights[number] * runtime.score(moved)
        if self.render_mode == "human":
            self.render()
        reward = self._earned if terminated else 0.0
        return runtime.observe(moved.state), reward, terminated, False, self._info()

    def _project(self, runtime: ProjectionRuntime, action: str) -> ProjectionTransition:
        """Take a projection, and judge it where that pays."""
        judge, (seed, done, turn, _) = self.judging, self.state
        assessment = None if judge is None else judge.grade(runtime.task, action, Assessment.of)
        return ProjectionTransition(ProjectionState(seed, done + 1, turn + 1), assessment=assessment)

    def _answer(self, runtime: ProjectionRuntime, action: str) -> ProjectionTransition:
        """Read a sheet. One without an answer is asked for once more."""
        seed, done, turn, was_again = self.state
        reading = read_sheet(action[:MAX_ACTION_LENGTH], runtime.layout(self.state))
        again = reading.sheet.is_empty and not was_again
        return ProjectionTransition(ProjectionState(seed, done + (not again), turn + 1, again), sheet=reading)

    def uncached_texts(self, action: str) -> Iterator[tuple[TextVectors, str]]:
        """Return the texts that `step` will embed for ``action``: none."""
        return iter(())

    def ask_ahead(self, action: str) -> Coroutine[Any, Any, None] | None:
        """Return a coroutine that asks the judge about ``action`` ahead of its step. None if no service is asked."""
        if self.judging is None or not self.judging.waits:
            return None
        return self.judging.ask_ahead(self.task, action)

    def _as_text(self) -> str:
        info = self.runtime.info(self.state)
        status = f"{self.task.id} · turn {info['turn']} of {self.turn_limit} · {info['level']}"
        return under_status(status, self.runtime.observe(self.state))

    def _info(self) -> dict[str, Any]:
        info = self.runtime.info(self.state)
        if self.privileged:
            info["privileged"] = privileged_projection_info(self.task, self.last)
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
        keywords["judge"] = shared_judge(keywords.get("judge"), ProjectionEnv.kind)
        make = partial(env_fn, **keywords)
        super().__init__(num_envs, make, option="task", task=task, tasks=tasks, autoreset_mode=autoreset_mode)
