"""`TextVectorEnv`: free-text environments whose texts are embedded in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from inquitree_gym.embeddings import Embedder, TextVectors
from inquitree_gym.embeddings.protocol import embedded
from inquitree_gym.envs.asking import all_at_once
from inquitree_gym.envs.text import TextEnv, closed_error
from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.llm.litellm import run_sync

E = TypeVar("E", bound="TextEnv[Any, Any, Any, Any]")
VectorStep = tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class TextVectorEnv(SyncVectorEnv):
    """A `SyncVectorEnv` that embeds all texts of a step in one call, and asks services concurrently.

    Autoreset modes, ``reset_mask``, seeds, options and infos are those of `SyncVectorEnv`. The last bits of a vector
    depend on its batch (differences of 1.7e-7 were measured), so similarities agree with those of a single environment
    within 1e-5. A text that is within 1e-5 of a threshold is embedded again alone, so that every action is read as in a
    single environment.
    """

    def __init__(
        self,
        num_envs: int,
        make: Callable[..., TextEnv[Any, Any, Any, Any]],
        *,
        option: str,
        task: Any,
        tasks: Sequence[Any] | None,
        autoreset_mode: str | AutoresetMode,
    ) -> None:
        """Make environments that are stepped together. They get one cache of runtimes for their vectors from batches.

        Args:
            num_envs: number of environments.
            make: constructor of one environment.
            option: its keyword for tasks. ``tasks`` is the argument with an "s" behind that name.
            task: tasks of every environment. None leaves the keyword out.
            tasks: one task for each environment, in place of ``task``, or None.
            autoreset_mode: as in Gymnasium.

        Raises:
            OptionError: see `check_vector_arguments`, or any error of ``make``.
        """
        mode = check_vector_arguments(num_envs, tasks, autoreset_mode, name=f"{option}s")
        if tasks is not None:
            envs = [make(**{option: own}) for own in tasks]
        else:
            shared = {} if task is None else {option: task}
            envs = [make(**shared) for _ in range(num_envs)]
        self._members = tuple(envs)
        if envs[0].runtimes.scope == "shared":
            runtimes = envs[0].runtimes.within("private")
            for env in envs:
                env.runtimes = runtimes
        super().__init__([partial(_itself, env) for env in envs], autoreset_mode=mode)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Start episodes.

        See `SyncVectorEnv.reset` for seeds and ``reset_mask``, and the single environment for the other options.

        Raises:
            OptionError: an unknown option or a value out of range.
            ClosedEnvironmentError: after `close`.
        """
        self._check_open()
        # Gymnasium removes reset_mask from the dict that it is given, and takes several seeds only as a list.
        seeds = seed if seed is None or isinstance(seed, int) else list(seed)
        return super().reset(seed=seeds, options=None if options is None else dict(options))

    def step(self, actions: Sequence[str]) -> VectorStep:
        """Take one turn in every environment.

        Args:
            actions: one string per environment.

        Returns: observations (a tuple of str), rewards, terminations and truncations, arrays of shape ``(num_envs,)``,
            and infos.

        Raises:
            ActionError: not one string per environment. None takes a turn.
            ReaderError, RewardError: a reader or judge gave no usable answer. No environment takes a turn.
            ResetNeeded: before the first reset, or after an end with autoreset mode "Disabled".
            ClosedEnvironmentError: after `close`.
        """
        self._check_open()
        self._check(actions)
        self._ask(actions)
        self._embed(actions)
        return super().step(tuple(actions))

    def _check_open(self) -> None:
        if self.closed:
            raise closed_error()

    def _check(self, actions: Sequence[str]) -> None:
        """Check all actions before any environment takes its turn. Finished ones ignore theirs."""
        listed = isinstance(actions, Sequence | np.ndarray) and not isinstance(actions, str) and np.ndim(actions) != 0
        if not listed or len(actions) != self.num_envs:
            raise ActionError(f"actions must be {self.num_envs} strings, one for each environment, got {actions!r:.80}")
        over = self._autoreset_envs
        if self.autoreset_mode == AutoresetMode.DISABLED and over.any():
            raise episode_over_error(int(over.argmax()))
        for i, action in enumerate(actions):
            if not over[i] and not isinstance(action, str):
                raise ActionError(
                    f"an action must be a string, got {type(action).__name__} ({action!r:.80}, environment {i})"
                )

    def _ask(self, actions: Sequence[str]) -> None:
        """Ask the readers and judges about the actions of this step concurrently."""
        pending = zip(self._members, actions, self._autoreset_envs, strict=True)
        asking = [env.ask_ahead(action) for env, action, over in pending if not over]
        if waiting := [coroutine for coroutine in asking if coroutine is not None]:
            run_sync(all_at_once(waiting))

    def _embed(self, actions: Sequence[str]) -> None:
        """Embed the uncached texts of this step in one call per embedder."""
        wanted: dict[Embedder, dict[str, list[TextVectors]]] = {}
        for env, action, over in zip(self._members, actions, self._autoreset_envs, strict=True):
            if not over:
                for vectors, text in env.uncached_texts(action):
                    wanted.setdefault(vectors.embedder, {}).setdefault(text, []).append(vectors)
        for embedder, texts in wanted.items():
            for (text, takers), vector in zip(texts.items(), embedded(embedder, list(texts)), strict=True):
                for vectors in takers:
                    vectors.take(text, vector)


def check_vector_arguments(
    num_envs: int, tasks: Sequence[Any] | None, autoreset_mode: str | AutoresetMode, *, name: str
) -> AutoresetMode:
    """Check the arguments that vector environments share, and return the autoreset mode.

    Raises:
        OptionError: ``num_envs`` is not an integer from 1. ``tasks``, the argument called ``name``, is not a sequence
            of that length, or ``autoreset_mode`` is unknown.
    """
    if type(num_envs) is not int or num_envs < 1:
        raise OptionError(f"num_envs must be an integer from 1, got {num_envs!r:.80}")
    if tasks is not None and (isinstance(tasks, str) or not isinstance(tasks, Sequence) or len(tasks) != num_envs):
        raise OptionError(
            f"{name} must be a sequence with one {name[:-1]} for each of the {num_envs} environments, got {tasks!r:.80}"
        )
    try:
        return AutoresetMode(autoreset_mode)
    except ValueError as error:
        known = ", ".join(f'"{mode.value}"' for mode in AutoresetMode)
        raise OptionError(f"autoreset_mode must be one of {known}, got {autoreset_mode!r:.80}") from error


def episode_over_error(environment: int) -> ResetNeeded:
    """Return the error for a step of a finished environment that is not reset automatically."""
    return ResetNeeded(
        f"the episode of environment {environment} is over; call reset(options={{'reset_mask': ...}}) before the next "
        f"step(), or choose another autoreset_mode"
    )


def _itself(env: E) -> E:
    return env
