"""The judge of conclusions by textual entailment: a cross-encoder compares claims with items."""

from __future__ import annotations

from inquitree_gym.inquiry.judges.quality import FULL, NOTHING, PARTIAL, Verdict
from inquitree_gym.judging.claims import counted_claims
from inquitree_gym.judging.nli import CONTRADICTS_AT, ENTAILS_AT, ClaimRelation, Inference, Statement, relations
from inquitree_gym.trees import Tree
from inquitree_gym.trees.worlds import TreeInWorld, told_as

VERSION = 2
"""Version of the rule that turns claims into grades. The weights have a digest."""


class NLIJudge:
    """Judge by entailment: 1 if a claim entails the item, 0.6 if it follows from the item, 0 if it is against it.

    Each claim that counts (see `counted_claims`) is assigned to its most strongly related item. A single claim against
    an item sets its score to 0.
    """

    def __init__(self, tree: Tree | TreeInWorld, inference: Inference) -> None:
        self.name = f"nli:{inference.name}"
        self.version = VERSION
        self._items = [Statement((item.text,), item.others) for item in told_as(tree).conclusions]
        self._inference = inference

    def judge(self, conclusion: str) -> tuple[Verdict, ...]:
        """Return one verdict per conclusion item, in tree order."""
        claims = counted_claims(conclusion, len(self._items))
        found = [Verdict(NOTHING, "not claimed")] * len(self._items)
        against: set[int] = set()
        for claim, related in zip(claims, relations(self._inference, claims, self._items), strict=True):
            index = max(range(len(related)), key=lambda i: related[i].strength)
            grade = _grade(related[index])
            if grade is None or index in against:
                continue
            if grade == NOTHING:
                against.add(index)
            if grade == NOTHING or grade > (found[index].score or NOTHING):
                found[index] = Verdict(grade, f"{related[index]}: {claim}")
        return tuple(found)


def _grade(relation: ClaimRelation) -> float | None:
    """Return S of an item by one claim alone. None for a claim without bearing on it."""
    if relation.against >= CONTRADICTS_AT and relation.against > relation.entails:
        return NOTHING
    if relation.entails >= ENTAILS_AT:
        return FULL
    return PARTIAL if relation.follows >= ENTAILS_AT else None
