"""`BatchEnv`: the part that all vector environments share that step their environments as arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

from inquitree_gym.envs.batch.encoding import Ints
from inquitree_gym.envs.batch.seeds import Seed, env_mask, envs_to_reset, spread_seeds
from inquitree_gym.envs.text import closed_error


class BatchEnv(ABC, VectorEnv[Any, Any, Any]):
    """Base of the vector environments whose environments are stepped together as arrays."""

    _with_infos: bool
    """False leaves out all infos but ``final_obs``."""

    @cached_property
    def observation_space(self) -> gym.Space[Any]:  # type: ignore[override]
        """Space of the observations of all environments, built on first use: it is larger than they are."""
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
