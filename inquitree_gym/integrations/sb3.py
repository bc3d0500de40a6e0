"""Adapters for Stable-Baselines3: vector environments and trained models (extra ``rl``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from inquitree_gym.baselines import sb3_policy as sb3_policy
from inquitree_gym.errors import OptionError, require

try:
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn
except ModuleNotFoundError:
    require("stable_baselines3", "rl")
    raise


class BatchVecEnv(VecEnv):
    """Adapter from a Gymnasium vector environment with same-step autoreset to a `VecEnv`.

    One call steps all inquiries. MaskablePPO finds the masks through ``env_method("action_masks")``.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Wrap ``env``, made with ``autoreset_mode="SameStep"``.

        Raises:
            OptionError: it is no vector environment, has another autoreset mode, or does not copy its observations.
        """
        if not isinstance(env, VectorEnv):
            raise OptionError(f"BatchVecEnv must wrap what gymnasium.make_vec makes, got {type(env).__name__}")
        if env.metadata.get("autoreset_mode") != AutoresetMode.SAME_STEP:
            raise OptionError('Stable-Baselines3 needs an environment made with autoreset_mode="SameStep"')
        if not getattr(env.unwrapped, "copy", True):
            raise OptionError(
                "Stable-Baselines3 keeps the observations of a step until after the next one; leave copy at True"
            )
        self.env = env
        self.actions: NDArray[np.int64] = np.zeros(env.num_envs, np.int64)
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> VecEnvObs:
        """Reset all inquiries with the seeds and options set before. See `VecEnv.reset`.

        Raises:
            OptionError: the options differ between inquiries.
        """
        seeds: Any = None if all(seed is None for seed in self._seeds) else list(self._seeds)
        options = self._options[0] or None
        if any((other or None) != options for other in self._options):
            raise OptionError("the episodes of a batch are reset with the same options; pass one dict to set_options")
        observations, infos = self.env.reset(seed=seeds, options=options)
        self.reset_infos = [_row(infos, i) for i in range(self.num_envs)]
        self._reset_seeds()
        self._reset_options()
        found: VecEnvObs = observations
        return found

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Store the actions, shape ``(num_envs,)``, for `step_wait`."""
        self.actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Take one turn in every inquiry. The info of a finished one holds ``terminal_observation``."""
        observations, rewards, terminated, truncated, infos = self.env.step(self.actions)
        over = terminated | truncated
        told: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(over).tolist():
            last = infos["final_obs"]
            told[i] = {
                "terminal_observation": {k: v[i] for k, v in last.items()} if isinstance(last, dict) else last[i],
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
            }
        return observations, np.asarray(rewards, np.float32), over, told

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def has_attr(self, attr_name: str) -> bool:
        """Tell whether the environment has an attribute."""
        return hasattr(self.env, attr_name)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute of the whole environment, repeated for each index."""
        return [getattr(self.env, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Raise, since attributes are shared by all inquiries.

        Raises:
            OptionError: always.
        """
        raise OptionError(f"'{attr_name}' cannot be set for single episodes of a batch; set it where the env is made")

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> list[Any]:
        """Call a method of the whole environment that returns a row per inquiry, and return the rows of the indices."""
        answer: Sequence[Any] = getattr(self.env, method_name)(*args, **kwargs)
        return [answer[i] for i in self._get_indices(indices)]

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Return False for each index: single inquiries of a batch are not wrapped."""
        return [False for _ in self._get_indices(indices)]


def _row(infos: dict[str, Any], i: int) -> dict[str, Any]:
    """Return the info of one inquiry from the infos of a vector environment."""
    told = {name: values for name, values in infos.items() if not name.startswith("_")}
    return {name: _row(values, i) if isinstance(values, dict) else values[i] for name, values in told.items()}
