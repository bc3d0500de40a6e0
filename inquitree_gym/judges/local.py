"""The local judge: split a conclusion into claims and compare them with the conclusion items, without any service.

Every claim is about the conclusion item that it is most similar to, by the item's text or by one of its false variants.
Its *sense* is the log-odds that it supports that item, a weighted sum of four features: similarity to the item's text
over its false variants, similarity over the item's text with a "not" inserted, shared words, and polarity. A claim in
the wrong sense contradicts the item, which then scores 0 whatever else is claimed. So a conclusion earns nothing for
naming the right subject, nor for padding. A claim asserts nothing if it leaves open which of two things holds, unless
its item does so too, or if it restates a question or study of the tree.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from inquitree_gym.embeddings import TreeVectors, load_embedder
from inquitree_gym.embeddings.local import MINILM
from inquitree_gym.embeddings.protocol import Vectors
from inquitree_gym.embeddings.vectors import Vector, claim_texts
from inquitree_gym.judges.quality import FULL, NOTHING, PARTIAL, Verdict
from inquitree_gym.matching import SIMILARITY_TOLERANCE, readable
from inquitree_gym.trees import Tree
from inquitree_gym.trees.schema import ConclusionItem

VERSION = 1
"""Version of the verdicts; a change that moves any of them raises it."""
JUDGE_EMBEDDER = MINILM
"""Embedder of the claims, whatever embedder reads the actions."""
CLAIM_AT = 0.6
"""Similarity from which a claim counts, for or against an item."""
ASKED_AT = 0.5
"""A claim asserts nothing if its distance (1 − similarity) to a question or study is below this share of its distance
to the nearest item."""
FULL_SENSE = 0.5
"""Sense from which a claim states its item in full rather than in part."""
CONTRADICTING_SENSE = 0.0
"""Sense below which a claim contradicts its item."""
MEANING_WEIGHT = 6.0
"""Log-odds per unit of `ClaimFeatures.meaning`."""
TURNING_WEIGHT = 14.0
"""Log-odds per unit of `ClaimFeatures.turning`."""
WORDING_WEIGHT = 0.4
"""Log-odds per word of `ClaimFeatures.wording`."""
POLARITY_WEIGHT = 1.6
"""Log-odds per unit of `ClaimFeatures.polarity`."""
CLAIMS_PER_ITEM = 2
"""Only the first 2|C| claims count."""
MIN_CLAIM_WORDS = 3
"""Shorter pieces are headings or numbers, not claims."""
TURNED_PLACES = 8
"""Number of places, evenly spread over an item's text, at which a "not" is inserted."""
COPIED = 0.9
"""Share of an item's words from which a claim is a copy of it; a copy of the other polarity contradicts the item."""
ADDED_WORDS = 8
"""Maximum of additional words in a copy, such as "there is no evidence that"."""
STEM_LETTERS = 5
"""Words with the same first letters, this many, count as the same word."""

_CACHED_TEXTS = 1_024
_CLOSEST = 0.1
"""Least distance by which a direction between two texts is scaled: below it, the direction is noise."""
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nothing|nobody|nowhere|neither|nor|cannot|without|hardly|barely|scarcely|rarely|seldom"
    r"|unable|absent|absence|fail\w*|lack\w*|instead|rather than"
    r"|false|untrue|wrong\w*|refut\w+|disprov\w+)\b|n['’]t\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    # "X, or Y" with nothing listed before it joins two clauses; "A, B, or C" is a list.
    r"^[^,;]*[,;] or\b"
    r"|[,;] or (?:it|they|there|each)\b"
    r"|\bor (?:else|possibly|perhaps|maybe|alternatively)\b"
    r"|\b(?:equally|just as) (?:possible|likely)\b"
    r"|\b(?:may|might|could) (?:it )?(?:equally|instead|(?:just )?as well)\b"
    r"|\bthe other way (?:a)?round\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")
_MARK = re.compile(r"^[^\S\n]*(?:\(?\d{1,3}[.):]|[-*•–])[^\S\n]+", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


class ClaimFeatures(NamedTuple):
    """Features of a claim in favour of an item's text; also the weight of each, in log-odds per unit."""

    meaning: float
    """Similarity to the item's text minus the highest to a false variant, in [-2, 2]."""
    turning: float
    """Projection on the direction from the item's text with a "not" inserted to the text itself, mean over places."""
    wording: float
    """Words shared with the item's text alone minus those shared with a false variant alone; minimum over variants."""
    polarity: float
    """Share of false variants with another polarity than the claim, minus 1 if the item's text has one; in [-1, 1]."""


WEIGHTS = ClaimFeatures(MEANING_WEIGHT, TURNING_WEIGHT, WORDING_WEIGHT, POLARITY_WEIGHT)


class _Match(NamedTuple):
    """A claim matched to its nearest item."""

    item: int
    similarity: float
    sense: float
    margin: float
    """Similarity to this item minus that to the second nearest."""
    novelty: float
    """Distance to the nearest question or study, minus `ASKED_AT` times the distance to the item."""


class LocalJudge:
    """Contrastive judge on local embeddings: the reward of the environments.

    Its constants are calibrated for the default embedder; see docs/validity.md.
    """

    name = "local"
    version = VERSION

    def __init__(self, vectors: TreeVectors, *, claim_at: float = CLAIM_AT, weights: ClaimFeatures = WEIGHTS) -> None:
        """Judge conclusions about one tree.

        Args:
            vectors: of the tree's texts.
            claim_at: cosine similarity from which a claim counts.
            weights: log-odds per unit of each feature.
        """
        self.vectors = vectors
        self._claim_at = claim_at
        self._weights = weights
        self._sense_tolerance = SIMILARITY_TOLERANCE * (2 * abs(weights.meaning) + abs(weights.turning))
        self._items = vectors.tree.conclusions

    def judge(self, conclusion: str) -> tuple[Verdict, ...]:
        """Return one verdict per conclusion item, in tree order."""
        best = [Verdict(NOTHING, "not claimed")] * len(self._items)
        contradicted: dict[int, Verdict] = {}
        for claim in self.claims(conclusion):
            match = self._match(claim)
            if not self._asserts(claim, match):
                continue
            why = f"similarity {match.similarity:.3f}, sense {match.sense:+.3f}: {claim[:120]}"
            if match.sense < CONTRADICTING_SENSE:
                contradicted[match.item] = Verdict(NOTHING, why)
                continue
            score = FULL if match.sense >= FULL_SENSE else PARTIAL
            if score > (best[match.item].score or NOTHING):
                best[match.item] = Verdict(score, why)
        return tuple(contradicted.get(i, verdict) for i, verdict in enumerate(best))

    def claims(self, conclusion: str) -> list[str]:
        """Return the claims that count, the first 2|C|; `judge` needs their vectors."""
        return split_claims(conclusion)[: CLAIMS_PER_ITEM * len(self._items)]

    def features(self, claim: str, item: int) -> ClaimFeatures:
        """Return the features of a claim for the item with this index."""
        return self._features(claim, self.vectors.of(claim), item)

    def _match(self, claim: str) -> _Match:
        match = self._nearest(claim, self.vectors.of(claim))
        if self._is_close(match) and self.vectors.is_rough(claim):
            # The last bits of a batched vector could decide, so embed the claim alone.
            match = self._nearest(claim, self.vectors.settle(claim))
        return match

    def _asserts(self, claim: str, match: _Match) -> bool:
        left_open = is_open(claim) and not is_open(self._items[match.item].text)
        return match.similarity >= self._claim_at and match.novelty >= 0 and not left_open

    def _is_close(self, match: _Match) -> bool:
        """Return whether rounding could change a decision."""
        by_sense = (match.sense - FULL_SENSE, match.sense - CONTRADICTING_SENSE)
        by_similarity = (match.margin, match.similarity - self._claim_at, match.novelty)
        return (
            min(map(abs, by_sense)) < self._sense_tolerance or min(map(abs, by_similarity)) < 2 * SIMILARITY_TOLERANCE
        )

    def _nearest(self, claim: str, vector: Vector) -> _Match:
        nearest = np.array([(texts @ vector).max() for texts in self._texts])
        index = int(np.argmax(nearest))
        return _Match(
            item=index,
            similarity=float(nearest[index]),
            sense=self._sense(claim, vector, index),
            margin=float(nearest[index] - np.delete(nearest, index).max(initial=-1.0)),
            novelty=float(1 - (self._questions @ vector).max() - ASKED_AT * (1 - nearest[index])),
        )

    def _sense(self, claim: str, vector: Vector, index: int) -> float:
        """Return the log-odds that a claim supports an item, negative for a negated copy of the item."""
        text = self._items[index].text
        features = self._features(claim, vector, index)
        sense = sum(weight * value for weight, value in zip(self._weights, features, strict=True))
        negates = is_copy(claim, text) and is_negated(claim) != is_negated(text)
        return -abs(sense) if negates else sense

    def _features(self, claim: str, vector: Vector, index: int) -> ClaimFeatures:
        own, *false = self._texts[index] @ vector
        return ClaimFeatures(
            meaning=float(own - max(false)),
            turning=float(self._turning[index] @ vector),
            wording=_wording(claim, self._items[index]),
            polarity=_polarity(claim, self._items[index]),
        )

    @cached_property
    def _texts(self) -> tuple[Vectors, ...]:
        """Vectors of each item's text, followed by its false variants."""
        return tuple(self.vectors.matrix((item.text, *item.false_variants)) for item in self._items)

    @cached_property
    def _questions(self) -> Vectors:
        """Vectors of the topic, the subtopics and the studies."""
        tree = self.vectors.tree
        return self.vectors.matrix((tree.topic, *(node.text for node in (*tree.subtopics, *tree.studies))))

    @cached_property
    def _turning(self) -> Vectors:
        """Mean direction from each item's text with a "not" inserted to the text itself, shape ``(items, dim)``."""
        turned = [turn(item.text) for item in self._items]
        rows = iter(self.vectors.stored(tuple(text for texts in turned for text in texts)))
        ways = [
            own - np.stack([next(rows) for _ in texts]) for (own, *_), texts in zip(self._texts, turned, strict=True)
        ]
        lengths = [np.maximum(np.linalg.norm(way, axis=1, keepdims=True), _CLOSEST) for way in ways]
        return np.stack([(way / length).mean(axis=0) for way, length in zip(ways, lengths, strict=True)])


@lru_cache(maxsize=64)
def local_judge(tree: Tree) -> LocalJudge:
    """Return the local judge of a tree with the embedder for which its constants are calibrated.

    Rewards and scores use it whatever embedder reads the actions, so that runs are comparable.
    """
    nodes = (node.text for node in (*tree.subtopics, *tree.studies))
    texts = (tree.topic, *nodes, *claim_texts(tree))
    return LocalJudge(TreeVectors(tree, load_embedder(JUDGE_EMBEDDER), texts=texts))


def split_claims(conclusion: str) -> list[str]:
    """Split a conclusion into claims: the sentences before its first number or bullet, then its list items.

    Questions are left out.
    """
    text = readable(conclusion)
    before, *items = _MARK.split(text)
    pieces = (*_SENTENCE_END.split(before), *items)
    claims = (" ".join(piece.split()) for piece in pieces)
    return [claim for claim in claims if len(claim.split()) >= MIN_CLAIM_WORDS and not claim.endswith("?")]


def turn(text: str) -> tuple[str, ...]:
    """Return copies of ``text`` with a "not" inserted, one for each of up to `TURNED_PLACES` places.

    >>> turn("Bread rises slowly")
    ('Bread not rises slowly', 'Bread rises not slowly')
    """
    words = text.split()
    last = max(1, len(words) - 1)
    places = sorted({round(place) for place in np.linspace(1, last, TURNED_PLACES)})
    return tuple(" ".join((*words[:place], "not", *words[place:])) for place in places)


@lru_cache(maxsize=_CACHED_TEXTS)
def is_open(claim: str) -> bool:
    """Return whether a claim leaves open which of two things holds.

    >>> is_open("The dough rises by yeast, or it may be the steam.")
    True
    >>> is_open("Yeast may make the dough rise, with sugar, warmth, or time.")
    False
    """
    return _OPEN.search(claim) is not None


@lru_cache(maxsize=_CACHED_TEXTS)
def is_negated(text: str) -> bool:
    """Return whether ``text`` has an odd number of negations."""
    return len(_NEGATION.findall(text)) % 2 == 1


def is_copy(claim: str, text: str) -> bool:
    """Return whether ``claim`` has nearly all words of ``text`` and few others."""
    words, said = _words(text), _words(claim)
    found = sum(word in said for word in words)
    return bool(words) and found >= COPIED * len(words) and len(said) <= len(words) + ADDED_WORDS


@lru_cache(maxsize=_CACHED_TEXTS)
def stems(text: str) -> frozenset[str]:
    """Return the first `STEM_LETTERS` letters of every word of ``text``, in lower case."""
    return frozenset(word[:STEM_LETTERS] for word in _words(text))


@lru_cache(maxsize=_CACHED_TEXTS)
def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))


def _polarity(claim: str, item: ConclusionItem) -> float:
    negated = is_negated(claim)
    unlike_false = sum(negated != is_negated(text) for text in item.false_variants) / len(item.false_variants)
    return unlike_false - (negated != is_negated(item.text))


def _wording(claim: str, item: ConclusionItem) -> float:
    said, own = stems(claim), stems(item.text)
    return float(min(len(said & own - false) - len(said & false - own) for false in map(stems, item.false_variants)))
