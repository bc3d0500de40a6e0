"""`TextEnv`: the base of all free-text environments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

import gymnasium as gym
from gymnasium.error import ClosedEnvironmentError, ResetNeeded

from inquitree_gym.envs.spaces import FreeText
from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.ruleset import RuleSet
from inquitree_gym.seeds import seed_of_agent, splitmix64
from inquitree_gym.text_limits import MAX_ACTION_LENGTH, MAX_OBSERVATION

if TYPE_CHECKING:
    from inquitree_gym.embeddings import TextVectors
    from inquitree_gym.envs.episode_records import EpisodeRecords, RecordedStep, ServiceReply
    from inquitree_gym.log import Header, Setup, Turn
    from inquitree_gym.prompts import Prompts

About = TypeVar("About")
SomeRules = TypeVar("SomeRules")
Built = TypeVar("Built")

Scope = Literal["shared", "private", "episode"]
"""Lifetime of the vectors of a tree or task. See `Runtimes`."""


class Runtimes(ABC, Generic[About, SomeRules, Built]):
    """Runtimes by tree or task and rules. Built on first use."""

    most: int
    """Runtimes cached at most. The oldest one goes first."""

    def __init__(self) -> None:
        self._cached: dict[tuple[About, SomeRules], Built] = {}

    @property
    @abstractmethod
    def scope(self) -> Scope:
        """Lifetime of the vectors.

        ``"shared"`` uses one set of vectors per process. ``"private"`` keeps vectors that were embedded in a batch away
        from other environments. ``"episode"`` drops runtimes and vectors after each episode, for trees and tasks that
        are played once.
        """

    @abstractmethod
    def within(self, scope: Scope) -> Self:
        """Return an empty cache with vectors of another lifetime."""

    @abstractmethod
    def _build(self, about: About, rules: SomeRules) -> Built:
        """Return a new runtime."""

    def get(self, about: About, rules: SomeRules) -> Built:
        """Return the runtime of a tree or task under ``rules``, the same object while it is cached."""
        runtime = self._cached.get((about, rules))
        if runtime is None:
            runtime = self._build(about, rules)
            if self.scope != "episode":
                self._cached[about, rules] = runtime
            if len(self._cached) > self.most:
                del self._cached[next(iter(self._cached))]
        return runtime


class TextRuntime(Protocol):
    """The members that runtimes of all kinds share."""

    @property
    def task(self) -> Any:
        """Task of the episode."""

    @property
    def rules(self) -> Any:
        """Rules of the episode."""


T = TypeVar("T")
Rules = TypeVar("Rules", bound=RuleSet)
Runtime = TypeVar("Runtime", bound=TextRuntime)
Past = TypeVar("Past")
TextStep = tuple[str, float, bool, bool, dict[str, Any]]


class TextEnv(ABC, gym.Env[str, str], Generic[T, Rules, Runtime, Past]):
    """Base of the free-text environments: tasks, rules, the start and the end of episodes, their seeds and rendering.

    Its type parameters are the task of an episode, its rules, its runtime, and the transitions. A subclass sets the
    class attributes ``kind``, ``task_option`` and ``metadata``.
    """

    kind: ClassVar[str]
    """Name of its kind. See `kinds.kind`."""
    task_option: ClassVar[str]
    """Name of the keyword and option for tasks."""
    rules: Rules
    """Rules of its episodes, without the options of a reset."""
    runtimes: Runtimes[T, Any, Runtime]
    """Runtimes of the tasks. Environments may share one cache."""
    last_transition: Past | None = None
    """The transition of the last `step` or `reset`. None before the first."""
    _runtime: Runtime | None = None
    _episode_seed = 0
    _first_seed: int | None = None
    _episode = 0
    _closed = False

    def __init__(
        self,
        tasks: tuple[T, ...],
        *,
        runtimes: Runtimes[T, Any, Runtime],
        prompts: Prompts,
        privileged: bool,
        render_mode: str | None,
    ) -> None:
        """Set what all kinds have.

        Args:
            tasks: tasks to sample from, by the seed of each episode.
            runtimes: runtimes of these tasks.
            prompts: templates of the observations.
            privileged: True to put a dict ``privileged`` into the infos.
            render_mode: one of ``metadata["render_modes"]``, or None.

        Raises:
            OptionError: the render mode is unknown.
        """
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise OptionError(
                f"render_mode must be one of {self.metadata['render_modes']} or None, got {render_mode!r}"
            )
        self.tasks, self.runtimes, self.prompts = tasks, runtimes, prompts
        self.privileged, self.render_mode = privileged, render_mode
        self.action_space, self.observation_space = FreeText(MAX_ACTION_LENGTH), FreeText(MAX_OBSERVATION)

    @property
    def runtime(self) -> Runtime:
        """Rules, texts and judge of this episode.

        Raises:
            ResetNeeded: before the first reset.
            ClosedEnvironmentError: after `close`.
        """
        if self._runtime is None:
            raise self._not_started()
        return self._runtime

    @property
    def task(self) -> T:
        """The task of this episode."""
        task: T = self.runtime.task
        return task

    @property
    def episode_rules(self) -> Rules:
        """The rules of this episode, including the options of its reset."""
        rules: Rules = self.runtime.rules
        return rules

    @property
    def last(self) -> Past:
        """The transition of the last `step` or `reset`. Privileged.

        Raises:
            ResetNeeded: before the first reset.
            ClosedEnvironmentError: after `close`.
        """
        if self.last_transition is None:
            raise self._not_started()
        return self.last_transition

    @property
    def turn_limit(self) -> int | None:
        """Turns of this episode at most. None for no limit."""
        return None

    @property
    def episode_seed(self) -> int:
        """Seed of this episode. Privileged."""
        return self._episode_seed

    @property
    def agent_seed(self) -> int:
        """Seed for the agent of this episode, a hash of seed and task. Pass it to `Agent.reset`."""
        return seed_of_agent(self._episode_seed, self.runtime.task.id)

    @property
    @abstractmethod
    def records(self) -> EpisodeRecords:
        """Records of its episodes, for logs."""

    @abstractmethod
    def uncached_texts(self, action: str) -> Iterator[tuple[TextVectors, str]]:
        """Return the texts that `step` will embed for ``action``, each with its vector cache."""

    @abstractmethod
    def ask_ahead(self, action: str) -> Coroutine[Any, Any, None] | None:
        """Return a coroutine that asks services about ``action`` ahead of its step. None if none is asked."""

    @abstractmethod
    def _load(self, tasks: Any) -> tuple[T, ...]:
        """Return one task or several, given by id, by path or as they are."""

    @abstractmethod
    def _override(self, options: Mapping[str, Any]) -> Rules:
        """Return the rules of an episode with these `reset` options, of which there is at least one."""

    @abstractmethod
    def _start(self, runtime: Runtime, episode_seed: int) -> tuple[str, dict[str, Any]]:
        """Start the episode of a runtime, and return its first observation and info."""

    @abstractmethod
    def _as_text(self) -> str:
        """Return the last observation below a line with the status of the episode."""

    def resolve_options(self, options: Mapping[str, Any] | None) -> tuple[tuple[T, ...], Rules]:
        """Return the tasks to sample from and the rules of an episode with these `reset` options."""
        if not options:
            return self.tasks, self.rules
        return self.requested_tasks(options) or self.tasks, self._override(options)

    def requested_tasks(self, options: Mapping[str, Any] | None) -> tuple[T, ...]:
        """Return the tasks that `reset` options name, or none."""
        return self._load(options[self.task_option]) if options and self.task_option in options else ()

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: determines everything that is drawn: the task, results, and the seed of the agent. Without it, the
                k-th episode after a seeded reset is seeded by a hash of that seed and k.
            options: tasks, as for the constructor, and rules, for this episode alone.

        Returns: the opening observation and info.

        Raises:
            OptionError: an unknown option or a value out of range.
            TreeError: the task is unknown or invalid.
            ClosedEnvironmentError: after `close`.
        """
        if self._closed:
            raise self._not_started()
        choices, rules = self.resolve_options(options)
        super().reset(seed=seed)
        self._episode_seed = self._next_seed(seed)
        self._runtime = self.runtimes.get(self._choose(choices, self._episode_seed), rules)
        opening = self._start(self._runtime, self._episode_seed)
        if self.render_mode == "human":
            self.render()
        return opening

    def render(self) -> Any:
        """Return text for ``ansi``. Print for ``human``."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; pass one to gym.make(...)")
            return None
        text = self._as_text()
        if self.render_mode == "ansi":
            return text
        return to_terminal(text)

    def close(self) -> None:
        """End the episode for good. A closed environment takes neither `step` nor `reset`."""
        self._closed = True
        self._runtime = self.last_transition = None

    def _choose(self, choices: tuple[T, ...], episode_seed: int) -> T:
        """Return the task of an episode. One of several is drawn by the episode's seed."""
        return draw_one(choices, episode_seed)

    def _not_started(self) -> ResetNeeded | ClosedEnvironmentError:
        return closed_error() if self._closed else not_started_error()

    def _next_seed(self, seed: int | None) -> int:
        """Return the episode's seed: the given seed, or for the k-th episode after it a hash of that seed and k."""
        if seed is not None or self._first_seed is None:
            self._first_seed = int(self.np_random_seed) if seed is None else seed
            self._episode = 0
            return self._first_seed
        self._episode += 1
        return splitmix64(self._first_seed, self._episode)


class TextRecords(ABC, Generic[T, Rules, Runtime, Past]):
    """Base of the records of the episode of one free-text environment. See `EpisodeRecords` for the methods."""

    def __init__(self, env: TextEnv[T, Rules, Runtime, Past]) -> None:
        self._env = env

    @property
    def agent_seed(self) -> int:
        """See `TextEnv.agent_seed`."""
        return self._env.agent_seed

    def header(self, *, agent: Mapping[str, Any], versions: Mapping[str, str | None], started: str) -> Header:
        """Name the kind, the task, the rules and the setup."""
        from inquitree_gym.log import Header, TaskRef  # the models of records take a tenth of a start

        env, task = self._env, self._env.runtime.task
        return Header(
            versions=dict(versions),
            task=TaskRef(kind=env.kind, id=task.id, version=task.version, digest=task.digest),
            rules=env.episode_rules.as_dict(),
            seed=env.episode_seed,
            setup=self._setup(),
            prompts=env.prompts.digest,
            agent=dict(agent),
            started=started,
        )

    def ask_ahead(self, action: str) -> Coroutine[Any, Any, None] | None:
        """See `TextEnv.ask_ahead`."""
        return self._env.ask_ahead(action)

    @abstractmethod
    def observation(self) -> str:
        """See `EpisodeRecords.observation`."""

    @abstractmethod
    def last_step(self) -> RecordedStep:
        """See `EpisodeRecords.last_step`."""

    @abstractmethod
    def replies(self) -> Iterator[ServiceReply]:
        """See `EpisodeRecords.replies`."""

    @abstractmethod
    def judge(self) -> Mapping[str, Any]:
        """See `EpisodeRecords.judge`."""

    @abstractmethod
    def recall(self, turn: Turn[Any]) -> None:
        """See `EpisodeRecords.recall`."""

    @abstractmethod
    def _setup(self) -> Setup:
        """Return whatever else determines an episode, for the header."""


def under_status(status: str, observation: str) -> str:
    """Return an observation as plain text below a status line."""
    return f"{status}\n{'─' * len(status)}\n{observation}\n"


def to_terminal(text: str) -> None:
    """Print the text of `under_status` as a panel."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    status, _, rest = text.partition("\n")
    body = rest.partition("\n")[2].rstrip()
    Console().print(Panel(Text(body), title=Text(status), title_align="left", width=min(110, Console().width)))


def not_started_error() -> ResetNeeded:
    """Return the error for a step before the first reset."""
    return ResetNeeded("no episode has been started; call reset() first")


def closed_error() -> ClosedEnvironmentError:
    """Return the error for the use of an environment after `close`."""
    return ClosedEnvironmentError("the environment was closed; make another one")


def not_a_text_error(action: object) -> ActionError:
    """Return the error for an action that is not a string."""
    return ActionError(f"an action must be a string, got {type(action).__name__} ({action!r:.80})")


def draw_one(choices: Sequence[T], episode_seed: int) -> T:
    """Return one of ``choices``, drawn by the seed of an episode."""
    return choices[splitmix64(episode_seed, len(choices)) % len(choices)] if len(choices) > 1 else choices[0]
