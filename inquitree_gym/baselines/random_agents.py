"""Random agents: the paper's, the floor, and random words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inquitree_gym.baselines.agent import BaselineAgent, TraversalAgent, menu_texts, random_conclusion
from inquitree_gym.envs.menu import DECISIONS
from inquitree_gym.envs.spaces import FreeText
from inquitree_gym.trees import Tree

MAX_WORDS_LENGTH = 400
"""Characters of an action of `RandomWordsAgent`, at most."""


class RandomAgent(TraversalAgent):
    """The paper's random agent (appendix B.2).

    Chooses uniformly among the subtopics not yet entered, then among the studies of the subtopic; explores until all
    are entered; concludes with random menu texts.
    """

    name = "random"

    def __init__(self, tree: Tree) -> None:
        """Learn the menu of ``tree``."""
        super().__init__(tree)
        self._tree = tree

    def choose(self, observation: str, texts: Sequence[str]) -> str:
        """Return a random one of ``texts``."""
        return texts[int(self.rng.integers(len(texts)))]

    def conclude(self) -> str:
        """Return random menu texts."""
        return random_conclusion(self._tree, self.rng)


class RandomMenuAgent(BaselineAgent):
    """The floor: every action is uniform over the whole menu, subtopics, studies and the three decisions alike.

    At the topic and at a subtopic, where no decision is asked for, it is uniform over the subtopics and studies.
    """

    name = "random-menu"

    def __init__(self, tree: Tree) -> None:
        """Learn the menu of ``tree``."""
        super().__init__()
        self._tree = tree
        self._menu = (*menu_texts(tree), *DECISIONS)

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        if info["state"] == "conclusion":
            return random_conclusion(self._tree, self.rng)
        while True:
            action = self._menu[self.rng.integers(len(self._menu))]
            if action not in DECISIONS or info["state"] not in ("topic", "subtopic"):
                return action


class RandomWordsAgent(BaselineAgent):
    """Says random words of everyday science, without knowing the tree."""

    name = "random-words"

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        return FreeText(MAX_WORDS_LENGTH, seed=self.rng).sample()
