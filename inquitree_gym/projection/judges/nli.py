"""The judge of projections by textual entailment in both orders."""

from __future__ import annotations

import re

import numpy as np

from inquitree_gym.judging.claims import MIN_CLAIM_WORDS, counted_claims
from inquitree_gym.judging.nli import CONTRADICTS_AT, ENTAILS_AT, ClaimRelation, Inference, Statement, relations
from inquitree_gym.projection.judges.alignment import ORDERS, Alignment
from inquitree_gym.projection.judges.pairing import paired_alignment
from inquitree_gym.text_limits import MAX_ACTION_LENGTH
from inquitree_gym.trees.disclosure import ProjectionTask

VERSION = 2
"""Version of the rule that turns probabilities into ratings. The weights have a digest of their own."""
_JOINT = re.compile(r";|,?\s+(?:and|but)\s+that\s|,\s+that\s|,?\s(?:whereas|while|although)\s", re.IGNORECASE)
"""Place where one claim of a sentence ends and the next begins."""


class NLIProjectionJudge:
    """Judge of projections by entailment: 1 if one claim entails the other, -1 if it contradicts it, else 0.

    The first order asks whether the projected claim entails the true one, contradicts it or entails one of its
    contraries. The second asks whether the true claim entails or contradicts the projected one. Claims are paired by
    the most probable of these relations, if its probability is at least `ENTAILS_AT`.
    """

    version = VERSION

    def __init__(self, task: ProjectionTask, inference: Inference) -> None:
        self.name = f"nli:{inference.name}"
        self._statements = [Statement((claim.text,), claim.contraries) for claim in task.claims]
        self._inference = inference

    def judge(self, projection: str) -> Alignment:
        """Align a projection with the true claims. See `ProjectionJudge.judge`.

        Raises:
            JudgeError: the model cannot be loaded or gives no probabilities.
        """
        size = len(self._statements)
        claims = projected_claims(projection, size)
        related = relations(self._inference, claims, self._statements)
        nearness = np.array([[max(each.strength, each.denied) for each in row] for row in related])
        ratings = np.array([[_ratings(each) for each in row] for row in related])
        return paired_alignment(
            claims,
            nearness.reshape(len(claims), size) - ENTAILS_AT,
            ratings.reshape(len(claims), size, ORDERS),
            lambda claim, index: f"{related[claim][index]}: {claims[claim]}",
        )


def projected_claims(projection: str, items: int) -> list[str]:
    """Return the claims of a projection about ``items`` true ones: its lines, sentences, and parts of these.

    >>> projected_claims("This study finds that salt slows the dough, and that yeast raises it.", 2)
    ['This study finds that salt slows the dough', 'yeast raises it']
    """
    lines = [line.strip() for line in projection[:MAX_ACTION_LENGTH].splitlines()]
    listed = "\n".join(f"- {line}" if len(lines) > 1 and line[:1].isalpha() else line for line in lines)
    pieces = (piece.strip().rstrip(".") for text in counted_claims(listed, items) for piece in _JOINT.split(text))
    return [piece for piece in pieces if len(piece.split()) >= MIN_CLAIM_WORDS]


def _ratings(relation: ClaimRelation) -> tuple[float, float]:
    """Return the ratings in both orders."""
    return _rating(relation.entails, relation.against), _rating(relation.follows, relation.denied)


def _rating(entailed: float, contradicted: float) -> float:
    if contradicted >= CONTRADICTS_AT and contradicted > entailed:
        return -1.0
    return 1.0 if entailed >= ENTAILS_AT else 0.0
