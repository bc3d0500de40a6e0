"""Verdicts on conclusion items, and the quality of a conclusion (Eq. 8 and 9)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from inquitree_gym.inquiry.engine import State
    from inquitree_gym.inquiry.engine.rules import Evidence
    from inquitree_gym.trees import Tree
    from inquitree_gym.trees.document import ConclusionItem

FULL, PARTIAL, NOTHING = 1.0, 0.6, 0.0
"""Grades S of an item."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Score of one conclusion item, with the reason for it."""

    score: float | None
    """S: 1, 0.6 or 0, or a mean of such grades over repeats. None for an unscored item."""
    why: str
    """Claim with its relation to the item, or the reason that a model gave."""


class Judge(Protocol):
    """Judge of conclusions about one tree."""

    @property
    def name(self) -> str:
        """Name of the judge."""

    @property
    def version(self) -> int:
        """Version of its verdicts, from 1."""

    def judge(self, conclusion: str) -> tuple[Verdict, ...]:
        """Return one verdict per conclusion item, in tree order."""


def mean_score(verdicts: Collection[Verdict]) -> float | None:
    """Return the mean S of the items, in [0, 1]. None without verdicts or with an unscored item."""
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    return fmean(scores) if scores and len(scores) == len(verdicts) else None


def required(item: ConclusionItem, evidence: Evidence = "groups") -> tuple[tuple[str, ...], ...]:
    """Return the groups of results that ``item`` needs. With ``evidence="results"`` each result is a group."""
    if evidence == "groups":
        return item.needs
    return tuple((name,) for name in dict.fromkeys(name for group in item.needs for name in group))


def evidence_ratios(tree: Tree, proven: int, evidence: Evidence = "groups") -> NDArray[np.float64]:
    """Return p per conclusion item (Eq. 8): groups met by a true observation over all groups.

    Args:
        tree: the tree.
        proven: bit k is set if the true result of study k was observed.
        evidence: the rule of this name. With ``"results"`` every required result is a group of its own.

    Returns: shape ``(items,)``, values in [0, 1].
    """
    index = {study.id: k for k, study in enumerate(tree.studies)}
    needed = [required(item, evidence) for item in tree.conclusions]
    met = [[any(proven >> index[name] & 1 for name in group) for group in groups] for groups in needed]
    return np.array([sum(groups) / len(groups) for groups in met], np.float64)


def conclusion_quality(
    tree: Tree, proven: int, verdicts: tuple[Verdict, ...], evidence: Evidence = "groups"
) -> float | None:
    """Return Q = Σ p·S (Eq. 9), in [0, |C|], with p as in `evidence_ratios`. None if an item is unscored."""
    scores = [verdict.score for verdict in verdicts]
    if any(score is None for score in scores):
        return None
    return float(evidence_ratios(tree, proven, evidence) @ np.array(scores, np.float64))


def verdicts_reward(tree: Tree, state: State, verdicts: tuple[Verdict, ...], evidence: Evidence = "groups") -> float:
    """Return Q/|C| of verdicts, in [0, 1]. An unscored item adds nothing."""
    scored = tuple(Verdict(verdict.score or NOTHING, verdict.why) for verdict in verdicts)
    return (conclusion_quality(tree, state.proven, scored, evidence) or 0.0) / len(tree.conclusions)
