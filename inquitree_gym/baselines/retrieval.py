"""Greedy retrieval: what embeddings alone can do without a language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from inquitree_gym.baselines.agent import BaselineAgent, TreeTexts
from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.envs.menu import CONCLUDE, EXPLORE, numbered


class RetrievalAgent(BaselineAgent):
    """Answers with the menu text nearest to what it reads, and concludes with the results it was shown."""

    name = "retrieval"

    def __init__(self, vectors: TreeVectors) -> None:
        """Know the menu of the tree behind ``vectors``, and use its embedder."""
        super().__init__()
        self._vectors = vectors
        self._texts = TreeTexts(vectors.tree)
        self._entered: set[int] = set()
        self._results: list[str] = []
        self._here = 0

    def reset(self, seed: int) -> None:
        """Begin an episode."""
        super().reset(seed)
        self._entered = set()
        self._results = []

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        menu, state = self._texts, info["state"]
        if state == "topic":
            left = [text for i, text in enumerate(menu.subtopics) if i not in self._entered] or list(menu.subtopics)
            return self._nearest(observation, left)
        if state == "subtopic":
            shown = menu.subtopic_shown(observation)
            if shown is not None:
                self._entered.add(shown)
                self._here = shown
            return self._nearest(observation, list(menu.studies[self._here]))
        if state == "result":
            self._note(observation)
            return EXPLORE if len(self._entered) < len(menu.subtopics) else CONCLUDE
        return numbered(self._results) if state == "conclusion" else ""

    def _nearest(self, observation: str, texts: list[str]) -> str:
        similarities = self._vectors.matrix(tuple(texts)) @ self._vectors.of(observation)
        return texts[int(np.argmax(similarities))]

    def _note(self, observation: str) -> None:
        """Keep the result: of the paragraphs without a menu text the longest."""
        paragraphs = [" ".join(part.split()) for part in observation.split("\n\n")]
        fresh = [part for part in paragraphs if not any(text in part for text in self._texts.texts)]
        if fresh and (longest := max(fresh, key=len)) not in self._results:
            self._results.append(longest)
