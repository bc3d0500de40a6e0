"""The discrete view: `MenuActions`, `EmbeddingObservation`, and the factories of ``InquiTree-…-menu-v0``."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, SupportsFloat, Unpack

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import RecordConstructorArgs

from inquitree_gym.embeddings.registry import WORDS
from inquitree_gym.envs.spaces import Mask
from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.inquiry.engine import State
from inquitree_gym.inquiry.env import InquiryEnv, TreeLike, unwrap_inquiry
from inquitree_gym.inquiry.keywords import InquiryKeywords, unpack_keywords
from inquitree_gym.inquiry.menu import Menu, MenuSize, OnMasked, check_exam, check_on_masked, item_options
from inquitree_gym.inquiry.observations import FeatureLayout, FeatureRow, observation_vectors
from inquitree_gym.inquiry.vector import SyntheticEnv
from inquitree_gym.trees import Difficulty, Tree

Observation = FeatureRow | dict[str, FeatureRow]

MAX_CACHED_ROWS = 4_096
"""Feature rows cached per environment, of one tree at a time."""


class EmbeddingObservation(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Replace the text by a row of features: phase, hint level, visited subtopics, tally, embedding.

    See `FeatureLayout`.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        subtopics: int | None = None,
        axes: int | None = None,
        tally: bool = True,
        text_dim: int | None = None,
        as_dict: bool = False,
    ) -> None:
        """Wrap ``env``.

        Args:
            env: an inquiry, with or without `MenuActions`, in either order.
            subtopics: slots for visited subtopics. None takes the number of the largest tree of ``env``.
            axes: slots for axes of the exam in the tally. None takes the number of the tree with the most.
            tally: observe how many results stated each pole of each axis. A policy without a memory needs it.
            text_dim: length of the text part. None for the whole embedding.
            as_dict: return a Dict with a Box per part instead of one flat Box.

        Raises:
            OptionError: ``env`` is no inquiry, a value is out of range, or a tree has more subtopics than slots.
        """
        RecordConstructorArgs.__init__(
            self, subtopics=subtopics, axes=axes, tally=tally, text_dim=text_dim, as_dict=as_dict
        )
        gym.Wrapper.__init__(self, env)
        self._inquiry: InquiryEnv = unwrap_inquiry(self)
        fitting = MenuSize.fitting(self._inquiry.tasks)
        slots = fitting.subtopics if subtopics is None else subtopics
        tallied = (fitting.axes if axes is None else axes) if tally else 0
        self.features = FeatureLayout.create(slots, tallied, self._inquiry.embedder.dim, text_dim)
        self.observation_space = self.features.dict() if as_dict else self.features.box()
        self._parts = self.features.parts
        self._as_dict = as_dict
        self._tree: Tree | None = None
        self._vectors: dict[str, FeatureRow] = {}
        self._rows: dict[tuple[str, int, int, tuple[int, ...]], FeatureRow] = {}
        self._check(self._inquiry.tasks)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode. See `InquiryEnv.reset`.

        Raises:
            OptionError: a tree in the options has more subtopics than there are slots. The current episode is left as
                it is.
        """
        self._check(self._inquiry.requested_tasks(options))
        text, info = self.env.reset(seed=seed, options=options)
        if self._tree is not self._inquiry.tree:
            self._load(self._inquiry.tree)
        return self._observe(text), info

    def step(self, action: Any) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take one turn. See `InquiryEnv.step`."""
        text, reward, terminated, truncated, info = self.env.step(action)
        return self._observe(text), reward, terminated, truncated, info

    def _check(self, trees: Sequence[Tree]) -> None:
        slots = self.features.subtopics
        for tree in trees:
            if 0 < self.features.axes < (axes := MenuSize.fitting([tree]).axes):
                raise OptionError(
                    f"{tree.id} has {axes} axes and the tally {self.features.axes} slots; pass axes={axes}"
                )
            if (needed := len(tree.subtopics)) > slots:
                raise OptionError(
                    f"{tree.id} has {needed} subtopics and the observation {slots} slots for them; make it with "
                    f"subtopics={needed} or more"
                )

    def _load(self, tree: Tree) -> None:
        runtime = self._inquiry.runtime
        self._vectors = observation_vectors(runtime.observations, runtime.vectors, runtime.engine.rules)
        self._rows.clear()
        self._tree = tree

    def _observe(self, text: str) -> Observation:
        state = self._inquiry.state
        key = (text, state.phase, state.hint_level, state.packed)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._row(text, state)
            if len(self._rows) > MAX_CACHED_ROWS:
                del self._rows[next(iter(self._rows))]
        row = row.copy()
        return {name: row[at] for name, at in self._parts.items()} if self._as_dict else row

    def _row(self, text: str, state: State) -> FeatureRow:
        vector = self._vectors.get(text)
        vector = self._inquiry.vectors.of(text) if vector is None else vector
        row = self.features.row(state.phase, state.hint_level, vector)
        self.features.fill(row, state)
        return row


MAX_CACHED_MENUS = 64
"""Menus cached per environment."""


class MenuActions(gym.Wrapper[str, Any, str, str], RecordConstructorArgs):
    """Map a Discrete action space to texts: subtopics, studies, decisions, and options of the exam (see `Menu`).

    Every action is sent to the environment as text, so matching, hints and rewards are those of the text view. The exam
    asks for one item at a time (the rule ``exam="items"``).
    ``info["action_mask"]`` (int8, shape ``(actions,)``) marks the actions that the state allows.
    """

    def __init__(
        self, env: gym.Env[str, str], *, size: tuple[int, int] | None = None, on_masked: OnMasked = "play"
    ) -> None:
        """Wrap ``env``.

        Args:
            env: an inquiry in free text.
            size: slots for subtopics and for studies, so that trees of different sizes share one action space. None
                takes those of the largest tree of ``env``.
            on_masked: for an action outside the mask, ``"play"`` sends its text all the same (an empty slot sends an
                empty text), ``"raise"`` raises `ActionError`.

        Raises:
            OptionError: ``env`` is no inquiry or has no exam, a tree does not fit into ``size``, or a value is out of
                range.
        """
        check_on_masked(on_masked)
        RecordConstructorArgs.__init__(self, size=size, on_masked=on_masked)
        gym.Wrapper.__init__(self, env)
        self._inquiry: InquiryEnv = unwrap_inquiry(self)
        check_exam(self._inquiry.rules)
        self.size = MenuSize.resolve(size, self._inquiry.tasks)
        self._actions = self.size.actions
        self.action_space = gym.spaces.Discrete(self._actions)
        self._raises = on_masked == "raise"
        self._menus: dict[Tree, Menu] = {}
        self._menu: Menu | None = None

    @property
    def menu(self) -> Menu:
        """The menu of this episode's tree.

        Raises:
            ResetNeeded: before the first reset.
        """
        if self._menu is None:
            raise ResetNeeded("no episode has been started; call reset() first")
        return self._menu

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode. See `InquiryEnv.reset`.

        Raises:
            OptionError: a tree in the options does not fit into the menu. The current episode is left as it is.
        """
        for tree in self._inquiry.requested_tasks(options):
            self.size.check(tree)
        observation, info = self.env.reset(seed=seed, options=item_options(options, self._inquiry.rules))
        self._menu = self._get_menu(self._inquiry.tree)
        self._engine = self._inquiry.runtime.engine
        info["action_mask"] = self._menu.mask_int8(self._engine, self._inquiry.state)
        return observation, info

    def step(self, action: int) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Send the text of ``action``. See `InquiryEnv.step`.

        Args:
            action: an integer: a Python int, a NumPy integer, or an array or tensor of shape ``()``.

        Raises:
            ActionError: not an integer, out of range, or masked with ``on_masked="raise"``.
        """
        number = action if type(action) is int else _to_int(action)
        if not 0 <= number < self._actions:
            raise ActionError(f"a menu action must lie in 0 to {self._actions - 1}, got {action}")
        menu = self._menu or self.menu
        if self._raises and not self.action_masks()[number]:
            raise ActionError(
                f"action {action} is not open at {self._inquiry.state.phase.name.lower()}; choose among the True ones "
                f'of action_masks(), or make the environment with on_masked="play"'
            )
        inquiry = self._inquiry
        step = self.env.step(menu.texts[number])
        step[4]["action_mask"] = menu.mask_int8(self._engine, inquiry.state)
        return step

    def action_masks(self) -> Mask:
        """Return the actions that the state allows, bool of shape ``(actions,)``. The form MaskablePPO expects."""
        return self.menu.mask(self._inquiry.runtime.engine, self._inquiry.state)

    def _get_menu(self, tree: Tree) -> Menu:
        menu = self._menus.get(tree)
        if menu is None:
            menu = self._menus[tree] = Menu(tree, self.size)
            if len(self._menus) > MAX_CACHED_MENUS:
                del self._menus[next(iter(self._menus))]
        return menu


def _to_int(action: Any) -> int:
    """Return an integer scalar of Python, NumPy or a tensor library as int. Bools and floats are refused."""
    if isinstance(action, np.integer):
        return int(action)
    is_bool = "bool" in str(getattr(action, "dtype", type(action).__name__))
    try:
        if not is_bool and tuple(getattr(action, "shape", ())) == ():
            return operator.index(action)
    except TypeError:
        pass
    raise ActionError(f"a menu action must be an integer, got {type(action).__name__} ({action!r:.80})")


@unpack_keywords(InquiryEnv.__init__, InquiryKeywords)
def menu_env(
    tree: TreeLike | Sequence[TreeLike],
    *,
    size: tuple[int, int] | None = None,
    on_masked: OnMasked = "play",
    tally: bool = True,
    text_dim: int | None = None,
    as_dict: bool = False,
    **keywords: Unpack[InquiryKeywords],
) -> gym.Env[Observation, int]:
    """Return an `InquiryEnv` with discrete actions and feature observations.

    ``size`` and ``on_masked`` are those of `MenuActions`, ``tally``, ``text_dim`` and ``as_dict`` those of
    `EmbeddingObservation`, all others those of `InquiryEnv`.
    """
    env = InquiryEnv(tree, **keywords)
    return _discrete(env, size=size, on_masked=on_masked, tally=tally, text_dim=text_dim, as_dict=as_dict)


@unpack_keywords(partial(InquiryEnv.__init__, embedder=WORDS), InquiryKeywords)
def synthetic_menu_env(
    *,
    split: str = "train",
    difficulty: Difficulty | Mapping[str, Any] | None = None,
    size: tuple[int, int] | None = None,
    on_masked: OnMasked = "play",
    tally: bool = True,
    text_dim: int | None = None,
    as_dict: bool = False,
    **keywords: Unpack[InquiryKeywords],
) -> gym.Env[Observation, int]:
    """Return a `SyntheticEnv` as `menu_env` does. Without ``size`` it has slots for the largest tree of the difficulty.

    ``split`` and ``difficulty`` are those of `SyntheticEnv`. ``embedder`` is ``"hashed-words"`` unless it is given:
    a menu of generated texts needs no model.
    """
    keywords.setdefault("embedder", WORDS)
    env = SyntheticEnv(split=split, difficulty=difficulty, **keywords)
    if size is None:
        largest = MenuSize.fitting(env.tasks)
        size = largest.subtopics, largest.studies
    return _discrete(env, size=size, on_masked=on_masked, tally=tally, text_dim=text_dim, as_dict=as_dict)


def _discrete(
    env: InquiryEnv,
    *,
    size: tuple[int, int] | None,
    on_masked: OnMasked,
    tally: bool,
    text_dim: int | None,
    as_dict: bool,
) -> gym.Env[Observation, int]:
    actions = MenuActions(env, size=size, on_masked=on_masked)
    subtopics, axes = actions.size.subtopics, actions.size.axes
    return EmbeddingObservation(
        actions, subtopics=subtopics, axes=axes, tally=tally, text_dim=text_dim, as_dict=as_dict
    )
