"""Wrappers that set a rule for every episode. A rule named in ``reset(options=...)`` goes first."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from inquitree_gym.engine import Rules


class _RuleWrapper(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Sets one rule through the options of ``reset``, so that wrapper and constructor keyword mean the same."""

    def __init__(self, env: gym.Env[str, str], rule: str, value: Any) -> None:
        Rules().override({rule: value})
        gym.Wrapper.__init__(self, env)
        self._options = {rule: value}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode under this rule; see `InquiryEnv.reset`."""
        return self.env.reset(seed=seed, options={**self._options, **(options or {})})


class FakeResults(_RuleWrapper):
    """Show fake results with probability ``level``/10, at every observation of a result."""

    def __init__(self, env: gym.Env[str, str], level: int) -> None:
        """Wrap ``env``; ``level`` is a whole number from 0 to 10.

        Raises:
            OptionError: ``level`` is something else.
        """
        RecordConstructorArgs.__init__(self, level=level)
        super().__init__(env, "fake_level", level)


class TurnLimit(_RuleWrapper):
    """Ask for the conclusion after ``turns`` turns; the conclusion itself is one turn more."""

    def __init__(self, env: gym.Env[str, str], turns: int | Literal["default"] | None) -> None:
        """Wrap ``env``; ``turns`` is a whole number from 1, "default" for n(2H + 3), or None for no limit.

        Raises:
            OptionError: ``turns`` is something else.
        """
        RecordConstructorArgs.__init__(self, turns=turns)
        super().__init__(env, "max_turns", turns)
