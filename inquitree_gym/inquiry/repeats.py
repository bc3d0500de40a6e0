"""Recognition of accepted texts that repeat one shown before in the episode, which earn no credit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings.protocol import SIMILARITY_TOLERANCE

if TYPE_CHECKING:
    from inquitree_gym.embeddings import TreeVectors, Vectors
    from inquitree_gym.inquiry.engine import Engine, State
    from inquitree_gym.trees.document import Candidate, Study, Subtopic

SIMILARITY = 0.9
"""Similarity to a text from which an action repeats it, unless it is nearer to the node that it was accepted for."""
_OWN = 0

_Similar: TypeAlias = tuple[NDArray[np.intp], NDArray[np.float32]]
"""Places of texts and their similarities."""


class ShownText(NamedTuple):
    """A text of a tree that an episode may show."""

    text: str
    node: int
    """Subtopic, or number of subtopics plus study, that it belongs to. -1 for the topic."""
    part: int
    """0 for the text of the node and, once a study was run, each of its results. Otherwise the level of a hint."""


class Repeats:
    """Texts of one tree that actions repeat."""

    def __init__(self, engine: Engine, vectors: TreeVectors) -> None:
        self._engine = engine
        self._vectors = vectors
        self._last: tuple[Vectors, _Similar] | None = None

    def repeated(self, node: Candidate, text: str) -> tuple[ShownText, ...] | None:
        """Return the texts that ``text`` repeats once they are shown, if it is accepted for ``node``.

        The text of the node itself repeats nothing. None for a tree that is played once, whose texts are embedded only
        where they were shown.
        """
        if text.rstrip().endswith(node.text):
            return ()
        return self._near(node, text, self._texts) if self._vectors.lasting else None

    def repeats(self, state: State, node: Candidate, text: str, found: tuple[ShownText, ...] | None) -> bool:
        """Return whether ``text`` repeats a text that was shown before ``state``. ``found`` is from `repeated`."""
        if found is not None:
            return any(self._is_shown(state, each) for each in found)
        shown = [each for each in self._texts if self._is_shown(state, each)]
        return bool(self._near(node, text, shown))

    @cached_property
    def _texts(self) -> tuple[ShownText, ...]:
        return tuple(self._each_text())

    def _each_text(self) -> Iterator[ShownText]:
        tree, n = self._vectors.tree, self._engine.n
        yield ShownText(tree.topic, -1, _OWN)
        nodes: tuple[Subtopic | Study, ...] = (*tree.subtopics, *tree.studies)
        for place, node in enumerate(nodes):
            yield from (ShownText(text, place, part) for part, text in enumerate((node.text, *node.hints)))
        for place, study in enumerate(tree.studies, n):
            yield from (ShownText(text, place, _OWN) for text in study.shown_texts)

    def _is_shown(self, state: State, text: ShownText) -> bool:
        node, n = text.node, self._engine.n
        if node < 0 or text.part == _OWN:
            return node < 0 or (state.visits[node] if node < n else state.runs[node - n]) > 0
        return state.told[node] >= text.part

    def _near(self, node: Candidate, text: str, others: Sequence[ShownText]) -> tuple[ShownText, ...]:
        """Return those of ``others`` that ``text`` is at least `SIMILARITY` to, and nearer to than to ``node``."""
        vector = self._vectors.of(text)
        own = float(vector @ self._vectors.of(node.text))
        places, similarities = self._similar(vector, others)
        close = np.abs(similarities - max(own, SIMILARITY)) < SIMILARITY_TOLERANCE
        if close.any() and self._vectors.is_rough(text):
            self._vectors.settle(text)
            return self._near(node, text, others)
        return tuple(others[i] for i in places[(similarities >= SIMILARITY) & (similarities > own)].tolist())

    def _similar(self, vector: Vectors, others: Sequence[ShownText]) -> _Similar:
        """Return the places of those of ``others`` that are within rounding of `SIMILARITY` or above, and how similar.

        Those of the last text are kept among all texts: a menu asks for every text at every subtopic.
        """
        every = others is self._texts
        if every and self._last is not None and self._last[0] is vector:
            return self._last[1]
        matrix = self._matrix if every else self._vectors.matrix(tuple(each.text for each in others))
        similarities = matrix @ vector
        places = np.flatnonzero(similarities > SIMILARITY - 2 * SIMILARITY_TOLERANCE)
        found = places, similarities[places]
        if every:
            self._last = vector, found
        return found

    @cached_property
    def _matrix(self) -> Vectors:
        """Vectors of all texts of a lasting tree. They are the tree's own, so no batch changes them."""
        return self._vectors.matrix(tuple(each.text for each in self._texts))
