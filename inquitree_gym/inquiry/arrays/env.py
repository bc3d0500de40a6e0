"""`InquiryBatchEnv`: the discrete view of thousands of inquiries, stepped as NumPy arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Unpack

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from inquitree_gym.envs.arrays import BatchEnv, Seed
from inquitree_gym.envs.spaces import Bools, Ints, Mask
from inquitree_gym.envs.text import not_started_error
from inquitree_gym.envs.text_vector import check_vector_arguments, episode_over_error
from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.inquiry.arrays.kernel import Kernel
from inquitree_gym.inquiry.arrays.observations import (
    EngineReplay,
    IndexObserver,
    Infos,
    InfoTable,
    ObservationKind,
    Observations,
    make_observer,
)  # fmt: skip
from inquitree_gym.inquiry.arrays.pool import TreePool
from inquitree_gym.inquiry.engine import Rules
from inquitree_gym.inquiry.env import InquiryEnv, TreeLike
from inquitree_gym.inquiry.keywords import BatchKeywords, unpack_keywords
from inquitree_gym.inquiry.menu import MenuSize, OnMasked, check_on_masked
from inquitree_gym.inquiry.observations import FeatureLayout, FeatureRow
from inquitree_gym.inquiry.runtime import PHASE_NAMES, RuntimeCache
from inquitree_gym.inquiry.vector import split_trees
from inquitree_gym.trees import Tree

Steps = tuple[Observations, NDArray[np.float64], Bools, Bools, Infos]


class InquiryBatchEnv(BatchEnv):
    """Vector environment of the discrete view, with all inquiries stepped together by lookup in compiled tables.

    Trajectories equal those of `SyncVectorEnv` over ``InquiTree-…-menu-v0`` for the same seeds and actions. A tree is
    compiled at the first reset that plays it. The docstring of `inquitree_gym.inquiry.arrays` explains the tables.

    ## Observation space
    ``observation="features"``: `FeatureLayout`, float32 of shape ``(num_envs, size)``, or with ``as_dict=True`` a Dict
    of its parts. ``"index"``: int64 of shape ``(num_envs, 1 + words)``, the number of the text followed by the visited
    subtopics: bit i % 62 of word i // 62 is set for subtopic i. The number of a text determines phase and hint level.
    Texts are numbered in the order of `observation_keys`, tree by tree. `text_of` returns the text of a number, and
    `features` converts index observations to features.

    ## Infos
    Those of the single environment as arrays. ``action_mask`` is int8 of shape ``(num_envs, actions)``. ``infos=False``
    leaves out all but ``final_obs``. ``privileged=True`` makes a step hundreds of times slower.

    ## Arguments
    ``tree``: as for `InquiryEnv`, for all environments, or ``trees``: one for each. ``observation``, ``infos``: see
    above. ``autoreset_mode``: ``"NextStep"``, ``"SameStep"`` or ``"Disabled"``. ``copy=False``: every step writes its
    observations into the same arrays. ``size``, ``on_masked``, ``text_dim``, ``as_dict``: as for the menu environment.
    All others are those of `InquiryEnv`. ``render_mode`` has to be None.
    """

    _kernel: Kernel | None = None
    _info_table: InfoTable | None = None
    _settings: InquiryEnv
    """Holds trees, rules, embedder and prompts. It is never stepped."""
    _default_trees: Ints = np.zeros(0, np.int64)
    """Numbers of the trees that are played without an option."""
    kind = "inquiry"
    _over: Ints = np.zeros(0, np.int64)
    """Environments that terminated and were not reset yet."""

    @unpack_keywords(InquiryEnv.__init__, BatchKeywords)
    def __init__(  # noqa: PLR0913  (keywords)
        self,
        num_envs: int = 1,
        *,
        tree: TreeLike | Sequence[TreeLike] | None = None,
        trees: Sequence[TreeLike] | None = None,
        observation: ObservationKind = "features",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        infos: bool = True,
        size: tuple[int, int] | None = None,
        on_masked: OnMasked = "play",
        text_dim: int | None = None,
        as_dict: bool = False,
        **keywords: Unpack[BatchKeywords],
    ) -> None:
        """See the class for the arguments.

        Raises:
            OptionError: a value is out of range, ``trees`` differ in number from ``num_envs``, or one exceeds ``size``.
            TreeError: a tree is unknown or at fault.
        """
        mode = check_vector_arguments(num_envs, trees, autoreset_mode, name="trees")
        privileged = keywords.get("privileged", False)
        _check_view(keywords.get("render_mode"), on_masked, privileged=privileged, infos=infos)
        which, self._tree_of_env = split_trees(tree, trees)
        self._settings = InquiryEnv(which, **keywords)
        played = self._settings.trees, self._settings.rules
        menu_size = MenuSize.resolve(size, played[0])
        features = FeatureLayout.create(menu_size.subtopics, self._settings.embedder.dim, text_dim)
        self._observer = make_observer(observation, features, *played, as_dict=as_dict, copy=copy)
        self.num_envs, self.copy, self.metadata = num_envs, copy, {"render_modes": [], "autoreset_mode": mode}
        self._same_step, self._disabled = mode == AutoresetMode.SAME_STEP, mode == AutoresetMode.DISABLED
        self._refuses_masked, self._with_infos, actions = on_masked == "raise", infos, menu_size.actions
        self._n_actions, self.single_action_space = np.uint64(actions), gym.spaces.Discrete(actions)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.single_observation_space = self._observer.space
        self._runtimes = RuntimeCache(self._settings.embedder, self._settings.prompts, scope="private")
        self._pool = TreePool(self._runtimes, menu_size, self._observer.number_texts)
        self._replay = EngineReplay(num_envs) if privileged else None

    @property
    def kernel(self) -> Kernel:
        """Arrays that hold the state of all environments, for wrappers. Raises `ResetNeeded` before the first reset."""
        if self._kernel is None:
            raise not_started_error()
        return self._kernel

    def reset(self, *, seed: Seed = None, options: Mapping[str, Any] | None = None) -> tuple[Observations, Infos]:
        """Start episodes.

        Args:
            seed: seed of the first environment, increased by 1 from each environment to the next, or a list with one
                for each. None continues with the environment's next episode, whose seed is a hash of the last seed
                given and the number of episodes since.
            options: those of `InquiryEnv.reset`, for these episodes alone, and ``reset_mask``, bool of shape
                ``(num_envs,)``, to reset only some environments.

        Returns: observations and infos. With a mask, infos of the environments that were reset.

        Raises:
            OptionError: an unknown option or a value out of range, a seed or a mask that does not fit, or a tree that
                fits into neither menu nor table.
            ResetNeeded: the very first reset does not reset all environments.
            ClosedEnvironmentError: after `close`.
        """
        envs, seeds, options = self._resets(seed, options)
        self._start(envs, seeds, options)
        return self._observer.observe(self.kernel), self._infos(None if len(envs) == self.num_envs else envs)

    def step(self, actions: Any) -> Steps:
        """Take one turn in every environment.

        Args:
            actions: integers of shape ``(num_envs,)``, 0 to the number of menu actions − 1.

        Returns: observations, rewards, terminations, truncations (always False) and infos.

        Raises:
            ActionError: not integers of that shape, out of range, or masked under ``on_masked="raise"``.
            ResetNeeded: before the first reset, or after the end of an episode with ``autoreset_mode="Disabled"``.
            ClosedEnvironmentError: after `close`.
        """
        self._check_open()
        kernel, over = self.kernel, self._over
        actions = self._check_actions(actions)
        if self._replay:
            self._replay.step(kernel, actions)
        ended, earned = kernel.step(actions)
        rewards, terminated = np.zeros(self.num_envs), np.zeros(self.num_envs, np.bool_)
        rewards[ended] = earned
        terminated[ended] = True
        infos: Infos = {}
        if self._same_step:
            infos, over = self._final(ended) if ended.size else {}, ended
        else:
            self._over = ended
        if over.size:
            self._autoreset(over)
        if self._with_infos:
            infos.update(self._infos(None))
        observations = self._observer.observe(kernel)
        return observations, rewards, terminated, np.zeros(self.num_envs, np.bool_), infos

    @property
    def nbytes(self) -> int:
        """Bytes that the environments take between steps, without tables and observations."""
        return self.kernel.nbytes

    def action_masks(self) -> Mask:
        """Return which actions are allowed, bool of shape ``(num_envs, actions)``. See `Menu.mask`."""
        return self.kernel.masks().view(np.bool_)

    def texts(self) -> list[str]:
        """Return the observation of every environment as text."""
        kernel = self.kernel
        numbers = kernel.tables.states.text.take(kernel.state)
        shown = list(zip(kernel.tree.tolist(), numbers.tolist(), strict=True))
        texts = {key: kernel.tables.text(*key) for key in set(shown)}
        return [texts[key] for key in shown]

    def text_of(self, number: int) -> str:
        """Return the text behind the first number of an index observation, under the rules of the environment.

        Raises:
            OptionError: the observations are not ``"index"``, or no text has this number.
        """
        return self._index_observer.text_of(number, self._runtimes, self._settings.rules)

    def features(self, observations: Ints) -> FeatureRow:
        """Convert index observations, int64 of shape ``(…, 1 + words)``, to features, float32 of shape ``(…, size)``.

        Raises:
            OptionError: the observations are not ``"index"``.
        """
        return self._index_observer.features(observations, self._runtimes, self._settings.rules)

    @property
    def _index_observer(self) -> IndexObserver:
        if not isinstance(self._observer, IndexObserver):
            raise OptionError('no observation is a number; make the environment with observation="index"')
        return self._observer

    def _start(self, envs: Ints, seeds: Sequence[int | None], options: Mapping[str, Any]) -> None:
        """Start episodes in these environments. Nothing changes if the options cannot be met."""
        if len(envs) < self.num_envs:
            _ = self.kernel
        trees, rules = self._settings.resolve_options(options)
        if self._kernel is None:
            self._use_trees(self._settings.trees, self._settings.rules, [])
            self._default_trees = self._pool.numbers(self._settings.trees, self._settings.rules)
        self._use_trees(trees, rules, np.delete(self.kernel.tree, envs).tolist())
        self.kernel.seeds.reset(envs, seeds, self.np_random)
        own = self._tree_of_env if "tree" not in options else None
        self.kernel.start(envs, self.kernel.seeds.choose(envs, self._pool.numbers(trees, rules), own))
        self._over = np.setdiff1d(self._over, envs)
        if self._replay:
            self._replay.start(self.kernel, envs)

    def _use_trees(self, trees: Sequence[Tree], rules: Rules, in_use: Collection[int]) -> None:
        """Make sure that ``trees`` are compiled. The trees with the numbers ``in_use`` are still played."""
        numbers = self._pool.add(trees, rules, in_use)
        if numbers is not None:
            assert self._pool.tables is not None
            if self._kernel is None:
                self._kernel = Kernel(self.num_envs, self._pool.tables, track_visited=self._observer.track_visited)
            else:
                self._kernel.replace_tables(self._pool.tables, numbers)
            self._info_table = InfoTable(self._pool.tables)

    def _autoreset(self, envs: Ints) -> None:
        """Start the next episode in these environments."""
        kernel = self.kernel
        tables = kernel.tables
        draws = tables.fakes or tables.varies or (self._tree_of_env is None and len(self._default_trees) > 1)
        kernel.seeds.advance(envs, update_hashes=draws)
        kernel.start(envs, kernel.seeds.choose(envs, self._default_trees, self._tree_of_env))
        if self._replay:
            self._replay.start(kernel, envs)

    def _infos(self, envs: Ints | None) -> Infos:
        """Return the infos of all environments or of ``envs``."""
        if not self._with_infos or self._info_table is None:
            return {}
        infos = self._info_table.infos(self.kernel, envs)
        if self._replay:
            for env in range(self.num_envs) if envs is None else envs.tolist():
                infos = self._add_info(infos, self._replay.info(self.kernel, env), env)
        return infos

    def _observe_each(self, envs: Ints) -> list[Any]:
        return [self._observer.observe_one(self.kernel, env) for env in envs.tolist()]

    def _check_actions(self, actions: Any) -> Ints:
        """Return actions as an int64 array. See `step` for the errors."""
        try:
            found = np.asarray(actions)
        except ValueError as error:  # rows of different lengths
            raise ActionError(f"menu actions are whole numbers of shape ({self.num_envs},): {error}") from error
        if found.dtype.kind not in "iu" or found.shape != (self.num_envs,):
            raise ActionError(
                f"menu actions are whole numbers of shape ({self.num_envs},), not {found.dtype} of shape {found.shape}"
            )
        found = found.astype(np.int64, copy=False)
        if np.maximum.reduce(found.view(np.uint64)) >= self._n_actions:  # unsigned, a negative number is a large one
            env = int((found.view(np.uint64) >= self._n_actions).argmax())
            raise ActionError(
                f"a menu action lies in 0 to {int(self._n_actions) - 1}, not {found[env]} (inquiry {env})"
            )
        if self._disabled and self._over.size:
            raise episode_over_error(int(self._over[0]))
        if self._refuses_masked:
            self._refuse_masked(found)
        return found

    def _refuse_masked(self, actions: Ints) -> None:
        kernel = self.kernel
        masked = ~kernel.allows(actions)
        masked[self._over] = False
        if masked.any():
            env = int(masked.argmax())
            phase = PHASE_NAMES[kernel.tables.states.phase[kernel.state[env]]]
            raise ActionError(
                f"action {actions[env]} of inquiry {env} is not open at {phase}; choose among the True ones of "
                f'action_masks(), or make the environment with on_masked="play"'
            )


def _check_view(render_mode: str | None, on_masked: str, *, privileged: bool, infos: bool) -> None:
    check_on_masked(on_masked)
    if render_mode is not None:
        raise OptionError("a batch of inquiries draws nothing; leave render_mode at None, and read texts()")
    if privileged and not infos:
        raise OptionError("privileged is a part of the infos; leave infos at True")
