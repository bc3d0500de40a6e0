"""A policy of the discrete view, playing in free text like any other agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inquitree_gym.baselines.agent import BaselineAgent
from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.engine import Engine, Phase, Rules, State
from inquitree_gym.envs.menu import Mask, Menu, MenuSize
from inquitree_gym.envs.observations import FeatureLayout, FeatureRow

Policy = Callable[[FeatureRow, Mask, np.random.Generator], int]
"""From features, shape ``(size,)``, and the mask of open actions, shape ``(actions,)``, to an action."""


class PolicyAgent(BaselineAgent):
    """Plays whatever a policy of the discrete view was trained to do.

    It reads the text observation, keeps track of what was visited and shown, and hands the policy the features that
    `EmbeddingObservation` would give and the mask of `MenuActions`; the action it gets back is said as its text. It
    needs nothing privileged: results are known by their texts, as the policy knows them. One thing no text tells: a
    subtopic entered in the very turn in which the limit strikes; it then counts as not visited.
    """

    def __init__(
        self,
        vectors: TreeVectors,
        policy: Policy,
        *,
        name: str = "policy",
        size: tuple[int, int] | None = None,
        text_dim: int | None = None,
        rules: Rules | None = None,
    ) -> None:
        """Bind a policy to a tree.

        Args:
            vectors: of the tree, under the embedder that the policy was trained with.
            policy: what was trained.
            name: what the log calls it.
            size: slots for subtopics and studies that it was trained with; None for those of the tree.
            text_dim: length of the text's part that it was trained with; None for the embedder's own.
            rules: of the episodes, as far as the mask depends on them (``candidates``, ``explore``); None for the
                default ones.

        Raises:
            OptionError: the tree does not fit into ``size``, or ``size`` or ``text_dim`` is out of range.
        """
        super().__init__()
        self.name = name
        self._vectors = vectors
        self._policy = policy
        self._menu = Menu(vectors.tree, MenuSize.resolve(size, [vectors.tree]))
        self._features = FeatureLayout.create(self._menu.size.subtopics, vectors.embedder.dim, text_dim)
        self._engine = Engine(vectors.tree, (rules or Rules()).override({"threshold": 0.0}))
        self._state = self._engine.start(0).state

    @property
    def config(self) -> dict[str, Any]:
        """Name and layout, for the log."""
        return {"name": self.name, "size": list(self._menu.size), "text_dim": self._features.text_dim}

    def reset(self, seed: int) -> None:
        """Begin an episode."""
        super().reset(seed)
        self._state = self._engine.start(0).state

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the text of the policy's action."""
        self._state = state = self._take(observation, Phase[info["state"].upper()])
        row = self._features.row(state.phase, info["hint_level"], self._vectors.of(observation))
        row[self._features.parts["visited"]] = [state.visited >> i & 1 for i in range(self._features.subtopics)]
        action = self._policy(row, self._menu.mask(self._engine, state), self.rng)
        return self._menu.text(int(action), state)

    def _take(self, observation: str, phase: Phase) -> State:
        """Return the state with what ``observation`` shows: a subtopic entered, or a result."""
        tree, state = self._vectors.tree, self._state._replace(phase=phase)
        if phase == Phase.SUBTOPIC and self._state.phase != Phase.SUBTOPIC:
            entered = _longest([subtopic.text for subtopic in tree.subtopics], observation)
            return state._replace(subtopic=entered, visited=state.visited | 1 << entered)
        if self._state.phase in (Phase.SUBTOPIC, Phase.STUDY, Phase.RESULT):
            for k in self._engine.studies_of[state.subtopic]:
                results = (tree.studies[k].result, *tree.studies[k].fakes)
                if (shown := _longest(results, observation)) >= 0:
                    return state._replace(shown=(*state.shown[:k], shown, *state.shown[k + 1 :]))
        return state


def _longest(texts: list[str] | tuple[str, ...], observation: str) -> int:
    """Return which of ``texts`` stands in ``observation``, the longest of several; -1 for none."""
    found = [i for i, text in enumerate(texts) if text in observation]
    return max(found, key=lambda i: len(texts[i]), default=-1)
