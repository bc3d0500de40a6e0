"""`TextEnv`: the part that all environments in free text share."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, TypeVar

import gymnasium as gym
from gymnasium.error import ClosedEnvironmentError, ResetNeeded

from inquitree_gym.embeddings import TextVectors
from inquitree_gym.engine import splitmix64
from inquitree_gym.errors import ActionError, OptionError

T = TypeVar("T")
TextStep = tuple[str, float, bool, bool, dict[str, Any]]


class TextEnv(gym.Env[str, str]):
    """Base of the environments in free text: seeds of the episodes, checks of actions, and the end of the environment.

    A subclass sets ``privileged`` and ``render_mode``, and says which texts a step will embed and what it will ask.
    """

    _first_seed: int | None = None
    _episode = 0
    _closed = False

    @property
    def agent_seed(self) -> int:
        """Seed for the agent of this episode; pass it to `Agent.reset`."""
        raise NotImplementedError

    def uncached_texts(self, action: str) -> Iterator[tuple[TextVectors, str]]:
        """Return the texts that `step` will embed for ``action``, each with its vector cache."""
        raise NotImplementedError

    def ask_ahead(self, action: str) -> Coroutine[Any, Any, None] | None:
        """Return a coroutine that asks services about ``action`` ahead of its step; None if none is asked."""
        raise NotImplementedError

    def close(self) -> None:
        """End the episode for good; a closed environment takes neither `step` nor `reset`."""
        self._closed = True

    def _check_render_mode(self, render_mode: str | None) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise OptionError(f"render_mode is one of {self.metadata['render_modes']} or None, not {render_mode!r}")

    def _not_started(self) -> ResetNeeded | ClosedEnvironmentError:
        if self._closed:
            return ClosedEnvironmentError("the environment was closed; make another one")
        return ResetNeeded("no episode has been started; call reset() first")

    def _next_seed(self, seed: int | None) -> int:
        """Return the episode's seed: the given one, or for the k-th episode after it a hash of that seed and k."""
        if seed is not None or self._first_seed is None:
            self._first_seed = int(self.np_random_seed) if seed is None else seed
            self._episode = 0
            return self._first_seed
        self._episode += 1
        return splitmix64(self._first_seed, self._episode)


def not_a_text_error(action: object) -> ActionError:
    """Return the error for an action that is not a string."""
    return ActionError(f"an action is a string, not {type(action).__name__} ({action!r:.80})")


def draw_one(choices: Sequence[T], episode_seed: int) -> T:
    """Return one of ``choices``, drawn by the seed of an episode."""
    return choices[splitmix64(episode_seed, len(choices)) % len(choices)] if len(choices) > 1 else choices[0]
