"""Reward shaping for learners."""

from __future__ import annotations

import math
from typing import Any, SupportsFloat

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from inquitree_gym.engine import Decision, Event
from inquitree_gym.envs.inquiry import unwrap_inquiry
from inquitree_gym.errors import OptionError


class RewardShaping(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Add γΦ(s') − Φ(s) to the reward, with the potential Φ = ``coverage`` · visited/n and Φ = 0 at the end.

    The potential keeps optimal policies (Ng, Harada & Russell 1999) when ``gamma`` is the learner's own discount. The
    other terms change them and are 0 by default: ``hint`` and ``turn`` are subtracted for every hint and every turn;
    ``spotted_fake`` is added once per study for redoing it right after a fake, and subtracted once per study for
    redoing it right after its true result.
    """

    def __init__(
        self,
        env: gym.Env[str, str],
        *,
        gamma: float,
        coverage: float = 1.0,
        hint: float = 0.0,
        turn: float = 0.0,
        spotted_fake: float = 0.0,
    ) -> None:
        """Wrap ``env``; ``gamma`` lies in (0, 1], the other terms are finite numbers.

        Raises:
            OptionError: a term is out of range, or ``env`` is no inquiry.
        """
        terms = {"gamma": gamma, "coverage": coverage, "hint": hint, "turn": turn, "spotted_fake": spotted_fake}
        for name, value in terms.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise OptionError(f"{name} is a finite number, not {value!r}")
        if not 0 < gamma <= 1:
            raise OptionError(f"gamma lies in (0, 1], not {gamma!r}")
        RecordConstructorArgs.__init__(self, _disable_deepcopy=False, **terms)
        gym.Wrapper.__init__(self, env)
        unwrap_inquiry(self)
        self._gamma = gamma
        self._coverage = coverage
        self._hint = hint
        self._turn = turn
        self._spotted_fake = spotted_fake
        self._potential = 0.0
        self._last_fake = 0
        self._judged: set[tuple[int, bool]] = set()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode; see `InquiryEnv.reset`."""
        result = self.env.reset(seed=seed, options=options)
        self._potential = 0.0
        self._last_fake = 0
        self._judged.clear()
        return result

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take one turn; see `InquiryEnv.step`."""
        study = unwrap_inquiry(self).state.study
        observation, reward, terminated, truncated, info = self.env.step(action)
        step = unwrap_inquiry(self).last_transition
        assert step is not None
        shaped = float(reward) + self._shape(terminated) + self._terms(step.event, study)
        if step.event.kind.name == "RESULT":
            self._last_fake = step.event.fake
        return observation, shaped, terminated, truncated, info

    def _shape(self, terminated: bool) -> float:
        state = unwrap_inquiry(self).state
        potential = 0.0 if terminated else self._coverage * state.visited.bit_count() / len(state.visits)
        gain = self._gamma * potential - self._potential
        self._potential = potential
        return gain

    def _terms(self, event: Event, study: int) -> float:
        hinted = event.hint_level > 0 and not event.limit  # the limit prompt replaces the hint
        total = -self._turn - self._hint * hinted
        spotted = (study, self._last_fake > 0)
        if event.decision == Decision.REDO and spotted not in self._judged:
            self._judged.add(spotted)
            total += self._spotted_fake if spotted[1] else -self._spotted_fake
        return total
