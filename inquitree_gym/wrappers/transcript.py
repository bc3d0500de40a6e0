"""The episode as chat messages."""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from inquitree_gym.errors import OptionError

Message = dict[str, str]


class Transcript(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Keeps the episode as the messages that chat models take: observations from the user, actions as replies."""

    def __init__(self, env: gym.Env[str, str], *, system: str | None = None, keep: int | None = None) -> None:
        """Wrap ``env``.

        Args:
            env: the environment.
            system: text of a system message that stands first; None for none.
            keep: of the exchanges (reply and answer) after the opening only so many last ones; None for all.

        Raises:
            OptionError: ``keep`` is no whole number from 0.
        """
        if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 0):
            raise OptionError(f"keep is a whole number from 0 or None, not {keep!r}")
        RecordConstructorArgs.__init__(self, system=system, keep=keep)
        gym.Wrapper.__init__(self, env)
        self._head: list[Message] = []
        self._exchanges: list[tuple[Message, Message]] = []
        self._system = system
        self._keep = keep

    @property
    def messages(self) -> list[Message]:
        """The messages so far, oldest first: a new list of dicts with ``role`` and ``content``."""
        dropped = 0 if self._keep is None else max(0, len(self._exchanges) - self._keep)
        kept = self._exchanges[dropped:]
        return [dict(message) for message in (*self._head, *(message for pair in kept for message in pair))]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode and a new transcript; see `InquiryEnv.reset`."""
        observation, info = self.env.reset(seed=seed, options=options)
        system = [] if self._system is None else [{"role": "system", "content": self._system}]
        self._head = [*system, {"role": "user", "content": observation}]
        self._exchanges = []
        return observation, info

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take one turn; see `InquiryEnv.step`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._exchanges.append(({"role": "assistant", "content": action}, {"role": "user", "content": observation}))
        return observation, reward, terminated, truncated, info
