"""Rewards of written conclusions, graded by the local judge when they are first handed in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.inquiry.arrays.tables import TreeTables
from inquitree_gym.inquiry.engine import State
from inquitree_gym.inquiry.judges.quality import conclusion_quality


def grade(tree: TreeTables, state: State, action: int, grades: NDArray[np.float64], first: int) -> float:
    """Return Q/|C| of the text of ``action`` in ``state``, and keep the grades of that text if the table has room.

    Args:
        tree: the tree and its judge.
        state: state of an inquiry that is over.
        action: the menu action that ended it.
        grades: grades of all trees. See `Grades`.
        first: place of the tree's first grade.
    """
    menu, judge = tree.menu, tree.runtime.judge
    concludes = action == menu.conclusion
    verdicts = judge.judge(menu.conclude(state) if concludes else menu.texts[action])
    unscored = any(verdict.score is None for verdict in verdicts)
    text = action + (menu.pattern(state) if concludes else 0)
    if text < tree.needs[2]:
        at = first + text * len(verdicts)
        grades[at : at + len(verdicts)] = [0.0 if unscored else verdict.score for verdict in verdicts]
    quality = conclusion_quality(tree.runtime.task, state.proven, verdicts, tree.runtime.rules.evidence)
    return 0.0 if quality is None else quality / len(verdicts)
