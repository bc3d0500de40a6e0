"""Agents that act on embeddings: the nearest menu text, and a trained policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from inquitree_gym.baselines.agent import BaselineAgent, TraversalAgent, longest_match, menu_texts
from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.embeddings.vectors import Vector
from inquitree_gym.engine import Engine, Phase, Rules, State
from inquitree_gym.envs.menu import Mask, Menu, MenuSize, numbered
from inquitree_gym.envs.observations import FeatureLayout, FeatureRow

Policy = Callable[[FeatureRow, Mask, np.random.Generator], int]
"""From features, shape ``(size,)``, and the mask of open actions, shape ``(actions,)``, to an action."""


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
        similarities = np.stack([self._candidates[text] for text in texts]) @ self._vectors.of(observation)
        return texts[int(np.argmax(similarities))]

    @cached_property
    def _candidates(self) -> dict[str, Vector]:
        """Vectors of the menu texts: those that the matcher compares actions with."""
        return dict(zip(self._menu, (*self._vectors.subtopics, *self._vectors.studies), strict=True))

    def conclude(self) -> str:
        """Return the results as a numbered list."""
        return numbered(self._results)

    def read_result(self, observation: str) -> None:
        """Keep the longest paragraph without a menu text, which is the result."""
        paragraphs = [" ".join(part.split()) for part in observation.split("\n\n")]
        fresh = [part for part in paragraphs if not any(text in part for text in self._menu)]
        if fresh and (longest := max(fresh, key=len)) not in self._results:
            self._results.append(longest)


class PolicyAgent(BaselineAgent):
    """Plays a policy that was trained in the discrete view.

    It reads the text observation, tracks visits and results, and gives the policy the features of
    `EmbeddingObservation` and the mask of `MenuActions`; the chosen action becomes its text. It needs nothing
    privileged, since results are recognised by their texts. A subtopic entered in the turn in which the limit strikes
    is shown in no observation, and counts as not visited; one declined in that turn counts as visited.
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
        """Play ``policy`` on the tree of ``vectors``.

        Args:
            vectors: vectors of the tree under the embedder of the training.
            policy: the trained policy.
            name: name in the log.
            size: slots for subtopics and studies in the training; None for those of the tree.
            text_dim: length of the text features in the training; None for the embedder's own.
            rules: rules of the episodes; the mask depends on ``candidates``, ``explore`` and ``named_at_result``. None
                for the default.

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
        """Start an episode."""
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
        """Return the state updated by ``observation``, which may show that a subtopic was entered, or a result."""
        tree, state = self._vectors.tree, self._state._replace(phase=phase)
        if phase == Phase.SUBTOPIC and self._state.phase != Phase.SUBTOPIC:
            entered = longest_match([subtopic.text for subtopic in tree.subtopics], observation)
            return _visit(state._replace(subtopic=entered), 1)
        if phase == Phase.TOPIC and self._state.phase == Phase.SUBTOPIC:
            return _visit(state, -1)  # the subtopic was declined
        if self._state.phase in (Phase.SUBTOPIC, Phase.STUDY, Phase.RESULT):
            for k in self._engine.studies_of[state.subtopic]:
                results, rewordings = tree.studies[k].results, tree.studies[k].rewordings
                if (shown := longest_match((*results, *rewordings), observation)) >= 0:
                    shown = shown if shown < len(results) else 0
                    return state._replace(shown=(*state.shown[:k], shown, *state.shown[k + 1 :]))
        return state


def _visit(state: State, change: int) -> State:
    """Return the state with one visit of its subtopic more or less."""
    at, visits = state.subtopic, list(state.visits)
    visits[at] += change
    visited = state.visited | 1 << at if visits[at] else state.visited & ~(1 << at)
    return state._replace(visits=tuple(visits), visited=visited)
