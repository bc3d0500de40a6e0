"""The local judge's sense of a claim, fitted anew without each tree: is it more than its own calibration set?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings import Embedder, tree_vectors
from inquitree_gym.judges import Leads, LocalJudge
from inquitree_gym.judges.local import WEIGHTS
from inquitree_gym.trees import load_tree
from research.validity.calibration import ConclusionSet, Judged, judge_set


class Claims(NamedTuple):
    """Claims of perfect and of contradicting conclusions, each beside the item that it was written for."""

    trees: tuple[str, ...]
    leads: NDArray[np.float64]
    """Shape ``(claims, 4)``, by the fields of `Leads`."""
    right: NDArray[np.bool_]
    """Whether it is of a perfect conclusion."""


class SenseCheck(NamedTuple):
    """How well the sense tells right claims from wrong ones."""

    claims: int
    in_force: float
    """AUC of the weights in force."""
    left_out: float
    """AUC of weights fitted without the tree of each claim."""
    fitted: Leads
    """Weights fitted on all trees."""
    judged: list[Judged]
    """Each tree judged with the weights fitted without it."""


def check_sense(sets: Sequence[ConclusionSet], embedder: Embedder) -> SenseCheck:
    """Fit the weights of the four leads without each tree in turn, and judge that tree with them."""
    from sklearn.metrics import roc_auc_score

    claims = _gather(sets, embedder)
    of_tree = {each.tree: np.array([tree == each.tree for tree in claims.trees]) for each in sets}
    weights = {tree: _fit(claims, ~mine) for tree, mine in of_tree.items()}
    left_out = np.zeros(len(claims.right))
    for tree, mine in of_tree.items():
        left_out[mine] = claims.leads[mine] @ np.array(weights[tree])
    return SenseCheck(
        claims=len(claims.right),
        in_force=float(roc_auc_score(claims.right, claims.leads @ np.array(WEIGHTS))),
        left_out=float(roc_auc_score(claims.right, left_out)),
        fitted=_fit(claims, np.ones(len(claims.right), np.bool_)),
        judged=[_judged(each, embedder, weights[each.tree]) for each in sets],
    )


def _judged(conclusions: ConclusionSet, embedder: Embedder, weights: Leads) -> Judged:
    return judge_set(conclusions, lambda tree: LocalJudge(tree_vectors(tree, embedder), weights=weights))


def _gather(sets: Sequence[ConclusionSet], embedder: Embedder) -> Claims:
    """Take every claim that states its item by place: claim k of those conclusions was written for item k."""
    found = []
    for each in sets:
        tree = load_tree(each.tree)
        judge = LocalJudge(tree_vectors(tree, embedder))
        for conclusion in each.conclusions:
            if conclusion.kind in ("perfect", "contradicting"):
                claims = zip(judge.claims(conclusion.text), range(len(tree.conclusions)), strict=True)
                found += [(tree.id, judge.leads(claim, k), conclusion.kind == "perfect") for claim, k in claims]
    trees, leads, right = zip(*found, strict=True)
    return Claims(trees, np.array(leads, np.float64), np.array(right))


def _fit(claims: Claims, among: NDArray[np.bool_]) -> Leads:
    """Fit log-odds without an intercept: with nothing on either side, a claim is as likely right as wrong."""
    from sklearn.linear_model import LogisticRegression

    leads = claims.leads[among]
    scale = leads.std(axis=0)
    fitted = LogisticRegression(fit_intercept=False).fit(leads / scale, claims.right[among])
    return Leads(*map(float, fitted.coef_[0] / scale))
