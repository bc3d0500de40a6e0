"""`ExplorationEnv`: the agent searches a library for the answer to a question."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any

from gymnasium.error import ResetNeeded

from inquitree_gym.embeddings import TextVectors
from inquitree_gym.envs.asking import AskedJudge
from inquitree_gym.envs.keywords import check_names, checked_keywords, load_each
from inquitree_gym.envs.text import TextEnv, TextStep, not_a_text_error, under_status
from inquitree_gym.exploration.actions import parse_action
from inquitree_gym.exploration.graders import Grade, TableGrade, grade
from inquitree_gym.exploration.providers import Provider
from inquitree_gym.exploration.rules import ExplorationState, act
from inquitree_gym.exploration.runtime import (
    ExplorationRecords,
    ExplorationRuntime,
    ExplorationRuntimes,
    ExplorationTransition,
    exploration_prompts,
)
from inquitree_gym.exploration.schema import ExplorationTask
from inquitree_gym.exploration.settings import ExplorationRules, Tools
from inquitree_gym.exploration.tasks import TASKS, TaskLike
from inquitree_gym.judging.judgement import LOCAL, AsyncJudge
from inquitree_gym.text_limits import readable


class ExplorationEnv(TextEnv[ExplorationTask, ExplorationRules, ExplorationRuntime, ExplorationTransition]):
    """Find the answer to a question in a library, after SciExplore (arXiv:2607.20926).

    ## Description
    A library holds papers and the records of eight databases, all invented. The agent uses it through tools, and
    answers when it likes, or when its turns are used up. The answer of every task is proved to be the only one, and to
    be found with the tools in half of the turns.

    ## Action space
    `FreeText`: any string, whose first line decides. ``SEARCH words``, ``OPEN id [page]``, ``FIND words``, ``LOOKUP
    database: field op value; …``, and ``ANSWER`` with all that follows. Anything else shows the forms, at a turn.

    ## Observation space
    `FreeText`: the question, the forms of the actions, and the outcome of the last action.

    ## Reward and end
    The reward is 0, then the score of the answer in [0, 1], of T4 the F1 of its items.
    ``terminated`` after the answer. After ``max_turns`` other actions, whatever comes next is the answer. ``truncated``
    is never set.

    ## Info
    ``state`` ("explore", "answer" or "end"), ``turn``, ``tool`` (the last one used, empty after a reset). With
    ``privileged=True`` also a dict ``privileged`` that the agent must not see: ``gold``, the gold ``path``, ``found``
    (the number of gold facts whose page was shown) and ``facts`` (the number of all).
    """

    metadata = {"render_modes": ["ansi", "human"], "render_fps": 1}  # noqa: RUF012  (as Gymnasium has it)

    kind = "exploration"
    task_option = "task"
    runtimes: ExplorationRuntimes

    @checked_keywords()
    def __init__(  # noqa: PLR0913  (keywords)
        self,
        task: TaskLike | Sequence[TaskLike],
        *,
        max_turns: int | None = None,
        tools: Tools = "all",
        provider: Provider | None = None,
        judge: str | AsyncJudge[ExplorationTask] = LOCAL,
        prompts: str | os.PathLike[str] | None = None,
        privileged: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """Choose the tasks, the rules and the views. ``reset(options=...)`` takes ``task`` and rules, too.

        Args:
            task: an id, a path, an `ExplorationTask`, a type such as ``"T1"``, ``"all"``, or a sequence of them to
                sample from, by the seed of each episode.
            max_turns: actions before the agent has to answer. None for 60, of T4 120.
            tools: tools of the agent: ``"all"``, ``"search"`` or ``"none"``. See `ExplorationRules`.
            provider: source of documents. None for the library of each task.
            judge: grades the answer: ``"local"`` or an `AsyncJudge`.
            prompts: ``"default"``, or a folder whose templates replace the package's.
            privileged: True to put a dict ``privileged`` into the infos.
            render_mode: ``"ansi"`` or ``"human"``.

        Raises:
            OptionError: an unknown keyword, or a value out of range.
            TreeError: a task is unknown or invalid.
        """
        self.rules = ExplorationRules(max_turns=max_turns, tools=tools)
        self.judging = AskedJudge.load(judge, self.kind)
        """The judge that sets the reward. None for the local judge."""
        templates = exploration_prompts(prompts)
        super().__init__(
            self._load(task),
            runtimes=ExplorationRuntimes(provider, templates),
            prompts=templates,
            privileged=privileged,
            render_mode=render_mode,
        )

    @property
    def state(self) -> ExplorationState:
        """Seed of the episode, its turns and the open document. Privileged."""
        return self.last.state

    @property
    def records(self) -> ExplorationRecords:
        """Records of its episodes, for logs."""
        return ExplorationRecords(self, self.judging)

    def step(self, action: str) -> TextStep:
        """Take one action.

        Returns: observation, reward, terminated, truncated (always False) and info.

        Raises:
            ActionError: the action is not a string.
            RewardError: the judge gave no usable answer. The same step can be taken again.
            BudgetError: a cap of the judge is reached.
            MissingExtraError: the action is a SEARCH, and bm25s is not installed.
            ResetNeeded: before the first reset, or after the end.
            ClosedEnvironmentError: after `close`.
        """
        runtime, last = self._runtime, self.last_transition
        if runtime is None or last is None:
            raise self._not_started()
        if not isinstance(action, str):
            raise not_a_text_error(action)
        if last.state.phase == "end":
            raise ResetNeeded("the episode is over: the answer was given; call reset() before the next step()")
        state, view = act(last.state, readable(action), runtime.provider, runtime.rules)
        found = None if view.answer is None else self._grade(view.answer)
        self.last_transition = ExplorationTransition(state, view, action, found, last.shown | set(view.shown))
        if self.render_mode == "human":
            self.render()
        # A table of the whole library has a score of 1, so F1 of its items is the reward.
        reward = found.items().f1 if isinstance(found, TableGrade) else 0.0 if found is None else found.score
        return runtime.render(state, view), reward, state.phase == "end", False, self._info()

    def uncached_texts(self, action: str) -> Iterator[tuple[TextVectors, str]]:
        """Return no text: nothing is embedded."""
        return iter(())

    def ask_ahead(self, action: str) -> Coroutine[Any, Any, None] | None:
        """Return a coroutine that asks the judge about an answer ahead of its step. None for any other action."""
        parsed = parse_action(readable(action))
        answers = parsed.tool == "answer" or self.state.phase == "answer"
        if not answers or self.judging is None or not self.judging.waits:
            return None
        return self.judging.ask_ahead(self.task, parsed.text if parsed.tool == "answer" else readable(action).strip())

    def _grade(self, answer: str) -> Grade | None:
        if self.judging is None:
            return grade(self.task.gold, answer)
        given: Grade | None = self.judging.grade(self.task, answer, lambda payload: payload)
        return given

    def _start(self, runtime: ExplorationRuntime, episode_seed: int) -> tuple[str, dict[str, Any]]:
        self.last_transition = ExplorationTransition(ExplorationState(episode_seed))
        return runtime.render(self.last_transition.state, None), self._info()

    def _load(self, tasks: Any) -> tuple[ExplorationTask, ...]:
        named = [tasks] if isinstance(tasks, str) else tasks
        if isinstance(named, Sequence) and all(isinstance(each, str) for each in named):
            named = TASKS.expand(named)
        single = (str, os.PathLike, ExplorationTask)
        return load_each(named, TASKS.load, single=single, noun="task is an id, a path, an ExplorationTask, T1 or all")

    def _override(self, options: Mapping[str, Any]) -> ExplorationRules:
        check_names(options, ("task", *ExplorationRules.names()), "reset")
        return self.rules.override({name: value for name, value in options.items() if name != "task"})

    def _as_text(self) -> str:
        runtime, state = self.runtime, self.state
        status = f"{runtime.task.id} · turn {state.turn} of {runtime.rules.max_turns} · {state.phase}"
        return under_status(status, runtime.render(state, self.last.view))

    def _info(self) -> dict[str, Any]:
        state, view = self.last.state, self.last.view
        info: dict[str, Any] = {"state": state.phase, "turn": state.turn, "tool": "" if view is None else view.tool}
        if self.privileged:
            task = self.task
            found = sum((each.document, each.page) in self.last.shown for each in task.evidence)
            told = {"found": found, "facts": len(task.evidence)}
            info["privileged"] = {"gold": task.gold.written(), "path": list(task.path), **told}
        return info
