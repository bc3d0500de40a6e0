"""Agents that choose by chance: the floor and the bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inquitree_gym.baselines.agent import BaselineAgent, TreeTexts
from inquitree_gym.envs.menu import CONCLUDE, EXPLORE, REDO
from inquitree_gym.envs.spaces import FreeText
from inquitree_gym.trees import Tree

MAX_WORDS_LENGTH = 400


class RandomAgent(BaselineAgent):
    """The paper's random agent (appendix B.2).

    Uniform over the subtopics not yet entered, then over the studies of the subtopic; explores until all are entered;
    concludes with random menu texts.
    """

    name = "random"

    def __init__(self, tree: Tree) -> None:
        """Know the menu of ``tree``."""
        super().__init__()
        self._texts = TreeTexts(tree)
        self._entered: set[int] = set()
        self._here = 0

    def reset(self, seed: int) -> None:
        """Begin an episode."""
        super().reset(seed)
        self._entered = set()

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        menu, state = self._texts, info["state"]
        if state == "topic":
            left = [i for i in range(len(menu.subtopics)) if i not in self._entered] or range(len(menu.subtopics))
            return menu.subtopics[left[self.rng.integers(len(left))]]
        if state == "subtopic":
            shown = menu.subtopic_shown(observation)
            if shown is not None:
                self._entered.add(shown)
                self._here = shown
            studies = menu.studies[self._here]
            return studies[self.rng.integers(len(studies))]
        if state == "result":
            return EXPLORE if len(self._entered) < len(menu.subtopics) else CONCLUDE
        return menu.junk_conclusion(self.rng) if state == "conclusion" else ""


class RandomMenuAgent(BaselineAgent):
    """The floor: uniform over the whole menu at every decision: subtopics, studies and the three decisions alike."""

    name = "random-menu"

    def __init__(self, tree: Tree) -> None:
        """Know the menu of ``tree``."""
        super().__init__()
        self._texts = TreeTexts(tree)
        self._everything = (*self._texts.texts, REDO, EXPLORE, CONCLUDE)

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        if info["state"] == "conclusion":
            return self._texts.junk_conclusion(self.rng)
        return self._everything[self.rng.integers(len(self._everything))]


class RandomWordsAgent(BaselineAgent):
    """Says random words of everyday science; knows no menu."""

    name = "random-words"

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        return FreeText(MAX_WORDS_LENGTH, seed=self.rng).sample()
