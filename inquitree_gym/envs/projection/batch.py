"""`ProjectionBatchEnv`: the discrete view of thousands of projections, stepped as NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from inquitree_gym.envs.batch.base import BatchEnv
from inquitree_gym.envs.batch.encoding import Bools, Ints
from inquitree_gym.envs.batch.seeds import Seed, env_mask
from inquitree_gym.envs.keywords import unpack_keywords
from inquitree_gym.envs.menu import Mask
from inquitree_gym.envs.projection.features import OVER, ProjectionRow
from inquitree_gym.envs.projection.kernel import ProjectionKernel
from inquitree_gym.envs.projection.keywords import load_tasks
from inquitree_gym.envs.projection.menu import MenuKeywords, ProjectionMenu
from inquitree_gym.envs.projection.sources import TaskTable
from inquitree_gym.envs.text import not_started_error
from inquitree_gym.envs.text_vector import check_vector_arguments, episode_over_error
from inquitree_gym.trees.disclosure import LEVELS
from inquitree_gym.trees.tasks import TaskLike

BatchInfos = dict[str, Any]
BatchSteps = tuple[ProjectionRow, NDArray[np.float64], Bools, Bools, BatchInfos]
_LEVEL_NAMES = np.array(LEVELS, object)
_STATE_NAMES = np.array(["project", "end"], object)


class ProjectionBatchEnv(BatchEnv):
    """Vector environment of the discrete view, with all projections stepped together.

    Trajectories equal those of `SyncVectorEnv` over `ProjectionMenuEnv` for the same seeds and actions. A synthetic
    world is drawn as numbers; its texts are never made.

    ## Action and observation space
    Those of `ProjectionMenuEnv` for every environment: int64 of shape ``(num_envs, slots)``, and float32 of shape
    ``(num_envs, size)``.

    ## Infos
    Those of the single environment as arrays, without ``privileged``; ``action_mask`` is int8 of shape
    ``(num_envs, slots, 3)``. ``infos=False`` leaves out all but ``final_obs``.

    ## Arguments
    ``num_envs``: number of environments. ``menu``: tasks, rules and slots. ``autoreset_mode``: ``"NextStep"``,
    ``"SameStep"`` or ``"Disabled"``. ``infos``: see above.
    """

    _started = False

    def __init__(
        self,
        num_envs: int,
        menu: ProjectionMenu,
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        infos: bool = True,
    ) -> None:
        """See the class for the arguments.

        Raises:
            OptionError: ``num_envs`` below 1, or an unknown ``autoreset_mode``.
        """
        self._mode = check_vector_arguments(num_envs, None, autoreset_mode)
        self.num_envs, self.menu = num_envs, menu
        self.metadata = {"render_modes": [], "autoreset_mode": self._mode}
        self.single_action_space, self.single_observation_space = menu.action_space, menu.features.space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._kernel = ProjectionKernel(num_envs, menu.slots)
        self._with_infos = infos

    def reset(self, *, seed: Seed = None, options: Mapping[str, Any] | None = None) -> tuple[ProjectionRow, BatchInfos]:
        """Start episodes.

        Args:
            seed: seed of the first environment, increased by 1 from each environment to the next; or a list with one
                seed for each. None continues with each environment's next episode, whose seed is a hash of the last
                seed given and the number of episodes since.
            options: those of `ProjectionMenuEnv.reset`, for these episodes only; and ``reset_mask``, bool of shape
                ``(num_envs,)``, to reset only some environments.

        Returns: observations and infos; with a mask, infos of the environments that were reset.

        Raises:
            OptionError: an unknown option or a value out of range, or a seed or mask that does not fit.
            TreeError: a task is unknown or invalid.
            ResetNeeded: the very first reset does not reset all environments.
            ClosedEnvironmentError: after `close`.
        """
        envs, seeds, options = self._resets(seed, options)
        if len(envs) < self.num_envs and not self._started:
            raise ResetNeeded("no episode has been started; call reset() without a mask first")
        source, rules = self.menu.resolve_options(options)
        self._kernel.seeds.reset(envs, seeds, self.np_random)
        self._kernel.start(envs, source, rules)
        self._started = True
        return self._kernel.observe(), self._infos(None if len(envs) == self.num_envs else envs)

    def step(self, actions: Any) -> BatchSteps:
        """Take one turn in every environment.

        Args:
            actions: whole numbers of shape ``(num_envs, slots)``, 0 to 2.

        Returns: observations, rewards, terminations, truncations (always False) and infos.

        Raises:
            ActionError: not whole numbers of that shape, or out of range.
            ResetNeeded: before the first reset, or after the end of an episode with ``autoreset_mode="Disabled"``.
            ClosedEnvironmentError: after `close`.
        """
        self._check_open()
        if not self._started:
            raise not_started_error()
        chosen = self.menu.check_actions(actions, (self.num_envs, self.menu.slots))
        over = (self._kernel.level == OVER).nonzero()[0]
        if self._mode == AutoresetMode.DISABLED and over.size:
            raise episode_over_error(int(over[0]))
        rewards, ended, _ = self._kernel.step(chosen)
        infos: BatchInfos = {}
        if self._mode == AutoresetMode.SAME_STEP:
            over = ended.nonzero()[0]
            infos = self._final(over) if over.size else {}
        self._autoreset(over)
        infos |= self._infos(None)
        return self._kernel.observe(), rewards, ended, np.zeros(self.num_envs, np.bool_), infos

    def action_masks(self) -> Mask:
        """Return which options are open, bool of shape ``(num_envs, 3 * slots)``."""
        return self._kernel.masks().reshape(self.num_envs, -1).view(np.bool_)

    def _autoreset(self, envs: Ints) -> None:
        """Start the next episode in these environments."""
        if envs.size:
            self._kernel.seeds.advance(envs)
            self._kernel.start(envs, self.menu.source, self.menu.rules)

    def _observe_each(self, envs: Ints) -> list[Any]:
        return list(self._kernel.observe()[envs])

    def _infos(self, envs: Ints | None) -> BatchInfos:
        """Return the infos of ``envs``, or of all environments; None or 0 for the others."""
        if not self._with_infos:
            return {}
        kernel, told = self._kernel, env_mask(slice(None) if envs is None else envs, self.num_envs)
        infos: BatchInfos = {
            "state": _named(_STATE_NAMES, (kernel.level == OVER).astype(np.int64), told),
            "level": _named(_LEVEL_NAMES, kernel.last_level, told),
            "turn": kernel.turn * told,
            "action_mask": kernel.masks() * told[:, None, None],
        }
        return infos | dict.fromkeys([f"_{name}" for name in infos], told)


def _named(names: NDArray[np.object_], numbers: Ints, told: Bools) -> NDArray[np.object_]:
    """Return the names of ``numbers`` where ``told`` is True, and None elsewhere."""
    found = np.full(len(told), None)
    found[told] = names[numbers[told]]
    return found


@unpack_keywords(ProjectionMenu.of, MenuKeywords)
def projection_batch(
    num_envs: int,
    *,
    task: TaskLike | Sequence[TaskLike],
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    infos: bool = True,
    **keywords: Unpack[MenuKeywords],
) -> ProjectionBatchEnv:
    """Return a `ProjectionBatchEnv` of given tasks.

    ``task``, ``levels``, ``reward`` and ``size`` are those of `projection_menu_env`, all others those of the class.
    """
    menu = ProjectionMenu.of(TaskTable(load_tasks(task)), **keywords)
    return ProjectionBatchEnv(num_envs, menu, autoreset_mode=autoreset_mode, infos=infos)
