"""Agents that use no model and no tree: strategies that must earn nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inquitree_gym.baselines import BaselineAgent
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.menu import EXPLORE
from inquitree_gym.trees import Tree

GENERIC = (
    "Run a carefully controlled experiment with an adequate sample, measure the main outcome in each condition, "
    "and compare the conditions statistically."
)
JUNK = "lorem ipsum dolor sit amet"
SHORTCUTS = ("empty", "junk", "topic-echo", "generic-study")


class ShortcutAgent(BaselineAgent):
    """Agent with one fixed text for every choice and for its conclusion. Explores after every result."""

    def __init__(self, name: str, tree: Tree) -> None:
        """Take one of `SHORTCUTS`.

        Raises:
            OptionError: there is no such strategy.
        """
        super().__init__()
        texts = dict(zip(SHORTCUTS, ("", JUNK, tree.topic, GENERIC), strict=True))
        if name not in texts:
            raise OptionError(f"no shortcut is called '{name}'; known: {', '.join(SHORTCUTS)}")
        self.name = name
        self._text = texts[name]

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        return EXPLORE if info["state"] == "result" else self._text
