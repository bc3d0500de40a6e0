"""`InquiryBatchEnv`: the discrete view of thousands of inquiries, stepped by one function over flat rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from inquitree_gym.envs.arrays import BatchEnv, Seed, env_mask
from inquitree_gym.envs.spaces import Bools, Ints, Mask
from inquitree_gym.envs.text import not_started_error
from inquitree_gym.envs.text_vector import check_vector_arguments, episode_over_error
from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.inquiry.arrays.batch import Batch
from inquitree_gym.inquiry.arrays.observers import IndexObserver, ObservationKind, Observations, make_observer
from inquitree_gym.inquiry.arrays.tables import TreePool
from inquitree_gym.inquiry.engine import Reading, Rules
from inquitree_gym.inquiry.engine.rows import TREE
from inquitree_gym.inquiry.engine.transition import READING
from inquitree_gym.inquiry.env import InquiryEnv, TreeLike
from inquitree_gym.inquiry.keywords import BatchKeywords, unpack_keywords
from inquitree_gym.inquiry.menu import MenuSize, OnMasked, check_exam, check_on_masked, item_options
from inquitree_gym.inquiry.observations import FeatureLayout, FeatureRow
from inquitree_gym.inquiry.runtime import PHASE_NAMES, RuntimeCache, Transition, privileged_info
from inquitree_gym.inquiry.vector import split_trees
from inquitree_gym.trees import Tree

Infos = dict[str, Any]
Steps = tuple[Observations, NDArray[np.float64], Bools, Bools, Infos]

_PHASE_NAMES = np.array(PHASE_NAMES, object)
_KEYS = ("state", "turn", "accepted", "hint_level", "forced", "action_mask")
_PRESENT_KEYS = tuple(f"_{key}" for key in _KEYS)


class InquiryBatchEnv(BatchEnv):
    """Vector environment of the discrete view, with all inquiries stepped together by one compiled function.

    Trajectories equal those of `SyncVectorEnv` over ``InquiTree-…-menu-v0`` for the same seeds and actions. The
    extra ``arrays`` installs Numba, which compiles that function. Without it, the same function runs uncompiled.

    ## Observation space
    ``observation="features"``: `FeatureLayout`, float32 of shape ``(num_envs, size)``, or with ``as_dict=True`` a Dict
    of its parts. ``"index"``: int64 of shape ``(num_envs, 1 + words)``: the number of the text, the visited subtopics,
    where bit i % 62 of word i // 62 is set for subtopic i, and the tally, eight numbers of seven bits a word. A number
    of a text determines phase and hint level. Texts are numbered in the order of `observation_keys`, tree by tree.
    `text_of` returns the text of a number, and `features` converts index observations to features.

    ## Infos
    Those of the single environment as arrays. ``action_mask`` is int8 of shape ``(num_envs, actions)``. ``infos=False``
    leaves out all but ``final_obs``. ``privileged=True`` makes a step hundreds of times slower.

    ## Arguments
    ``tree``: as for `InquiryEnv`, for all environments, or ``trees``: one for each. ``observation``, ``infos``: see
    above. ``autoreset_mode``: ``"NextStep"``, ``"SameStep"`` or ``"Disabled"``. ``copy=False``: every step writes its
    observations into the same arrays. ``threads``: threads that share a step, with the same results for any number.
    ``size``, ``on_masked``, ``tally``, ``text_dim``, ``as_dict``: as for the menu environment. All others are those of
    `InquiryEnv`. ``render_mode`` has to be None.
    """

    kind = "inquiry"
    _batch: Batch | None = None
    _settings: InquiryEnv
    """Holds trees, rules, embedder and prompts. It is never stepped."""
    _last: list[Transition] | None = None
    """The last transition of each inquiry, for privileged infos. None if they aren't wanted."""

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
        threads: int = 1,
        size: tuple[int, int] | None = None,
        on_masked: OnMasked = "play",
        tally: bool = True,
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
        self._privileged = keywords.get("privileged", False)
        _check_view(keywords.get("render_mode"), on_masked, threads, privileged=self._privileged, infos=infos)
        which, self._tree_of_env = split_trees(tree, trees)
        self._settings = InquiryEnv(which, **keywords)
        check_exam(self._settings.rules)
        self._settings.rules = self._settings.rules.override({"exam": "items"})
        played = self._settings.trees, self._settings.rules
        self._size = MenuSize.resolve(size, played[0])
        axes = self._size.axes if tally else 0
        features = FeatureLayout.create(self._size.subtopics, axes, self._settings.embedder.dim, text_dim)
        self._observer = make_observer(observation, features, *played, as_dict=as_dict)
        self.num_envs, self.metadata = num_envs, {"render_modes": [], "autoreset_mode": mode}
        self._same_step, self._disabled = mode == AutoresetMode.SAME_STEP, mode == AutoresetMode.DISABLED
        self._refuses_masked, self._with_infos = on_masked == "raise", infos
        self.copy, self._n_threads = copy, threads
        self.single_action_space = gym.spaces.Discrete(self._size.actions)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.single_observation_space = self._observer.space
        self._runtimes = RuntimeCache(self._settings.embedder, self._settings.prompts, scope="private")
        self._pool = TreePool(self._runtimes, self._size, self._observer.number_texts)

    @property
    def batch(self) -> Batch:
        """The rows of all inquiries, for wrappers. Raises `ResetNeeded` before the first reset."""
        if self._batch is None:
            raise not_started_error()
        return self._batch

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
        self.batch.observe(copy=self.copy)
        infos = self._infos(None if len(envs) == self.num_envs else envs)
        return self._observer.split(self.batch.told.observations), infos

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
        batch = self.batch
        actions = self._check_actions(actions)
        readings = self._read(actions) if self._privileged else None
        ended = batch.step(actions, copy=self.copy, readings=readings)
        if self._privileged:
            self._follow(np.arange(self.num_envs))
        rewards, terminated, infos = batch.told.rewards, batch.told.ended, Infos()
        if self._same_step and ended.size:
            infos = self._final(ended)
            batch.go_on(ended)
            if self._privileged:
                self._follow(ended)
        if self._with_infos:
            infos.update(self._infos(None))
        observations = self._observer.split(batch.told.observations)
        return observations, rewards, terminated, np.zeros(self.num_envs, np.bool_), infos

    @property
    def nbytes(self) -> int:
        """Bytes that the environments take between steps, without tables and observations."""
        return self.batch.nbytes

    def action_masks(self) -> Mask:
        """Return which actions are allowed, bool of shape ``(num_envs, actions)``. See `Menu.mask`."""
        return self.batch.masks().copy().view(np.bool_)

    def texts(self) -> list[str]:
        """Return the observation of every environment as text."""
        batch = self.batch
        shown = list(zip(batch.rows[:, TREE].tolist(), batch.told.numbers.tolist(), strict=True))
        texts = {(start, number): self._pool.text(start, number) for start, number in set(shown)}
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
            _ = self.batch
        trees, rules = self._settings.resolve_options(item_options(options, self._settings.rules))
        own = self._settings.trees, self._settings.rules
        if self._batch is None:
            self._pool.add(*own)
        self._use_trees(trees, rules, envs)
        batch, defaults = self.batch, self._pool.starts_of(*own)
        if self._tree_of_env is not None:
            batch.own[:] = defaults[self._tree_of_env]
        batch.choices = defaults
        batch.load(reads=not self._privileged)
        batch.seeds.reset(envs, seeds, self.np_random)
        fixed = self._tree_of_env if "tree" not in options else None
        starts = self._pool.starts_of(trees, rules)
        batch.start(envs, np.broadcast_to(batch.seeds.choose(envs, starts, fixed), envs.shape))
        if self._privileged:
            self._follow(envs)

    def _use_trees(self, trees: Sequence[Tree], rules: Rules, envs: Ints) -> None:
        """Make sure that ``trees`` have tables. Those of all environments but ``envs`` are still played."""
        batch, old = self._batch, self._pool.starts
        in_use = [] if batch is None else np.delete(batch.rows[:, TREE], envs).tolist()
        moved = self._pool.add(trees, rules, in_use)
        if batch is None:
            self._batch = Batch(self.num_envs, self._size, self._pool, self._observer, self._n_threads)
        elif moved is not None:
            batch.move_trees(moved, old)

    def _read(self, actions: Ints) -> NDArray[np.int32]:
        """Return readings as the matcher makes them, with everything that privileged infos tell of them."""
        batch, found = self.batch, np.zeros((self.num_envs, READING), np.int32)
        last = self._last or []
        for env, (action, before) in enumerate(zip(actions.tolist(), list(last), strict=True)):
            state, tree = before.event.state, batch.tree(env)
            reading = Reading() if batch.over[env] else tree.runtime.matcher.read(state, tree.menu.texts[action])
            near = reading.candidate >= 0 and reading.similarity >= (tree.runtime.rules.threshold or 0.0)
            found[env] = reading.candidate, reading.decision, near, reading.repeats
            last[env] = before._replace(reading=reading)
        return found

    def _follow(self, envs: Ints) -> None:
        """Keep the events of these environments for privileged infos. One that starts an episode has no reading."""
        last = self._last or [Transition(Reading(), self.batch.event(0))] * self.num_envs
        for env in envs.tolist():
            event = self.batch.event(env)
            last[env] = Transition(last[env].reading if event.state.turn else Reading(), event)
        self._last = last

    def _infos(self, envs: Ints | None) -> Infos:
        """Return the infos of all environments or of ``envs``, with None, 0 or False for the others."""
        if not self._with_infos:
            return {}
        told = self.batch.told
        arrays = [_PHASE_NAMES.take(told.phases), told.turns, told.accepted, told.hint_levels, told.forced]
        infos: Infos = dict(zip(_KEYS, [*arrays, self.batch.masks()], strict=True))
        present = np.ones(self.num_envs, np.bool_)
        if envs is not None:
            present = env_mask(envs, self.num_envs)
            infos = {name: _scatter(values, present) for name, values in infos.items()}
        infos.update(dict.fromkeys(_PRESENT_KEYS, present))
        for env in range(self.num_envs) if envs is None else envs.tolist():
            if self._last is None:
                break
            limit = self.batch.tree(env).runtime.engine.turn_limit
            infos = self._add_info(infos, {"privileged": privileged_info(self._last[env], limit)}, env)
        return infos

    def _observe_each(self, envs: Ints) -> list[Any]:
        rows = self.batch.told.observations[envs]
        return [self._observer.split(row) for row in rows]

    def _check_actions(self, actions: Any) -> Ints:
        """Return actions as an int64 array. See `step` for the errors."""
        try:
            found = np.asarray(actions)
        except ValueError as error:  # rows of different lengths
            raise ActionError(f"menu actions must be integers of shape ({self.num_envs},), got {error}") from error
        if found.dtype.kind not in "iu" or found.shape != (self.num_envs,):
            raise ActionError(
                f"menu actions must be integers of shape ({self.num_envs},), got {found.dtype} of shape {found.shape}"
            )
        found = found.astype(np.int64, copy=False)
        if np.maximum.reduce(found.view(np.uint64)) >= self._size.actions:  # unsigned, a negative number is a large one
            env = int((found.view(np.uint64) >= self._size.actions).argmax())
            raise ActionError(
                f"a menu action must lie in 0 to {self._size.actions - 1}, got {found[env]} (inquiry {env})"
            )
        if self._disabled and self.batch.over.any():
            raise episode_over_error(int(self.batch.over.argmax()))
        if self._refuses_masked:
            self._refuse_masked(found)
        return found

    def _refuse_masked(self, actions: Ints) -> None:
        batch = self.batch
        masked = batch.masks()[np.arange(self.num_envs), actions] == 0
        masked &= ~batch.over
        if masked.any():
            env = int(masked.argmax())
            phase = PHASE_NAMES[batch.told.phases[env]]
            raise ActionError(
                f"action {actions[env]} of inquiry {env} is not open at {phase}; choose among the True ones of "
                f'action_masks(), or make the environment with on_masked="play"'
            )


def _check_view(render_mode: str | None, on_masked: str, threads: int, *, privileged: bool, infos: bool) -> None:
    check_on_masked(on_masked)
    if type(threads) is not int or threads < 1:
        raise OptionError(f"threads must be an integer from 1, got {threads!r}")
    if render_mode is not None:
        raise OptionError("a batch of inquiries draws nothing; leave render_mode at None, and read texts()")
    if privileged and not infos:
        raise OptionError("privileged is a part of the infos; leave infos at True")


def _scatter(values: NDArray[Any], present: Bools) -> NDArray[Any]:
    """Return a copy of ``values`` with None or 0 wherever ``present`` is False."""
    found = values.copy()
    found[~present] = None if values.dtype == object else 0
    return found
