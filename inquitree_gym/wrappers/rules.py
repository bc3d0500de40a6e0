"""Wrappers that set a rule for every episode; ``reset(options=...)`` takes precedence."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from inquitree_gym.engine import Rules


class _RuleWrapper(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Base of wrappers that add one rule to the options of every `reset`."""

    def __init__(self, env: gym.Env[str, str], rule: str, value: Any) -> None:
        Rules().override({rule: value})  # checks the value
        gym.Wrapper.__init__(self, env)
        self._options = {rule: value}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode under this rule; see `InquiryEnv.reset`."""
        return self.env.reset(seed=seed, options={**self._options, **(options or {})})


class FakeResults(_RuleWrapper):
    """Show a fake with probability ``level``/10 whenever a result is observed.

    The same rule as the keyword ``fake_level`` of the environments, for pipelines that are composed of wrappers or wrap
    an environment that somebody else made. A registered id takes the keyword, since Gymnasium allows no wrappers in
    specs with a vector entry point.
    """

    def __init__(self, env: gym.Env[str, str], level: int) -> None:
        """Wrap ``env``; ``level`` is an integer from 0 to 10.

        Raises:
            OptionError: ``level`` is out of range.
        """
        RecordConstructorArgs.__init__(self, level=level)
        super().__init__(env, "fake_level", level)


class TurnLimit(_RuleWrapper):
    """Ask for the conclusion after ``turns`` turns; the conclusion itself is one turn more.

    The same rule as the keyword ``max_turns`` of the environments, as a wrapper for the reasons given in `FakeResults`.
    Gymnasium's `TimeLimit` would truncate the episode instead, without a conclusion and so without a reward.
    """

    def __init__(self, env: gym.Env[str, str], turns: int | Literal["default"] | None) -> None:
        """Wrap ``env``; ``turns`` is an integer from 1, "default" for n(2H + 3), or None for no limit.

        Raises:
            OptionError: ``turns`` is out of range.
        """
        RecordConstructorArgs.__init__(self, turns=turns)
        super().__init__(env, "max_turns", turns)
