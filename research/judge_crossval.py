"""Cross-validation of the local judge: its weights are fitted anew without each tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings import Embedder, tree_vectors
from inquitree_gym.judges.local import WEIGHTS, ClaimFeatures, LocalJudge
from inquitree_gym.trees import load_tree
from research.datasets import ConclusionSet
from research.judge_calibration import JudgedSet, judge_set


@dataclass(frozen=True, slots=True)
class LabelledClaims:
    """Claims of perfect and contradicting conclusions, each with the features of the item it was written for."""

    trees: tuple[str, ...]
    features: NDArray[np.float64]
    """Shape ``(claims, 4)``, by the fields of `ClaimFeatures`."""
    right: NDArray[np.bool_]
    """True for claims of perfect conclusions."""


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """Separation of right from wrong claims by the local judge."""

    claims: int
    in_force: float
    """AUC of the weights in force."""
    left_out: float
    """AUC of weights fitted without the tree of each claim."""
    fitted: ClaimFeatures
    """Weights fitted on all trees."""
    judged: list[JudgedSet]
    """Each tree judged with the weights fitted without it."""


def cross_validate(sets: Sequence[ConclusionSet], embedder: Embedder) -> CrossValidation:
    """Fit the weights without each tree in turn, and judge that tree with them."""
    from sklearn.metrics import roc_auc_score

    claims = _labelled_claims(sets, embedder)
    of_tree = {each.tree: np.array([tree == each.tree for tree in claims.trees]) for each in sets}
    weights = {tree: _fit(claims, ~mine) for tree, mine in of_tree.items()}
    left_out = np.zeros(len(claims.right))
    for tree, mine in of_tree.items():
        left_out[mine] = claims.features[mine] @ np.array(weights[tree])
    return CrossValidation(
        claims=len(claims.right),
        in_force=float(roc_auc_score(claims.right, claims.features @ np.array(WEIGHTS))),
        left_out=float(roc_auc_score(claims.right, left_out)),
        fitted=_fit(claims, np.ones(len(claims.right), np.bool_)),
        judged=[_judged(each, embedder, weights[each.tree]) for each in sets],
    )


def _judged(conclusions: ConclusionSet, embedder: Embedder, weights: ClaimFeatures) -> JudgedSet:
    return judge_set(conclusions, lambda tree: LocalJudge(tree_vectors(tree, embedder), weights=weights))


def _labelled_claims(sets: Sequence[ConclusionSet], embedder: Embedder) -> LabelledClaims:
    """Pair claims with items by position: claim k of these conclusions was written for item k."""
    found = []
    for each in sets:
        tree = load_tree(each.tree)
        judge = LocalJudge(tree_vectors(tree, embedder))
        for conclusion in each.conclusions:
            if conclusion.kind in ("perfect", "contradicting"):
                claims = zip(judge.claims(conclusion.text), range(len(tree.conclusions)), strict=True)
                found += [(tree.id, judge.features(claim, k), conclusion.kind == "perfect") for claim, k in claims]
    trees, features, right = zip(*found, strict=True)
    return LabelledClaims(trees, np.array(features, np.float64), np.array(right))


def _fit(claims: LabelledClaims, among: NDArray[np.bool_]) -> ClaimFeatures:
    """Fit a logistic regression without an intercept: a claim with all features 0 is as likely right as wrong."""
    from sklearn.linear_model import LogisticRegression

    features = claims.features[among]
    scale = features.std(axis=0)
    fitted = LogisticRegression(fit_intercept=False).fit(features / scale, claims.right[among])
    return ClaimFeatures(*map(float, fitted.coef_[0] / scale))
