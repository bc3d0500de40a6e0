"""Conclusion text to scored items: the local contrastive judge (DESIGN section 8).

Every claim is taken to speak of the conclusion item that it is nearest to, by the item's own text or by one of its
false variants. Its sense, the log-odds that it supports that item, weighs four leads of the own text: in meaning over
the false variants, in meaning over itself with a "not" put in, in words, and in polarity. A claim in the wrong sense
contradicts the item, which then scores 0 whatever else is said; so credit needs the right sense, not only the right
subject, and padding earns nothing. Two kinds of claims assert nothing: one that leaves open which of two things holds,
unless its item is so itself, and one that restates what the tree asks or does.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from inquitree_gym.embeddings import DEFAULT_EMBEDDER, TreeVectors, load_embedder, tree_vectors
from inquitree_gym.embeddings.protocol import Vectors
from inquitree_gym.embeddings.vectors import Vector
from inquitree_gym.judges.claims import is_copy, is_negated, is_open, split_claims, stems, turn
from inquitree_gym.judges.quality import FULL, NOTHING, PARTIAL, Verdict
from inquitree_gym.matching import SIMILARITY_TOLERANCE
from inquitree_gym.trees import Tree
from inquitree_gym.trees.schema import ConclusionItem

CLAIM_AT = 0.6
"""Similarity from which a claim counts at all, for or against an item."""
ASKED_AT = 0.5
"""Distance (1 − similarity) to a question or study of its tree, as a share of that to the nearest item, below which a
claim restates it, and so asserts nothing."""
FULL_SENSE = 0.5
"""Sense from which a claim states its item in full; below it, and not contradicting, it does so in part."""
CONTRADICTING_SENSE = 0.0
"""Sense below which a claim contradicts its item: it is likelier wrong than right."""
MEANING_WEIGHT = 6.0
"""Log-odds per unit of similarity by which the own text leads over the nearest false variant."""
TURNING_WEIGHT = 14.0
"""Log-odds per unit of similarity on the way from the own text with a "not" to the own text."""
WORDING_WEIGHT = 0.4
"""Log-odds per word shared with the own text alone, against one shared with a false variant alone."""
POLARITY_WEIGHT = 1.6
"""Log-odds for having the own text's polarity, an odd or even number of negations, and no false variant's."""
CLAIMS_PER_ITEM = 2
"""Only the first 2|C| claims count."""

_CLOSEST = 0.1
"""Distance below which two texts are not told apart by direction: the rest would be noise."""


class Leads(NamedTuple):
    """How far a claim sides with an item's own text; or the weight of each, in log-odds per unit."""

    meaning: float
    """Similarity to the own text minus the highest to a false variant, in [-2, 2]."""
    turning: float
    """Similarity along the way from the own text with a "not" put in to the own text, mean over the places."""
    wording: float
    """Words shared with the own text and not the false variant, minus the reverse; the least over the variants."""
    polarity: float
    """How much more often the claim's polarity is that of the own text than of the false variants, in [-1, 1]."""


WEIGHTS = Leads(MEANING_WEIGHT, TURNING_WEIGHT, WORDING_WEIGHT, POLARITY_WEIGHT)


class _Heard(NamedTuple):
    """What a claim was understood as."""

    item: int
    """Index of the item that it speaks of."""
    similarity: float
    sense: float
    lead: float
    """In similarity, of this item over the second."""
    asked: float
    """Distance to the nearest question or study of the tree, beyond `ASKED_AT` times that to the item."""


class LocalJudge:
    """The contrastive judge on local embeddings; needs no service and gives the env its reward.

    Its constants are calibrated for the default embedder; docs/validity.md has the evidence.
    """

    name = "local"

    def __init__(self, vectors: TreeVectors, *, claim_at: float = CLAIM_AT, weights: Leads = WEIGHTS) -> None:
        """Judge conclusions about the tree of ``vectors``.

        Args:
            vectors: of the tree's texts.
            claim_at: cosine similarity from which a claim counts.
            weights: log-odds per unit of each lead.
        """
        self.vectors = vectors
        self._claim_at = claim_at
        self._weights = weights
        self._near = SIMILARITY_TOLERANCE * (2 * abs(weights.meaning) + abs(weights.turning))
        self._items = vectors.tree.conclusions

    def judge(self, conclusion: str) -> tuple[Verdict, ...]:
        """Return one verdict per conclusion item, in tree order."""
        best = [Verdict(NOTHING, "not claimed")] * len(self._items)
        contradicted: dict[int, Verdict] = {}
        for claim in self.claims(conclusion):
            index, similarity, sense = (heard := self._understand(claim))[:3]
            if not self._asserts(claim, heard):
                continue
            why = f"similarity {similarity:.3f}, sense {sense:+.3f}: {claim[:120]}"
            if sense < CONTRADICTING_SENSE:
                contradicted[index] = Verdict(NOTHING, why)
                continue
            score = FULL if sense >= FULL_SENSE else PARTIAL
            if score > (best[index].score or NOTHING):
                best[index] = Verdict(score, why)
        return tuple(contradicted.get(i, verdict) for i, verdict in enumerate(best))

    def claims(self, conclusion: str) -> list[str]:
        """Return the claims that count, whose vectors `judge` needs: the first 2|C|."""
        return split_claims(conclusion)[: CLAIMS_PER_ITEM * len(self._items)]

    def leads(self, claim: str, item: int) -> Leads:
        """Return how far a claim sides with the item of this index."""
        return self._leads(claim, self.vectors.of(claim), item)

    def _understand(self, claim: str) -> _Heard:
        heard = self._measure(claim, self.vectors.of(claim))
        if self._is_close(heard) and self.vectors.is_rough(claim):
            # Its last bits, which depend on a batch, could decide.
            heard = self._measure(claim, self.vectors.settle(claim))
        return heard

    def _asserts(self, claim: str, heard: _Heard) -> bool:
        """Tell whether a claim says something of its item, for or against it."""
        left_open = is_open(claim) and not is_open(self._items[heard.item].text)
        return heard.similarity >= self._claim_at and heard.asked >= 0 and not left_open

    def _is_close(self, heard: _Heard) -> bool:
        """Tell whether anything is decided by so little that rounding could decide it."""
        by_sense = (heard.sense - FULL_SENSE, heard.sense - CONTRADICTING_SENSE)
        by_similarity = (heard.lead, heard.similarity - self._claim_at, heard.asked)
        return min(map(abs, by_sense)) < self._near or min(map(abs, by_similarity)) < 2 * SIMILARITY_TOLERANCE

    def _measure(self, claim: str, vector: Vector) -> _Heard:
        nearest = np.array([(texts @ vector).max() for texts in self._texts])
        index = int(np.argmax(nearest))
        return _Heard(
            item=index,
            similarity=float(nearest[index]),
            sense=self._sense(claim, vector, index),
            lead=float(nearest[index] - np.delete(nearest, index).max(initial=-1.0)),
            asked=float(1 - (self._questions @ vector).max() - ASKED_AT * (1 - nearest[index])),
        )

    def _sense(self, claim: str, vector: Vector, index: int) -> float:
        """Return the log-odds that a claim supports an item; they are against it where it negates a copy of it."""
        text = self._items[index].text
        sense = sum(
            weight * lead for weight, lead in zip(self._weights, self._leads(claim, vector, index), strict=True)
        )
        negates = is_copy(claim, text) and is_negated(claim) != is_negated(text)
        return -abs(sense) if negates else sense

    def _leads(self, claim: str, vector: Vector, index: int) -> Leads:
        own, *false = self._texts[index] @ vector
        return Leads(
            meaning=float(own - max(false)),
            turning=float(self._turning[index] @ vector),
            wording=_wording(claim, self._items[index]),
            polarity=_polarity(claim, self._items[index]),
        )

    @cached_property
    def _texts(self) -> tuple[Vectors, ...]:
        """Per item the vectors of its own text and, after it, of its false variants."""
        return tuple(self.vectors.matrix((item.text, *item.false_variants)) for item in self._items)

    @cached_property
    def _questions(self) -> Vectors:
        """Vectors of what the tree asks and does: topic, subtopics, studies."""
        tree = self.vectors.tree
        return self.vectors.matrix((tree.topic, *(node.text for node in (*tree.subtopics, *tree.studies))))

    @cached_property
    def _turning(self) -> Vectors:
        """Per item the mean direction from its text with a "not" to its text, shape ``(items, dim)``."""
        turned = [turn(item.text) for item in self._items]
        rows = iter(self.vectors.stored(tuple(text for texts in turned for text in texts)))
        ways = [
            own - np.stack([next(rows) for _ in texts]) for (own, *_), texts in zip(self._texts, turned, strict=True)
        ]
        lengths = [np.maximum(np.linalg.norm(way, axis=1, keepdims=True), _CLOSEST) for way in ways]
        return np.stack([(way / length).mean(axis=0) for way, length in zip(ways, lengths, strict=True)])


@lru_cache(maxsize=64)
def local_judge(tree: Tree) -> LocalJudge:
    """Return the local judge of a tree, for rewards and scores alike.

    It works with the default embedder, whatever reads the actions: its constants are calibrated for that, and runs
    compare.
    """
    return LocalJudge(tree_vectors(tree, load_embedder(DEFAULT_EMBEDDER)))


def _polarity(claim: str, item: ConclusionItem) -> float:
    negated = is_negated(claim)
    unlike_false = sum(negated != is_negated(text) for text in item.false_variants) / len(item.false_variants)
    return unlike_false - (negated != is_negated(item.text))


def _wording(claim: str, item: ConclusionItem) -> float:
    said, own = stems(claim), stems(item.text)
    return float(min(len(said & own - false) - len(said & false - own) for false in map(stems, item.false_variants)))
