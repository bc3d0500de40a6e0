"""Wrappers that set rules, and reward shaping for one inquiry and for the array environment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import NDArray

from inquitree_gym.envs.spaces import Mask
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.engine import Decision, Event, Rules, State
from inquitree_gym.inquiry.engine.rules import Limit
from inquitree_gym.inquiry.env import unwrap_inquiry

if TYPE_CHECKING:
    from inquitree_gym.inquiry.arrays.batch import Batch


class _RuleWrapper(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Base of wrappers that add one rule to the options of every `reset`."""

    def __init__(self, env: gym.Env[str, str], rule: str, value: Any) -> None:
        Rules().override({rule: value})  # checks the value
        gym.Wrapper.__init__(self, env)
        self._options = {rule: value}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode under this rule. See `InquiryEnv.reset`."""
        return self.env.reset(seed=seed, options={**self._options, **(options or {})})


class FakeResults(_RuleWrapper):
    """Show a fake with probability ``level``/10 whenever a result is observed.

    The same rule as the keyword ``fake_level`` of the environments, for pipelines made of wrappers or around somebody
    else's environment. A registered id takes the keyword, since Gymnasium allows no wrappers in specs with a vector
    entry point.
    """

    def __init__(self, env: gym.Env[str, str], level: int) -> None:
        """Wrap ``env``. ``level`` is an integer from 0 to 10.

        Raises:
            OptionError: ``level`` is out of range.
        """
        RecordConstructorArgs.__init__(self, level=level)
        super().__init__(env, "fake_level", level)


class TurnLimit(_RuleWrapper):
    """Ask for the conclusion after ``turns`` turns. The conclusion itself is one turn more.

    The same rule as the keyword ``max_turns`` of the environments, as a wrapper for the reasons given in `FakeResults`.
    Gymnasium's `TimeLimit` would truncate the episode instead, without a conclusion and so without a reward.
    """

    def __init__(self, env: gym.Env[str, str], turns: Limit) -> None:
        """Wrap ``env``. ``turns`` is an integer from 1, a formula such as "3n+3", or None for no limit.

        Raises:
            OptionError: ``turns`` is out of range.
        """
        RecordConstructorArgs.__init__(self, turns=turns)
        super().__init__(env, "max_turns", turns)


class RewardShaping(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Add γΦ(s') − Φ(s) to the reward, with the potential Φ = ``coverage`` · visited/n and Φ = 0 at the end.

    The potential keeps optimal policies (Ng, Harada & Russell 1999) when ``gamma`` is the learner's own discount. The
    other terms change them and are 0 by default: ``hint`` and ``turn`` are subtracted for every hint and every turn.
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
        """Wrap ``env``. ``gamma`` lies in (0, 1], the other terms are finite numbers.

        Raises:
            OptionError: a term is out of range, or ``env`` is no inquiry.
        """
        terms = {"gamma": gamma, "coverage": coverage, "hint": hint, "turn": turn, "spotted_fake": spotted_fake}
        _check_terms(terms)
        RecordConstructorArgs.__init__(self, _disable_deepcopy=False, **terms)
        gym.Wrapper.__init__(self, env)
        unwrap_inquiry(self)
        self._gamma = gamma
        self._coverage = coverage
        self._hint = hint
        self._turn = turn
        self._spotted_fake = spotted_fake
        self._potential = 0.0
        self._judged: set[tuple[int, bool]] = set()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode. See `InquiryEnv.reset`."""
        result = self.env.reset(seed=seed, options=options)
        self._potential = 0.0
        self._judged.clear()
        return result

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take one turn. See `InquiryEnv.step`."""
        before = unwrap_inquiry(self).state
        observation, reward, terminated, truncated, info = self.env.step(action)
        step = unwrap_inquiry(self).last_transition
        assert step is not None
        shaped = float(reward) + self._shape(terminated) + self._terms(step.event, before)
        return observation, shaped, terminated, truncated, info

    def _shape(self, terminated: bool) -> float:
        state = unwrap_inquiry(self).state
        potential = 0.0 if terminated else self._coverage * state.visited.bit_count() / len(state.visits)
        gain = self._gamma * potential - self._potential
        self._potential = potential
        return gain

    def _terms(self, event: Event, before: State) -> float:
        hinted = event.hint_level > 0 and not event.limit  # the limit prompt replaces the hint
        total = -self._turn - self._hint * hinted
        spotted = (before.study, before.shown[before.study] > 0)
        if event.decision == Decision.REDO and spotted not in self._judged:
            self._judged.add(spotted)
            total += self._spotted_fake if spotted[1] else -self._spotted_fake
        return total


class VectorRewardShaping(VectorWrapper, RecordConstructorArgs):
    """`RewardShaping` of an `InquiryBatchEnv`, with the same numbers for the same trajectories."""

    def __init__(
        self,
        env: VectorEnv[Any, Any, NDArray[Any]],
        *,
        gamma: float,
        coverage: float = 1.0,
        hint: float = 0.0,
        turn: float = 0.0,
        spotted_fake: float = 0.0,
    ) -> None:
        """Wrap ``env``. See `RewardShaping` for the terms.

        Raises:
            OptionError: a term is out of range, or ``env`` is not an `InquiryBatchEnv`.
        """
        from inquitree_gym.inquiry.arrays.env import InquiryBatchEnv

        terms = {"gamma": gamma, "coverage": coverage, "hint": hint, "turn": turn, "spotted_fake": spotted_fake}
        _check_terms(terms)
        RecordConstructorArgs.__init__(self, _disable_deepcopy=False, **terms)
        VectorWrapper.__init__(self, env)
        if not isinstance(env.unwrapped, InquiryBatchEnv):
            raise OptionError(f"VectorRewardShaping must wrap an InquiryBatchEnv, got {type(env.unwrapped).__name__}")
        self._batch = env.unwrapped
        self._gamma = gamma
        self._coverage = coverage
        self._hint = hint
        self._turn = turn
        self._spotted_fake = spotted_fake
        self._potential: NDArray[np.float64] = np.zeros(env.num_envs)
        self._resetting = np.zeros(0, np.int64)
        """Environments that the next step resets instead of taking a turn."""
        self._judged = np.zeros((env.num_envs, gym.spaces.flatdim(self._batch.single_action_space), 2), np.bool_)
        """True if a study was redone after its true result (0) or after a fake (1)."""

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start episodes. See `InquiryBatchEnv.reset`."""
        mask = None if options is None else options.get("reset_mask")
        result = self.env.reset(seed=seed, options=options)
        envs = slice(None) if mask is None else mask
        self._potential[envs] = 0
        self._resetting = self._resetting[:0] if mask is None else self._resetting[~mask[self._resetting]]
        self._judged[envs] = False
        return result

    def step(self, actions: Any) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Take one turn in every environment. See `InquiryBatchEnv.step`."""
        batch = self._batch.batch
        decisions = batch.decisions() if self._spotted_fake else None
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        ended = terminated.nonzero()[0]
        shaped = rewards + self._shape(batch, ended)
        if self._turn or self._hint or decisions:
            terms = -self._turn - self._hint * batch.hinted()
            if decisions:
                terms += self._redo_terms(decisions, batch.runs(decisions[0], decisions[1]))
                self._judged[ended] = False
            terms[self._resetting] = 0.0
            shaped += terms
        if self.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP:
            self._resetting = ended
        return observations, shaped, terminated, truncated, infos

    def _shape(self, batch: Batch, ended: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return γΦ(s') − Φ(s). An environment that was reset has Φ(s) = Φ(s') = 0."""
        potential = self._coverage * batch.coverage()
        potential[ended] = 0.0
        gain: NDArray[np.float64] = self._gamma * potential
        gain -= self._potential
        self._potential = potential
        return gain

    def _redo_terms(self, decisions: tuple[Any, ...], runs: NDArray[Any]) -> NDArray[np.float64]:
        """Return ±``spotted_fake`` for the first redo of a study after its fake or its true result, else 0.

        Args:
            decisions: `Batch.decisions` before the step.
            runs: runs of their studies after it.
        """
        envs, studies, before, fakes = decisions
        redone = (runs > before) & ~self._judged[envs, studies, fakes]
        envs, studies, fakes = envs[redone], studies[redone], fakes[redone]
        self._judged[envs, studies, fakes] = True
        terms = np.zeros(self.num_envs)
        terms[envs] = np.where(fakes, self._spotted_fake, -self._spotted_fake)
        return terms

    def action_masks(self) -> Mask:
        """Return which actions are allowed. See `InquiryBatchEnv.action_masks`."""
        return self._batch.action_masks()


def _check_terms(terms: Mapping[str, Any]) -> None:
    for name, value in terms.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise OptionError(f"{name} must be a finite number, got {value!r}")
    if not 0 < terms["gamma"] <= 1:
        raise OptionError(f"gamma must lie in (0, 1], got {terms['gamma']!r}")
