"""`MenuActions`: a discrete action space over a tree's own texts."""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import RecordConstructorArgs

from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.envs.menu import Mask, Menu, MenuSize, OnMasked, check_on_masked
from inquitree_gym.errors import ActionError
from inquitree_gym.trees import Tree
from inquitree_gym.wrappers.unwrapping import inquiry_of, trees_asked_for

MAX_MENUS = 64
"""Menus kept ready."""


class MenuActions(gym.Wrapper[str, Any, str, str], RecordConstructorArgs):
    """Act by number: the texts of all subtopics and studies, the three decisions, and a conclusion that believes.

    Every action is played as the text it stands for, so whatever the text view reads, hints at or refuses is the same
    here. What they are, and what the conclusion says, is told in `Menu`.
    """

    def __init__(
        self, env: gym.Env[str, str], *, size: tuple[int, int] | None = None, on_masked: OnMasked = "play"
    ) -> None:
        """Wrap ``env``.

        Args:
            env: an inquiry in free text.
            size: slots for subtopics and for studies, so that trees of different sizes share one action space; None
                takes those of the largest tree that ``env`` was made with.
            on_masked: what an action outside `action_masks` does: ``"play"`` says its text all the same (an empty slot
                says nothing), ``"raise"`` refuses it.

        Raises:
            OptionError: ``env`` is no inquiry, a tree does not fit into ``size``, or a value is out of range.
        """
        check_on_masked(on_masked)
        RecordConstructorArgs.__init__(self, size=size, on_masked=on_masked)
        gym.Wrapper.__init__(self, env)
        self._inquiry: InquiryEnv = inquiry_of(self)
        self.size = MenuSize.resolve(size, self._inquiry.trees)
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
        """Start an episode; see `InquiryEnv.reset`.

        Raises:
            OptionError: a tree asked for does not fit into the menu; the episode in progress goes on.
        """
        for tree in trees_asked_for(self._inquiry, options):
            self.size.check(tree)
        result = self.env.reset(seed=seed, options=options)
        self._menu = self._menu_of(self._inquiry.tree)
        return result

    def step(self, action: int) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Say the text of ``action``; see `InquiryEnv.step`.

        Raises:
            ActionError: not a whole number, out of range, or masked where that is refused.
        """
        number = action if type(action) is int else _whole(action)
        if not 0 <= number < self._actions:
            raise ActionError(f"a menu action lies in 0 to {self._actions - 1}, not {action}")
        menu = self._menu or self.menu
        if self._raises and not self.action_masks()[number]:
            raise ActionError(
                f"action {action} is not open at {self._inquiry.state.phase.name.lower()}; choose among the True ones "
                f'of action_masks(), or make the environment with on_masked="play"'
            )
        return self.env.step(menu.texts[number] if number < menu.conclusion else menu.conclude(self._inquiry.state))

    def action_masks(self) -> Mask:
        """Return which actions the state allows, bool of shape ``(actions,)``, as MaskablePPO asks for them."""
        return self.menu.mask(self._inquiry.runtime.engine, self._inquiry.state)

    def _menu_of(self, tree: Tree) -> Menu:
        menu = self._menus.get(tree)
        if menu is None:
            menu = self._menus[tree] = Menu(tree, self.size)
            if len(self._menus) > MAX_MENUS:
                del self._menus[next(iter(self._menus))]
        return menu


def _whole(action: Any) -> int:
    if not isinstance(action, int | np.integer) or isinstance(action, bool):
        raise ActionError(f"a menu action is a whole number, not {type(action).__name__} ({action!r:.80})")
    return int(action)
