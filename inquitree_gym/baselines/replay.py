"""Agents whose actions come from outside: a log, or a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from inquitree_gym.baselines.agent import BaselineAgent
from inquitree_gym.errors import LogError


class ReplayAgent(BaselineAgent):
    """Repeats the actions of an earlier episode."""

    name = "replay"

    def __init__(self, actions: Sequence[str]) -> None:
        """Take ``actions`` in order."""
        super().__init__()
        self._actions = tuple(actions)
        self._taken = 0

    def reset(self, seed: int) -> None:
        """Start again with the first action."""
        super().reset(seed)
        self._taken = 0

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action.

        Raises:
            LogError: no action is left.
        """
        if self._taken == len(self._actions):
            raise LogError(
                f"the episode continues after its {self._taken} logged actions; it was torn, or played with other rules"
            )
        self._taken += 1
        return self._actions[self._taken - 1]


class HumanAgent(BaselineAgent):
    """Asks a person."""

    name = "human"

    def __init__(self, ask: Callable[[str, Mapping[str, Any]], str]) -> None:
        """Get each action from ``ask(observation, info)``."""
        super().__init__()
        self._ask = ask

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the person's answer."""
        return self._ask(observation, info)

    def recall(self, observation: str, info: Mapping[str, Any], action: str) -> None:
        """Do nothing: the person need not answer again."""
