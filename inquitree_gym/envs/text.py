"""`TextEnv`: the base of all free-text environments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import gymnasium as gym
from gymnasium.error import ClosedEnvironmentError, ResetNeeded

from inquitree_gym.embeddings import TextVectors
from inquitree_gym.engine import splitmix64
from inquitree_gym.envs.runtime_cache import Runtimes
from inquitree_gym.errors import ActionError, OptionError

T = TypeVar("T")
Runtime = TypeVar("Runtime")
Past = TypeVar("Past")
TextStep = tuple[str, float, bool, bool, dict[str, Any]]


class TextEnv(ABC, gym.Env[str, str], Generic[T, Runtime, Past]):
    """Base of the free-text environments: the start and the end of episodes, their seeds, and their rendering.

    Its type parameters are the document of an episode (a tree or a task), its runtime, and the transitions. A subclass
    sets ``privileged``, ``render_mode`` and the class attribute ``metadata``.
    """

    runtimes: Runtimes[T, Any, Runtime]
    """Runtimes of the trees or tasks; environments may share one cache."""
    last_transition: Past | None = None
    """The transition of the last `step` or `reset`; None before the first."""
    _runtime: Runtime | None = None
    _first_seed: int | None = None
    _episode = 0
    _closed = False

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
    @abstractmethod
    def agent_seed(self) -> int:
        """Seed for the agent of this episode; pass it to `Agent.reset`."""

    @abstractmethod
    def resolve_options(self, options: Mapping[str, Any] | None) -> tuple[tuple[T, ...], Any]:
        """Return the trees or tasks to sample from and the rules of an episode with these `reset` options."""

    @abstractmethod
    def uncached_texts(self, action: str) -> Iterator[tuple[TextVectors, str]]:
        """Return the texts that `step` will embed for ``action``, each with its vector cache."""

    @abstractmethod
    def ask_ahead(self, action: str) -> Coroutine[Any, Any, None] | None:
        """Return a coroutine that asks services about ``action`` ahead of its step; None if none is asked."""

    @abstractmethod
    def _start(self, runtime: Runtime, episode_seed: int) -> tuple[str, dict[str, Any]]:
        """Start the episode of a runtime, and return its first observation and info."""

    @abstractmethod
    def _as_text(self) -> str:
        """Return the last observation below a line with the status of the episode."""

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: determines everything that is drawn: the tree or task, fake results, and the seed of the agent.
                Without it, the k-th episode after a seeded reset is seeded by a hash of that seed and k.
            options: ``tree`` or ``task``, as for the constructor, and rules, for this episode alone.

        Returns: the opening observation and info.

        Raises:
            OptionError: an unknown option or a value out of range.
            TreeError: the tree or task is unknown or invalid.
            ClosedEnvironmentError: after `close`.
        """
        if self._closed:
            raise self._not_started()
        choices, rules = self.resolve_options(options)
        super().reset(seed=seed)
        episode_seed = self._next_seed(seed)
        self._runtime = self.runtimes.get(self._choose(choices, episode_seed), rules)
        opening = self._start(self._runtime, episode_seed)
        if self.render_mode == "human":
            self.render()
        return opening

    def render(self) -> Any:
        """Return text for ``ansi``; print for ``human``."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; pass one to gym.make(...)")
            return None
        text = self._as_text()
        if self.render_mode == "ansi":
            return text
        from inquitree_gym.envs import rendering

        return rendering.to_terminal(text)

    def close(self) -> None:
        """End the episode for good; a closed environment takes neither `step` nor `reset`."""
        self._closed = True
        self._runtime = self.last_transition = None

    def _choose(self, choices: tuple[T, ...], episode_seed: int) -> T:
        """Return the tree or task of an episode; one of several is drawn by the episode's seed."""
        return draw_one(choices, episode_seed)

    def _check_render_mode(self, render_mode: str | None) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise OptionError(f"render_mode is one of {self.metadata['render_modes']} or None, not {render_mode!r}")

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


def not_started_error() -> ResetNeeded:
    """Return the error for a step before the first reset."""
    return ResetNeeded("no episode has been started; call reset() first")


def closed_error() -> ClosedEnvironmentError:
    """Return the error for the use of an environment after `close`."""
    return ClosedEnvironmentError("the environment was closed; make another one")


def not_a_text_error(action: object) -> ActionError:
    """Return the error for an action that is not a string."""
    return ActionError(f"an action is a string, not {type(action).__name__} ({action!r:.80})")


def draw_one(choices: Sequence[T], episode_seed: int) -> T:
    """Return one of ``choices``, drawn by the seed of an episode."""
    return choices[splitmix64(episode_seed, len(choices)) % len(choices)] if len(choices) > 1 else choices[0]
