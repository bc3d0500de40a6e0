"""Conclusion text to scored items: the local contrastive judge (DESIGN section 8).

Every claim is read as the statement nearest to it among all conclusion items and all their false variants. A claim
nearest to an item's own text credits that item; one nearest to a false variant contradicts it; the item then scores 0
whatever else is said. So credit needs the right sense, not only the right subject, and padding earns nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.engine import State
from inquitree_gym.matching import readable
from inquitree_gym.trees import Tree

FULL, PARTIAL, NOTHING = 1.0, 0.6, 0.0
"""The three grades S of an item."""
FULL_AT = 0.75
"""Similarity from which a claim states its item in full; see docs/calibration.md."""
PARTIAL_AT = 0.55
"""Similarity from which a claim counts at all, for or against."""
CLAIMS_PER_ITEM = 2
"""Only the first 2|C| claims count."""
MIN_CLAIM_WORDS = 3
"""Shorter pieces are headings or numbers, not claims."""

_MARK = re.compile(r"^\s*(?:\(?\d{1,3}[.):]|[-*•–])\s+", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


class Verdict(NamedTuple):
    """What a judge found for one conclusion item."""

    score: float | None
    """S: 1, 0.6 or 0; None when the judge failed."""
    why: str
    """The claim and similarity behind the score, for people."""


class Judge(Protocol):
    """Scores a conclusion against the items of one tree."""

    name: str

    def judge(self, conclusion: str) -> tuple[Verdict, ...]:
        """Return one verdict per conclusion item, in tree order."""


class LocalJudge:
    """The contrastive judge on local embeddings; needs no service and gives the env its reward."""

    name = "local"

    def __init__(self, vectors: TreeVectors, *, full_at: float = FULL_AT, partial_at: float = PARTIAL_AT) -> None:
        """Judge conclusions about the tree of ``vectors``; thresholds are cosine similarities."""
        self._vectors = vectors
        self._full_at = full_at
        self._partial_at = partial_at
        items = vectors.tree.conclusions
        self._statements = [(i, True, item.text) for i, item in enumerate(items)]
        self._statements += [(i, False, text) for i, item in enumerate(items) for text in item.false_variants]

    def judge(self, conclusion: str) -> tuple[Verdict, ...]:
        """Return one verdict per conclusion item, in tree order."""
        items = len(self._vectors.tree.conclusions)
        best = [Verdict(NOTHING, "not claimed")] * items
        contradicted: dict[int, Verdict] = {}
        for claim in split_claims(conclusion)[: CLAIMS_PER_ITEM * items]:
            index, true, similarity = self._nearest(claim)
            if similarity < self._partial_at:
                continue
            score = FULL if similarity >= self._full_at else PARTIAL
            why = f"{similarity:.3f} to {'the item' if true else 'its false variant'}: {claim[:120]}"
            if not true:
                contradicted[index] = Verdict(NOTHING, why)
            elif score > (best[index].score or 0):
                best[index] = Verdict(score, why)
        return tuple(contradicted.get(i, verdict) for i, verdict in enumerate(best))

    def _nearest(self, claim: str) -> tuple[int, bool, float]:
        statements = self._vectors.matrix(tuple(text for _, _, text in self._statements))
        similarities = statements @ self._vectors.of(claim)
        nearest = int(np.argmax(similarities))
        index, true, _ = self._statements[nearest]
        return index, true, float(similarities[nearest])


def split_claims(conclusion: str) -> list[str]:
    """Split a conclusion into claims: its numbered or bulleted items, or its sentences where it has none."""
    text = readable(conclusion)
    pieces = _MARK.split(text)[1:] if _MARK.search(text) else _SENTENCE_END.split(text)
    claims = (" ".join(piece.split()) for piece in pieces)
    return [claim for claim in claims if len(claim.split()) >= MIN_CLAIM_WORDS]


def evidence_ratios(tree: Tree, proven: int) -> NDArray[np.float64]:
    """Return p per conclusion item (Eq. 8): groups met by a true observation over all groups.

    ``proven`` has bit k set when the true result of study k was observed. Shape ``(items,)``, values in [0, 1].
    """
    index = {study.id: k for k, study in enumerate(tree.studies)}
    met = [[any(proven >> index[name] & 1 for name in group) for group in item.needs] for item in tree.conclusions]
    return np.array([sum(groups) / len(groups) for groups in met], np.float64)


def conclusion_quality(tree: Tree, proven: int, verdicts: tuple[Verdict, ...]) -> float | None:
    """Return Q = Σ p·S (Eq. 9), in [0, |C|]; None when an item is unscored."""
    scores = [verdict.score for verdict in verdicts]
    if any(score is None for score in scores):
        return None
    return float(evidence_ratios(tree, proven) @ np.array(scores, np.float64))


def conclusion_reward(judge: Judge, tree: Tree, state: State, conclusion: str) -> float:
    """Return Q/|C| in [0, 1]: the reward of the bare environment at the end of an episode."""
    quality = conclusion_quality(tree, state.proven, judge.judge(conclusion))
    return 0.0 if quality is None else quality / len(tree.conclusions)
