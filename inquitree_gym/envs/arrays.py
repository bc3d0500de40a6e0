"""`BatchEnv`: the part that all vector environments share that step their environments as arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

from inquitree_gym.envs.spaces import Bools, Ints
from inquitree_gym.envs.text import closed_error
from inquitree_gym.errors import OptionError
from inquitree_gym.seeds import Hashes, hash_words

Seed = int | Sequence[int | None] | None

_NEXT = np.ones((), np.uint64)
_WORD = (1 << 64) - 1


class EpisodeSeeds:
    """Episode seeds of all environments: the given seed, then for the k-th episode after it a hash of seed and k."""

    def __init__(self, num_envs: int) -> None:
        self.first: Hashes = np.zeros(num_envs, np.uint64)
        self.episode: Hashes = np.zeros(num_envs, np.uint64)
        self._roots: Hashes = np.zeros(num_envs, np.uint64)
        self.hashes: Hashes = np.zeros(num_envs, np.uint64)
        """``splitmix64(seed)`` of the current episode, which its draws extend. See `advance`."""
        self._seeded = np.zeros(num_envs, np.bool_)

    def reset(self, envs: Ints, seeds: Sequence[int | None], rng: np.random.Generator) -> None:
        """Set the seeds of these environments' next episodes. None continues from the last seed given, or draws one."""
        given = np.array([seed is not None for seed in seeds])
        new = envs[~given & ~self._seeded[envs]]
        self.advance(envs[~given & self._seeded[envs]])
        self._set(new, rng.integers(1 << 63, size=len(new), dtype=np.uint64))
        self._set(envs[given], np.array([seed & _WORD for seed in seeds if seed is not None], np.uint64))
        self._seeded[envs] = True

    def _set(self, envs: Ints, seeds: Hashes) -> None:
        self.first[envs] = seeds
        self.episode[envs] = 0
        self.hashes[envs] = self._roots[envs] = hash_words(np.zeros_like(seeds), seeds)

    def advance(self, envs: Ints, *, update_hashes: bool = True) -> None:
        """Go on to the next episode of these environments. `hashes` may be left out of date if nothing is drawn."""
        episode = self.episode.take(envs)
        episode += _NEXT
        self.episode[envs] = episode
        if update_hashes:
            seeds = hash_words(self._roots.take(envs), episode)
            self.hashes[envs] = hash_words(np.zeros_like(seeds), seeds)

    def choose(self, envs: Ints, numbers: Ints, own: Ints | None = None) -> Ints:
        """Return the tree of each environment's episode, out of ``numbers``, or a single tree for all.

        Args:
            envs: the environments.
            numbers: numbers of the trees to choose from, by the seeds of the episodes.
            own: index into ``numbers`` of every environment's tree, if that is fixed.
        """
        if own is not None:
            return numbers.take(own.take(envs))
        if len(numbers) == 1:
            return numbers
        count = np.array(len(numbers), np.uint64)
        return numbers.take((hash_words(self.hashes.take(envs), count) % count).astype(np.int64))

    def current(self, envs: Ints) -> Hashes:
        """Return the seeds of the current episodes of these environments, shape ``(len(envs),)``."""
        episode = self.episode.take(envs)
        return np.where(episode > 0, hash_words(self._roots.take(envs), episode), self.first.take(envs))

    def of(self, env: int) -> int:
        """Return the seed of the current episode."""
        return int(self.current(np.array([env]))[0])


def spread_seeds(seed: Seed, num_envs: int) -> list[int | None]:
    """Return one seed per environment. A single seed increases by 1 from each environment to the next.

    Raises:
        OptionError: ``seed`` is neither None, a whole number from 0, nor a list of ``num_envs`` of these.
    """
    if seed is None or isinstance(seed, int):
        seeds = [None if seed is None else seed + i for i in range(num_envs)]
    else:
        seeds = list(seed) if isinstance(seed, Sequence) else []
    if len(seeds) != num_envs or not all(each is None or (isinstance(each, int) and each >= 0) for each in seeds):
        raise OptionError(
            f"seed must be None, an integer from 0, or a list of one or the other for each of the {num_envs} "
            f"environments, got {seed!r:.80}"
        )
    return seeds


def envs_to_reset(mask: Any, num_envs: int) -> Ints:
    """Return the indices of the environments to reset. None resets all.

    Raises:
        OptionError: ``mask`` is not a bool array of shape ``(num_envs,)``, or False everywhere.
    """
    if mask is None:
        return np.arange(num_envs)
    fits = isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (num_envs,)
    if not (fits and mask.any()):
        raise OptionError(f"reset_mask must be a bool array of shape ({num_envs},), True somewhere, got {mask!r:.80}")
    envs: Ints = mask.nonzero()[0]
    return envs


def env_mask(envs: Ints | slice, num_envs: int) -> Bools:
    """Return True at the indices ``envs``, shape ``(num_envs,)``."""
    mask = np.zeros(num_envs, np.bool_)
    mask[envs] = True
    return mask


class BatchEnv(ABC, VectorEnv[Any, Any, Any]):
    """Base of the vector environments whose environments are stepped together as arrays."""

    kind: ClassVar[str]
    """Name of the kind of environment. See `kinds.kind`."""
    _with_infos: bool
    """False leaves out all infos but ``final_obs``."""

    @cached_property
    def observation_space(self) -> gym.Space[Any]:  # type: ignore[override]
        """Space of the observations of all environments, built on first use, because it is larger than they are."""
        return batch_space(self.single_observation_space, self.num_envs)

    @abstractmethod
    def _infos(self, envs: Ints | None) -> dict[str, Any]:
        """Return the infos of ``envs``, or of all environments."""

    @abstractmethod
    def _observe_each(self, envs: Ints) -> list[Any]:
        """Return the observation of every environment in ``envs``."""

    def _check_open(self) -> None:
        if self.closed:
            raise closed_error()

    def _resets(self, seed: Seed, options: Mapping[str, Any] | None) -> tuple[Ints, list[int | None], dict[str, Any]]:
        """Return the environments to reset, the seed of each, and the options without ``reset_mask``.

        Raises:
            OptionError: a seed or mask does not fit.
            ClosedEnvironmentError: after `close`.
        """
        self._check_open()
        super().reset(seed=seed if isinstance(seed, int) else None)
        rest = dict(options or {})
        seeds, envs = spread_seeds(seed, self.num_envs), envs_to_reset(rest.pop("reset_mask", None), self.num_envs)
        return envs, [seeds[env] for env in envs.tolist()], rest

    def _final(self, envs: Ints) -> dict[str, Any]:
        """Return the last observations and infos of environments that ended, before they are reset."""
        last = np.full(self.num_envs, None)
        for env, observation in zip(envs.tolist(), self._observe_each(envs), strict=True):
            last[env] = observation
        infos: dict[str, Any] = {"final_obs": last, "_final_obs": env_mask(envs, self.num_envs)}
        if self._with_infos:
            infos |= {"final_info": self._infos(envs), "_final_info": env_mask(envs, self.num_envs)}
        return infos
