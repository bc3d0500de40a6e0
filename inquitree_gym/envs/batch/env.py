"""`InquiryBatchEnv`: thousands of inquiries in the discrete view, stepped as rows of arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, get_args

import gymnasium as gym
import numpy as np
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from inquitree_gym.envs.batch.encoding import Bools, Ints
from inquitree_gym.envs.batch.episodes import Episodes, Seed
from inquitree_gym.envs.batch.infos import Infos, Said, mask_of
from inquitree_gym.envs.batch.observing import FeatureObserver, IndexObserver, Observation, Observer, Shown
from inquitree_gym.envs.batch.pool import Repertoire
from inquitree_gym.envs.batch.privileged import Witness
from inquitree_gym.envs.inquiry import InquiryEnv, TreeLike
from inquitree_gym.envs.menu import Mask, MenuSize, OnMasked, check_on_masked
from inquitree_gym.envs.observations import FeatureLayout, FeatureRow
from inquitree_gym.envs.runtime import PHASE_NAMES, RuntimeCache
from inquitree_gym.envs.vector import check_vector_arguments, episode_over_error
from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.trees import Tree

Steps = tuple[Shown, NDArray[np.float64], Bools, Bools, Infos]


class _Face(NamedTuple):
    """The keywords of the discrete view; the others are those of `InquiryEnv`."""

    size: tuple[int, int] | None = None
    on_masked: OnMasked = "play"
    text_dim: int | None = None
    as_dict: bool = False
    infos: bool = True


class InquiryBatchEnv(VectorEnv[Any, Any, Any]):
    """Inquiries in the discrete view, stepped together as rows of arrays.

    The trajectories are those of `SyncVectorEnv` over ``InquiTree-…-menu-v0``, for the same seeds and actions. The
    trees are compiled to tables, by asking what every menu text is read as at every place, so that a step is a look-up
    for all inquiries at once. What is new is compiled at reset. A conclusion that is said where none was asked for, and
    for the first time, is embedded, all such of one step in one call.

    ## Observation space
    ``observation="features"``: feature rows (`FeatureLayout`), float32 of shape ``(num_envs, size)``, or with
    ``as_dict=True`` a Dict of them. ``"index"``: int64, shape ``(num_envs, 1 + words)``: the number of the text, which
    fixes phase and hint level, too; then bit i % 62 of word i // 62 is set when subtopic i was visited. The texts of a
    tree are numbered in the order of `observation_keys`, tree by tree. `text_of` gives the text behind a number, and
    `features` the features behind index observations, for a learner that keeps the small ones.

    ## Infos
    Those of the single environment, in Gymnasium's form for vectors; all share one mask. ``infos=False`` leaves them
    out, but for ``final_obs``, and spares time. With ``privileged=True`` every turn is taken by the engine, too, which
    takes hundreds of times as long.

    ## Arguments
    ``tree``: as `InquiryEnv` takes it, for all; ``trees``: instead, one for each inquiry. ``observation``, ``infos``:
    see above. ``autoreset_mode``: ``"NextStep"``, ``"SameStep"`` or ``"Disabled"``, as Gymnasium has them.
    ``copy=False``: observations stand in the same arrays at every step, for reading only. ``size``, ``on_masked``,
    ``text_dim``, ``as_dict``: as of the menu environment. All others are those of `InquiryEnv`, without a
    ``render_mode``.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        tree: TreeLike | Sequence[TreeLike] | None = None,
        trees: Sequence[TreeLike] | None = None,
        observation: Observation = "features",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        **keywords: Any,
    ) -> None:
        """See the class for the arguments.

        Raises:
            OptionError: an unknown keyword, a value out of range, not as many ``trees`` as inquiries, or one that does
                not fit into ``size``.
            TreeError: a tree is unknown or at fault.
        """
        mode = check_vector_arguments(num_envs, trees, autoreset_mode)
        self.num_envs, self.copy = num_envs, copy
        self.metadata = {"render_modes": [], "autoreset_mode": mode}
        self._at_once, self._by_hand = mode == AutoresetMode.SAME_STEP, mode == AutoresetMode.DISABLED
        face = _Face(**{name: keywords.pop(name) for name in _Face._fields if name in keywords})
        self._inquiry, own = _inquiry(tree, trees, keywords)
        size = MenuSize.resolve(face.size, self._inquiry.trees)
        check_on_masked(face.on_masked)
        if self._inquiry.privileged and not face.infos:
            raise OptionError("privileged is a part of the infos; leave infos at True")
        self._raises, self._with_infos = face.on_masked == "raise", face.infos
        self._observer = _observer(observation, face, size, self._inquiry)
        self.single_action_space = gym.spaces.Discrete(size.actions)
        self.single_observation_space = self._observer.space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._actions = np.uint64(size.actions)
        self._plays = RuntimeCache(self._inquiry.embedder, self._inquiry.prompts, scope="private")
        self._repertoire = Repertoire(self._plays, size, self._observer, num_envs)
        self._episodes = Episodes(self._inquiry, self._repertoire, own)
        self._over: Ints = np.zeros(0, np.int64)
        """Inquiries that ended and were not reset yet."""
        self._said: Said | None = None
        self._witness = Witness(num_envs) if self._inquiry.privileged else None
        self._shown: Shown | None = None if copy else self._observer.empty(num_envs)
        """Where observations stand, when they are not copied."""

    @cached_property
    def observation_space(self) -> gym.Space[Any]:  # type: ignore[override]
        """The space of all observations together; made when first asked for, as it takes more room than they do."""
        return batch_space(self.single_observation_space, self.num_envs)

    def reset(self, *, seed: Seed = None, options: Mapping[str, Any] | None = None) -> tuple[Shown, Infos]:
        """Start episodes.

        Args:
            seed: of the first inquiry, that of the i-th being i more; or one for each. None goes on to the inquiry's
                next episode, whose seed is a hash of the last one given and of the episodes since.
            options: those of `InquiryEnv.reset`, for these episodes alone; and ``reset_mask``, bool of shape
                ``(num_envs,)``, for which inquiries to reset. The others stay as they are.

        Returns: observations and infos; with a mask, infos of those reset.

        Raises:
            OptionError: an unknown option or a value out of range, a seed or a mask that does not fit, or a tree that
                fits into neither menu nor table.
            ResetNeeded: a mask that leaves out some at the very first reset.
            ClosedEnvironmentError: after `close`.
        """
        self._check_open()
        super().reset(seed=seed if isinstance(seed, int) else None)
        rows = self._episodes.reset(self.np_random, seed, options)
        core = self._episodes.core
        if self._said is None or self._said.tables is not core.tables:
            self._said = Said(core.tables)
        self._over = np.setdiff1d(self._over, rows)
        if self._witness:
            self._witness.begin(core, rows)
        return self._observer.show(core, self._shown), self._infos(None if len(rows) == self.num_envs else rows)

    def step(self, actions: Any) -> Steps:
        """Take one turn in every inquiry.

        Args:
            actions: whole numbers, shape ``(num_envs,)``.

        Returns: observations, rewards, terminations, truncations (always False) and infos.

        Raises:
            ActionError: not whole numbers of that shape, out of range, or masked where that is refused.
            ResetNeeded: before the first reset, or after an end where inquiries are not reset by themselves.
            ClosedEnvironmentError: after `close`.
        """
        self._check_open()
        core, over = self._episodes.core, self._over
        actions = self._checked(actions)
        if self._witness:
            self._witness.step(core, actions)
        ended, earned = core.step(actions)
        rewards, terminated = np.zeros(self.num_envs), np.zeros(self.num_envs, np.bool_)
        rewards[ended] = earned
        terminated[ended] = True
        infos: Infos = {}
        if self._at_once:
            infos, over = self._last(ended) if ended.size else {}, ended
        else:
            self._over = ended
        if over.size:
            self._episodes.go_on(over)
            if self._witness:
                self._witness.begin(core, over)
        if self._with_infos:
            infos.update(self._infos(None))
        shown = self._observer.show(core, self._shown)
        return shown, rewards, terminated, np.zeros(self.num_envs, np.bool_), infos

    @property
    def nbytes(self) -> int:
        """Bytes that the inquiries take between steps, without tables and observations.

        Raises:
            ResetNeeded: before the first reset.
        """
        return self._episodes.core.nbytes

    def action_masks(self) -> Mask:
        """Return which actions the states allow, bool of shape ``(num_envs, actions)``; see `Menu.mask`.

        Raises:
            ResetNeeded: before the first reset.
        """
        return self._episodes.core.masks()

    def texts(self) -> list[str]:
        """Return what there is to read now, one text for each inquiry.

        Raises:
            ResetNeeded: before the first reset.
        """
        return self._repertoire.texts(self._episodes.core)

    def text_of(self, number: int) -> str:
        """Return the text behind the first number of an index observation, under the rules of the environment.

        Raises:
            OptionError: the environment shows no numbers, or there is no text of this one.
        """
        return self._numbered.text_of(number, self._plays, self._inquiry.resolve_options(None)[1])

    def features(self, observations: Ints) -> FeatureRow:
        """Return features of index observations, under the rules of the environment: float32, shape ``(…, size)``.

        Args:
            observations: int64 of shape ``(…, 1 + words)``.

        Raises:
            OptionError: the environment shows other observations.
        """
        return self._numbered.features(observations, self._plays, self._inquiry.resolve_options(None)[1])

    @property
    def _numbered(self) -> IndexObserver:
        if not isinstance(self._observer, IndexObserver):
            raise OptionError('no observation is a number; make the environment with observation="index"')
        return self._observer

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError("the environment was closed; make another one")

    def _infos(self, rows: Ints | None) -> Infos:
        """Return the infos of all inquiries or of ``rows``."""
        if not self._with_infos or self._said is None:
            return {}
        infos = self._said.infos(self._episodes.core, rows)
        if self._witness:
            for row in range(self.num_envs) if rows is None else rows.tolist():
                infos = self._add_info(infos, self._witness.infos(self._episodes.core, row), row)
        return infos

    def _last(self, rows: Ints) -> Infos:
        """Return what is said of inquiries that ended and are reset at once."""
        last = np.full(self.num_envs, None)
        for row in rows.tolist():
            last[row] = self._observer.one(self._episodes.core, row)
        infos: Infos = {"final_obs": last, "_final_obs": mask_of(rows, self.num_envs)}
        if self._with_infos:
            infos |= {"final_info": self._infos(rows), "_final_info": mask_of(rows, self.num_envs)}
        return infos

    def _checked(self, actions: Any) -> Ints:
        """Return actions as an array of whole numbers; see `step` for the errors."""
        try:
            found = np.asarray(actions)
        except ValueError as error:  # rows of different lengths
            raise ActionError(f"menu actions are whole numbers of shape ({self.num_envs},): {error}") from error
        if found.dtype.kind not in "iu" or found.shape != (self.num_envs,):
            raise ActionError(
                f"menu actions are whole numbers of shape ({self.num_envs},), not {found.dtype} of shape {found.shape}"
            )
        found = found.astype(np.int64, copy=False)
        if np.maximum.reduce(found.view(np.uint64)) >= self._actions:  # a negative one is a large one without a sign
            row = int((found.view(np.uint64) >= self._actions).argmax())
            raise ActionError(f"a menu action lies in 0 to {int(self._actions) - 1}, not {found[row]} (inquiry {row})")
        if self._by_hand and self._over.size:
            raise episode_over_error(int(self._over[0]))
        if self._raises:
            self._refuse_masked(found)
        return found

    def _refuse_masked(self, actions: Ints) -> None:
        core = self._episodes.core
        masked = ~core.allows(actions)
        masked[self._over] = False
        if masked.any():
            row = int(masked.argmax())
            phase = PHASE_NAMES[core.tables.places.phase[core.place[row]]]
            raise ActionError(
                f"action {actions[row]} of inquiry {row} is not open at {phase}; choose among the True ones of "
                f'action_masks(), or make the environment with on_masked="play"'
            )


def _inquiry(
    tree: TreeLike | Sequence[TreeLike] | None,
    trees: Sequence[TreeLike] | None,
    keywords: Mapping[str, Any],
) -> tuple[InquiryEnv, Ints | None]:
    """Return an inquiry that keeps trees and rules, and for one tree per inquiry which of them each has."""
    if trees is not None:
        if nested := [each for each in trees if not isinstance(each, str | os.PathLike | Tree)]:
            raise OptionError(f"each of trees is an id, a path or a Tree, not {nested[0]!r:.80}")
        numbers = {each: number for number, each in enumerate(dict.fromkeys(trees))}
        found, own = InquiryEnv(list(numbers), **keywords), np.array([numbers[each] for each in trees])
    elif tree is not None:
        found, own = InquiryEnv(tree, **keywords), None
    else:
        raise OptionError("pass tree, for all inquiries, or trees, one for each")
    if found.render_mode is not None:
        raise OptionError("a batch of inquiries draws nothing; leave render_mode at None, and read texts()")
    return found, own


def _observer(observation: Observation, face: _Face, size: MenuSize, inquiry: InquiryEnv) -> Observer:
    if observation not in get_args(Observation):
        raise OptionError(f"observation is one of {get_args(Observation)}, not {observation!r}")
    features = FeatureLayout.create(size.subtopics, inquiry.embedder.dim, face.text_dim)
    if observation == "features":
        return FeatureObserver(features, as_dict=face.as_dict)
    if face.as_dict:
        raise OptionError('as_dict takes features apart; it goes with observation="features"')
    return IndexObserver(inquiry.trees, features)
