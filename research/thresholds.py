"""Acceptance thresholds: match proposals with known targets, and compare every threshold on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings import Embedder
from research.proposals import (
    PROPOSAL_KINDS,
    MatchedProposal,
    ProposalKind,
    ProposalSet,
    match_cases,
    matching_cases,
)

THRESHOLD_GRID = np.round(np.arange(0.20, 0.8001, 0.005), 3)
"""Candidate thresholds of a calibration."""


class Rates(NamedTuple):
    """Shares of proposals, in [0, 1], accepted and refused at one threshold."""

    threshold: float
    understood: float
    """Right proposals accepted at their target."""
    misread: float
    """Right proposals accepted at another node."""
    refused: float
    """Right proposals not accepted."""
    vague: float
    near_miss: float
    off_target: float
    foreign: float
    """Proposals of these kinds accepted anywhere."""

    @property
    def balance(self) -> float:
        """Youden's J: understood minus the mean of misread and the four shares wrongly accepted."""
        return self.understood - (self.misread + self.vague + self.near_miss + self.off_target + self.foreign) / 5


@dataclass(frozen=True, slots=True)
class LeftOutThreshold:
    """The best threshold on all trees but one, evaluated on that tree."""

    tree: str
    threshold: float
    understood: float
    balance: float


def match_all(sets: Sequence[ProposalSet], embedder: Embedder) -> list[MatchedProposal]:
    """Match every proposal to its nearest candidate."""
    return match_cases(matching_cases(sets), embedder)


def rates(matched: Sequence[MatchedProposal], threshold: float) -> Rates:
    """Return the rates at ``threshold``. A kind without proposals counts as never accepted."""
    right = [each for each in matched if each.kind == "right"]
    taken = [each for each in right if each.similarity >= threshold]
    understood = sum(each.right_node for each in taken) / len(right)
    misread = len(taken) / len(right) - understood
    wrongly = {kind: _accepted_share(matched, kind, threshold) for kind in PROPOSAL_KINDS[1:]}
    return Rates(threshold, understood, misread, 1 - understood - misread, **wrongly)


def sweep(matched: Sequence[MatchedProposal]) -> list[Rates]:
    """Return the rates at every threshold of `THRESHOLD_GRID`."""
    return [rates(matched, float(threshold)) for threshold in THRESHOLD_GRID]


def best_threshold(matched: Sequence[MatchedProposal]) -> float:
    """Return the threshold with the best balance, the middle one of several equally good ones."""
    curve = np.array([each.balance for each in sweep(matched)])
    best: NDArray[np.intp] = np.flatnonzero(curve >= curve.max() - 1e-12)
    return float(THRESHOLD_GRID[best[len(best) // 2]])


def leave_one_out(matched: Sequence[MatchedProposal]) -> list[LeftOutThreshold]:
    """Choose the threshold without each tree in turn, and evaluate it on that tree."""
    found = []
    for tree in dict.fromkeys(each.tree for each in matched):
        threshold = best_threshold([each for each in matched if each.tree != tree])
        at = rates([each for each in matched if each.tree == tree], threshold)
        found.append(LeftOutThreshold(tree, threshold, at.understood, at.balance))
    return found


def _accepted_share(matched: Sequence[MatchedProposal], kind: ProposalKind, threshold: float) -> float:
    similarities = [each.similarity for each in matched if each.kind == kind]
    return sum(value >= threshold for value in similarities) / len(similarities) if similarities else 0.0
