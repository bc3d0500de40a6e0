"""Sense of a claim about statements: how near it is to each, and whether it says the statement or a contrary.

The local judge of projections compares claims by their sense. It combines the contrast of the
distances to both sides, in both spaces of the judge's embedder, with the words shared with one side only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings.registry import JUDGE
from inquitree_gym.judging.claims import is_copy, is_negated, is_rejection, quoted_side, states_both, wording
from inquitree_gym.log.records import SIMILARITY_TOLERANCE

if TYPE_CHECKING:
    from inquitree_gym.embeddings import TextVectors
    from inquitree_gym.embeddings.protocol import Vectors
    from inquitree_gym.embeddings.vectors import Vector

JUDGE_EMBEDDER = JUDGE
"""Embedder of the claims, whatever embedder reads the actions."""

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_LEAST = 0.02
"""Smallest sum of two distances by which a contrast is divided. Below it, the difference of the distances is noise."""


class Statement(NamedTuple):
    """A statement with a true and a false side: texts that say it, and texts that say something else in its place."""

    true: tuple[str, ...]
    false: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """All its texts."""
        return self.true + self.false


class SenseWeights(NamedTuple):
    """Weights of the parts of a sense, calibrated for `JUDGE_EMBEDDER`."""

    plain: float = 2.0
    """Weight of the contrast in MiniLM's space."""
    adapted: float = 6.0
    """Weight of the contrast in the space of the judge's adapter."""
    wording: float = 0.35
    """Weight per word that is shared with one side alone."""


class Comparison(NamedTuple):
    """A claim compared with statements. Each array has one element per statement."""

    similarity: Floats
    """Cosine similarity in MiniLM's space to the nearest text of either side."""
    adapted: Floats
    """Cosine similarity in the space of the judge's adapter to the nearest text of either side."""
    sense: Floats
    """Positive where the claim takes the true side, negative where it takes the false one."""
    asked: float
    """Cosine similarity in MiniLM's space to the nearest question."""


class SenseReader:
    """Compares claims with statements that have a true and a false side.

    The weights are calibrated for the embedder ``inquitree-judge-1``. Another embedder serves for both of its spaces.
    """

    def __init__(
        self,
        vectors: TextVectors,
        statements: Sequence[Statement],
        questions: tuple[str, ...],
        weights: SenseWeights | None = None,
    ) -> None:
        """Prepare the comparison with statements, which have texts on both sides, and with questions.

        ``vectors`` holds the vectors of all these texts.
        """
        self.vectors = vectors
        self.statements = tuple(statements)
        self._question_texts = questions
        self._weights = weights or SenseWeights()
        self.scale = max(1.0, 2 * (self._weights.plain + self._weights.adapted) / _LEAST)
        """Change of the sense per unit of similarity, at most."""

    def compare(self, claim: str, vector: Vector) -> Comparison:
        """Compare one claim, whose vector is given, with all statements and questions."""
        plain, adapted = _spaces(vector, self.vectors.embedder.name)
        texts, adapted_texts = self._texts
        true, false = self._by_side(texts @ plain)
        true_adapted, false_adapted = self._by_side(adapted_texts @ adapted)
        weights = self._weights
        sense = weights.plain * _contrast(true, false) + weights.adapted * _contrast(true_adapted, false_adapted)
        return Comparison(
            similarity=np.maximum(true, false),
            adapted=np.maximum(true_adapted, false_adapted),
            sense=self.turned(claim, sense + weights.wording * self.wordings(claim)),
            asked=float((self._questions @ plain).max()),
        )

    def sides(self, claim: str, spoken_of: Bools) -> tuple[Bools, NDArray[np.str_]]:
        """Return which statements a claim states on both sides, and the side of each that it quotes ("" for none).

        Only the statements in ``spoken_of`` are considered.
        """
        pairs = list(zip(spoken_of, self.statements, strict=True))
        both = np.array([bool(is_about) and states_both(claim, *each) for is_about, each in pairs])
        return both, np.array([quoted_side(claim, *each) or "" if is_about else "" for is_about, each in pairs])

    def turned(self, claim: str, sense: Floats) -> Floats:
        """Return the sense, its sign corrected for claims that reject a statement, or add or drop a "not" in it."""
        if is_rejection(claim):
            return -sense
        negated = is_negated(claim)
        texts = (each.true[0] for each in self.statements)
        turned = [negated != is_negated(text) and is_copy(claim, text) for text in texts]
        return np.where(turned, -np.abs(sense), sense)

    def leanings(self, vector: Vector) -> Floats:
        """Return how far a claim lies from the first false text towards the true one, shape (2, statements).

        It is the cosine of the claim's vector with the difference of the two texts' vectors, in MiniLM's space and the
        adapter's. Unlike `Comparison.sense`, it does not depend on what the claim shares with both texts.
        """
        spaces = zip(_spaces(vector, self.vectors.embedder.name), self._differences, strict=True)
        return np.stack([differences @ claim for claim, differences in spaces])

    @cached_property
    def _differences(self) -> tuple[Floats, Floats]:
        """Vectors of unit length from the first false text of each statement to its first true text, in both spaces."""
        true, false = self._starts[::2], self._starts[1::2]
        plain, adapted = (_scaled(texts[true] - texts[false]) for texts in self._texts)
        return plain, adapted

    def wordings(self, claim: str) -> Floats:
        """Return how many words a claim shares with the true side alone of each statement. See `wording`."""
        return np.array([wording(claim, each.true[0], each.false) for each in self.statements])

    def _by_side(self, similarities: Floats) -> tuple[Floats, Floats]:
        """Return the highest similarity to a true and to a false text of each statement."""
        sides = np.maximum.reduceat(similarities, self._starts)
        return sides[::2], sides[1::2]

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        """Index of the first text of each side of each statement, true before false."""
        sizes = [len(side) for each in self.statements for side in each]
        return np.cumsum([0, *sizes[:-1]])

    @cached_property
    def _texts(self) -> tuple[Floats, Floats]:
        """Vectors of all texts of the statements in both spaces, in double precision."""
        texts = tuple(text for each in self.statements for text in each.texts)
        return _spaces(self.vectors.matrix(texts), self.vectors.embedder.name)

    @cached_property
    def _questions(self) -> Floats:
        """Vectors of the questions, in MiniLM's space."""
        return _spaces(self.vectors.matrix(self._question_texts), self.vectors.embedder.name)[0]


class _Heard(Protocol):
    """Comparison of a claim with thresholds."""

    @property
    def margin(self) -> float:
        """Least distance of a similarity or a scaled sense to a threshold."""


_H = TypeVar("_H", bound=_Heard)


def hear_surely(claim: str, vectors: TextVectors, hear: Callable[[Vector], _H]) -> _H:
    """Return the comparison of a claim. Embed the claim again alone if the last bits of its vector could matter."""
    heard = hear(vectors.of(claim))
    if heard.margin < 2 * SIMILARITY_TOLERANCE and vectors.is_rough(claim):
        heard = hear(vectors.settle(claim))
    return heard


def _contrast(true: Floats, false: Floats) -> Floats:
    """Return how much nearer the true side is than the false side, in [-1, 1]."""
    near, far = 1 - true, 1 - false
    return (far - near) / np.maximum(near + far, _LEAST)


def _spaces(rows: Vectors, embedder: str) -> tuple[Floats, Floats]:
    """Return vectors in MiniLM's space and in the adapter's, each of unit length."""
    halves = np.split(rows, 2, axis=-1) if embedder == JUDGE_EMBEDDER else (rows, rows)
    plain, adapted = (_scaled(half.astype(np.float64)) for half in halves)
    return plain, adapted


def _scaled(vectors: Floats) -> Floats:
    """Return vectors scaled to unit length. A zero vector stays zero."""
    scaled: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    return scaled
