"""What a judge returns, and what a conclusion is worth by it (Eq. 8 and 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.engine import State
from inquitree_gym.trees import Tree

FULL, PARTIAL, NOTHING = 1.0, 0.6, 0.0
"""The three grades S of an item."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Score of one conclusion item, with its reason."""

    score: float | None
    """S: 1, 0.6 or 0, or a mean of such grades over repeats; None when the judge failed."""
    why: str
    """What is behind the score, for people: the claim and its similarity, or a model's reason."""


class Judge(Protocol):
    """Scores a conclusion against the items of one tree."""

    name: str

    def judge(self, conclusion: str) -> tuple[Verdict, ...]:
        """Return one verdict per conclusion item, in tree order."""


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
