"""`EmbeddingObservation`: observations as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsFloat

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from inquitree_gym.engine import State
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.envs.menu import MenuSize
from inquitree_gym.envs.observations import FeatureLayout, FeatureRow, observation_vectors
from inquitree_gym.errors import OptionError
from inquitree_gym.trees import Tree
from inquitree_gym.wrappers.unwrapping import inquiry_of, trees_asked_for

Observation = FeatureRow | dict[str, FeatureRow]

MAX_ROWS = 4_096
"""Observations kept ready; those of one tree at a time."""


class EmbeddingObservation(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Observe phase, hint level, visited subtopics and the embedding of the text, in the order of `FeatureLayout`."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        subtopics: int | None = None,
        text_dim: int | None = None,
        as_dict: bool = False,
    ) -> None:
        """Wrap ``env``.

        Args:
            env: an inquiry, with `MenuActions` below or above, or in free text.
            subtopics: slots for visited subtopics; None takes those of the largest tree that ``env`` was made with.
            text_dim: length of the text's part; None for the embedder's own.
            as_dict: one-level Dict with a Box per part instead of one flat Box.

        Raises:
            OptionError: ``env`` is no inquiry, a value is out of range, or a tree has more subtopics than slots.
        """
        RecordConstructorArgs.__init__(self, subtopics=subtopics, text_dim=text_dim, as_dict=as_dict)
        gym.Wrapper.__init__(self, env)
        self._inquiry: InquiryEnv = inquiry_of(self)
        slots = MenuSize.fitting(self._inquiry.trees).subtopics if subtopics is None else subtopics
        self.features = FeatureLayout.create(slots, self._inquiry.embedder.dim, text_dim)
        self.observation_space = self.features.dict() if as_dict else self.features.box()
        self._parts = self.features.parts
        self._as_dict = as_dict
        self._tree: Tree | None = None
        self._vectors: dict[str, FeatureRow] = {}
        self._rows: dict[tuple[str, int, int, int], FeatureRow] = {}
        self._check(self._inquiry.trees)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; see `InquiryEnv.reset`.

        Raises:
            OptionError: a tree asked for has more subtopics than there are slots; the episode in progress goes on.
        """
        self._check(trees_asked_for(self._inquiry, options))
        text, info = self.env.reset(seed=seed, options=options)
        if self._tree is not self._inquiry.tree:
            self._take(self._inquiry.tree)
        return self._observe(text), info

    def step(self, action: Any) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take one turn; see `InquiryEnv.step`."""
        text, reward, terminated, truncated, info = self.env.step(action)
        return self._observe(text), reward, terminated, truncated, info

    def _check(self, trees: Sequence[Tree]) -> None:
        slots = self.features.subtopics
        for tree in trees:
            if (needed := len(tree.subtopics)) > slots:
                raise OptionError(
                    f"{tree.id} has {needed} subtopics and the observation {slots} slots for them; make it with "
                    f"subtopics={needed} or more"
                )

    def _take(self, tree: Tree) -> None:
        runtime = self._inquiry.runtime
        self._vectors = observation_vectors(runtime.observations, runtime.vectors)
        self._rows.clear()
        self._tree = tree

    def _observe(self, text: str) -> Observation:
        state = self._inquiry.state
        key = (text, state.phase, state.hint_level, state.visited)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._row(text, state)
            if len(self._rows) > MAX_ROWS:
                del self._rows[next(iter(self._rows))]
        row = row.copy()
        return {name: row[at] for name, at in self._parts.items()} if self._as_dict else row

    def _row(self, text: str, state: State) -> FeatureRow:
        vector = self._vectors.get(text)
        vector = self._inquiry.vectors.of(text) if vector is None else vector
        row = self.features.row(state.phase, state.hint_level, vector)
        row[self._parts["visited"]] = [state.visited >> i & 1 for i in range(self.features.subtopics)]
        return row
