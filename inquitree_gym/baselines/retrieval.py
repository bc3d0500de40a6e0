"""Greedy retrieval: the baseline for embeddings without a language model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inquitree_gym.baselines.agent import TraversalAgent, menu_texts
from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.envs.menu import numbered


class RetrievalAgent(TraversalAgent):
    """Answers with the menu text nearest to the observation, and concludes with the results it has seen."""

    name = "retrieval"

    def __init__(self, vectors: TreeVectors) -> None:
        """Learn the menu of the tree of ``vectors``, and use their embedder."""
        super().__init__(vectors.tree)
        self._vectors = vectors
        self._menu = menu_texts(vectors.tree)
        self._results: list[str] = []

    def reset(self, seed: int) -> None:
        """Start an episode."""
        super().reset(seed)
        self._results = []

    def choose(self, observation: str, texts: Sequence[str]) -> str:
        """Return the one of ``texts`` most similar to ``observation``."""
        similarities = self._vectors.matrix(tuple(texts)) @ self._vectors.of(observation)
        return texts[int(np.argmax(similarities))]

    def conclude(self) -> str:
        """Return the results as a numbered list."""
        return numbered(self._results)

    def read_result(self, observation: str) -> None:
        """Keep the longest paragraph without a menu text, which is the result."""
        paragraphs = [" ".join(part.split()) for part in observation.split("\n\n")]
        fresh = [part for part in paragraphs if not any(text in part for text in self._menu)]
        if fresh and (longest := max(fresh, key=len)) not in self._results:
            self._results.append(longest)
