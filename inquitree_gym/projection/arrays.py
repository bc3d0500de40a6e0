"""`ProjectionBatchEnv`: the discrete view of thousands of projections, stepped as NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from inquitree_gym.envs.arrays import BatchEnv, EpisodeSeeds, Seed, env_mask
from inquitree_gym.envs.spaces import Bools, Ints, Mask
from inquitree_gym.envs.text import not_started_error
from inquitree_gym.envs.text_vector import check_vector_arguments, episode_over_error
from inquitree_gym.projection.judges.alignment import Floats, level_weights
from inquitree_gym.projection.options import OPTIONS, OVER, STATEMENTS, ProjectionMenu, ProjectionRow, Signs, true_first
from inquitree_gym.projection.settings import ProjectionRules
from inquitree_gym.trees.disclosure import LEVELS

BatchInfos = dict[str, Any]
BatchSteps = tuple[ProjectionRow, NDArray[np.float64], Bools, Bools, BatchInfos]
_LEVEL_NAMES = np.array(LEVELS, object)
_STATE_NAMES = np.array(["sheet", "end"], object)
_PROCEDURE = LEVELS.index("procedure")


class ProjectionBatchEnv(BatchEnv):
    """Vector environment of the discrete view, with all projections stepped together.

    Trajectories equal those of `SyncVectorEnv` over `ProjectionMenuEnv` for the same seeds and actions. A synthetic
    world is drawn as numbers, without its texts. Index i of every array is environment i.

    ## Action and observation space
    Those of `ProjectionMenuEnv` for every environment: int64 of shape ``(num_envs, slots)``, and float32 of shape
    ``(num_envs, size)``.

    ## Infos
    Those of the single environment as arrays, without ``privileged``. ``action_mask`` is int8 of shape
    ``(num_envs, slots, 3)``.
    """

    kind = "projection"
    _started = False

    def __init__(
        self,
        num_envs: int,
        menu: ProjectionMenu,
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        infos: bool = True,
    ) -> None:
        """Allocate the arrays.

        Args:
            num_envs: number of environments.
            menu: tasks, rules and slots.
            autoreset_mode: ``"NextStep"``, ``"SameStep"`` or ``"Disabled"``.
            infos: False leaves out all infos but ``final_obs``.

        Raises:
            OptionError: ``num_envs`` below 1, or an unknown ``autoreset_mode``.
        """
        self._mode = check_vector_arguments(num_envs, None, autoreset_mode, name="tasks")
        self.num_envs, self.menu = num_envs, menu
        self.metadata = {"render_modes": [], "autoreset_mode": self._mode}
        self.single_action_space, self.single_observation_space = menu.action_space, menu.features.space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._with_infos = infos
        self._features = menu.features
        self.seeds = EpisodeSeeds(num_envs)
        self.turn: Ints = np.zeros(num_envs, np.int64)
        self.scores: Floats = np.zeros((num_envs, OVER))
        """Score of the sheet of each turn so far, shape ``(num_envs, 3)``, in [-1, 1]. Privileged."""
        self.signs: Signs = np.zeros((num_envs, menu.slots), np.int8)
        """Direction of each claim. Privileged."""
        self._true_first: Bools = np.zeros((num_envs, OVER + 1, menu.slots), np.bool_)
        """True where the true statement has the letter A, by turn."""
        self._given: Signs = np.zeros((num_envs, menu.slots), np.int8)
        self._claims: Ints = np.zeros(num_envs, np.int64)
        self._levels: Ints = np.full((num_envs, OVER + 1), OVER)
        """Level of every turn. `OVER` after the last."""
        self._shows: Bools = np.zeros((num_envs, OVER + 1), np.bool_)
        """True where the procedure is disclosed at that turn."""
        self._weights: Floats = np.zeros((num_envs, OVER))
        self._earned: Floats = np.zeros(num_envs)
        self._envs: Ints = np.arange(num_envs)

    def reset(self, *, seed: Seed = None, options: Mapping[str, Any] | None = None) -> tuple[ProjectionRow, BatchInfos]:
        """Start episodes.

        Args:
            seed: seed of the first environment, increased by 1 from each environment to the next, or a list with one
                seed for each. None continues with each environment's next episode, whose seed is a hash of the last
                seed given and the number of episodes since.
            options: those of `ProjectionMenuEnv.reset`, for these episodes only, and ``reset_mask``, bool of shape
                ``(num_envs,)``, to reset only some environments.

        Returns: observations and infos. With a mask, infos of the environments that were reset.

        Raises:
            OptionError: an unknown option or a value out of range, or a seed or mask that does not fit.
            ResetNeeded: the very first reset does not reset all environments.
            ClosedEnvironmentError: after `close`.
        """
        envs, seeds, options = self._resets(seed, options)
        if len(envs) < self.num_envs and not self._started:
            raise ResetNeeded("no episode has been started; call reset() without a mask first")
        rules = self.menu.resolve_options(options)
        self.seeds.reset(envs, seeds, self.np_random)
        self._start(envs, rules)
        self._started = True
        return self.observe(), self._infos(None if len(envs) == self.num_envs else envs)

    def step(self, actions: Any) -> BatchSteps:
        """Take one turn in every environment.

        Args:
            actions: whole numbers of shape ``(num_envs, slots)``, 0 to 2. Those of empty slots have no effect.

        Returns: observations, rewards, terminations, truncations (always False) and infos.

        Raises:
            ActionError: not whole numbers of that shape, or out of range.
            ResetNeeded: before the first reset, or after the end of an episode with ``autoreset_mode="Disabled"``.
            ClosedEnvironmentError: after `close`.
        """
        self.check_started()
        chosen = self.menu.check_actions(actions, (self.num_envs, self.menu.slots))
        over = (self.level == OVER).nonzero()[0]
        if self._mode == AutoresetMode.DISABLED and over.size:
            raise episode_over_error(int(over[0]))
        rewards, ended = self._advance(chosen)
        infos: BatchInfos = {}
        if self._mode == AutoresetMode.SAME_STEP:
            over = ended.nonzero()[0]
            infos = self._final(over) if over.size else {}
        if over.size:
            self.seeds.advance(over)
            self._start(over, self.menu.rules)
        infos |= self._infos(None)
        return self.observe(), rewards, ended, np.zeros(self.num_envs, np.bool_), infos

    def check_started(self) -> None:
        """Raise `ResetNeeded` before the first reset, and `ClosedEnvironmentError` after `close`."""
        self._check_open()
        if not self._started:
            raise not_started_error()

    @property
    def level(self) -> Ints:
        """Number of the level of every environment's next turn, shape ``(num_envs,)``. `OVER` after the last."""
        level: Ints = self._levels[self._envs, self.turn]
        return level

    @property
    def last_level(self) -> Ints:
        """Number of the level disclosed last, shape ``(num_envs,)``."""
        last: Ints = self._levels[self._envs, self.turn - (self.level == OVER)]
        return last

    def observe(self) -> ProjectionRow:
        """Return the observations of all environments, a new array of shape ``(num_envs, size)``."""
        return self._features.rows(
            self.level,
            is_claim=self._is_claim,
            given=self._given * self._shows[self._envs, self.turn][:, None],
            directions=self.directions,
        )

    @property
    def directions(self) -> Signs:
        """Direction that the statement of each letter gives, shape ``(num_envs, slots, 2)``."""
        first = np.where(self._true_first[self._envs, self.turn], self.signs, -self.signs)
        return np.stack([first, -first], axis=2)

    def masks(self) -> NDArray[np.int8]:
        """Return 1 for every open option, shape ``(num_envs, slots, 3)``. At an empty slot that is nothing."""
        masks = np.repeat(self._is_claim[:, :, None], OPTIONS, axis=2).astype(np.int8)
        masks[:, :, STATEMENTS] = 1
        return masks

    def action_masks(self) -> Mask:
        """Return which options are open, bool of shape ``(num_envs, 3 * slots)``."""
        return self.masks().reshape(self.num_envs, -1).view(np.bool_)

    @property
    def _is_claim(self) -> Bools:
        is_claim: Bools = np.arange(self.menu.slots) < self._claims[:, None]
        return is_claim

    def _start(self, envs: Ints, rules: ProjectionRules) -> None:
        """Start the episodes of these environments, whose seeds are set."""
        seeds, turns = self.seeds.current(envs), len(rules.levels)
        self._claims[envs], self.signs[envs], self._given[envs] = self.menu.source.numbers(seeds)
        levels = np.full(OVER + 1, OVER)
        levels[:turns] = [LEVELS.index(level) for level in rules.levels]
        for turn, level in enumerate(levels):
            self._true_first[envs, turn] = true_first(seeds, int(level), self.menu.slots)
        self._levels[envs], self._shows[envs] = levels, np.logical_or.accumulate(levels == _PROCEDURE)
        self._weights[envs] = np.pad(level_weights(turns), (0, OVER - turns))
        self.turn[envs], self._earned[envs], self.scores[envs] = 0, 0.0, 0.0

    def _advance(self, actions: Ints) -> tuple[Floats, Bools]:
        """Take one turn in every environment that is not over. Return rewards and terminations."""
        said = np.take_along_axis(np.pad(self.directions, ((0, 0), (0, 0), (0, 1))), actions[:, :, None], axis=2)
        right = (said[:, :, 0] * self.signs).sum(axis=1, dtype=np.int64)
        playing, turn = self.level < OVER, np.minimum(self.turn, OVER - 1)
        scores = np.where(playing, right / self._claims, 0.0)
        self.scores[self._envs[playing], turn[playing]] = scores[playing]
        self._earned += self._weights[self._envs, turn] * scores
        self.turn += playing
        ended = playing & (self.level == OVER)
        return np.where(ended, self._earned, 0.0), ended

    def _observe_each(self, envs: Ints) -> list[Any]:
        return list(self.observe()[envs])

    def _infos(self, envs: Ints | None) -> BatchInfos:
        """Return the infos of ``envs``, or of all environments. None or 0 for the others."""
        if not self._with_infos:
            return {}
        told = env_mask(slice(None) if envs is None else envs, self.num_envs)
        infos: BatchInfos = {
            "state": _named(_STATE_NAMES, (self.level == OVER).astype(np.int64), told),
            "level": _named(_LEVEL_NAMES, self.last_level, told),
            "turn": np.where(told, self.turn, 0),
            "action_mask": self.masks() * told[:, None, None],
        }
        return infos | dict.fromkeys([f"_{name}" for name in infos], told)


def _named(names: NDArray[np.object_], numbers: Ints, told: Bools) -> NDArray[np.object_]:
    """Return the names of ``numbers`` where ``told`` is True, and None elsewhere."""
    named = np.full(len(told), None)
    named[told] = names[numbers[told]]
    return named
