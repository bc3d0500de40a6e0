"""Rules of acceptance that are fitted on all trees but one, and tried on that one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.results.statistics import Estimate, clustered_mean
from research.blind.readings import Reading

Numbers = NDArray[np.float64]
Scorer = Callable[[Sequence[Reading]], Numbers]
"""Gives every reading a score: the higher, the surer it means its nearest candidate."""
Fit = Callable[[Sequence[Reading]], Scorer]
PLACES = {"topic": (False,), "study": (True,), "both": (False, True)}


@dataclass(frozen=True, slots=True)
class TriedRule:
    """A rule on trees that it was not fitted on."""

    accepted: list[bool]
    """Whether it accepts each reading."""
    thresholds: dict[str, tuple[float, float]]
    """Lowest and highest threshold on its score, over the trees left out, by place."""
    scores: list[float]


def by_similarity(readings: Sequence[Reading]) -> Scorer:
    """Score a reading by its similarity."""
    return _similarities


def by_margin(readings: Sequence[Reading]) -> Scorer:
    """Fit a logistic regression of "means its nearest candidate" on similarity and margin."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=100.0).fit(_features(readings), _right(readings))
    return lambda new: np.asarray(model.predict_proba(_features(new))[:, 1], np.float64)


def by_outside_class(readings: Sequence[Reading]) -> Scorer:
    """Fit a softmax over all candidates and a constant, the class of what means none, by maximum likelihood.

    The score is the probability of the nearest candidate.
    """
    from scipy.optimize import minimize

    padded = _padded(readings)
    meant = np.zeros(padded.shape, bool)
    for row, each in zip(meant, readings, strict=True):
        row[[each.found.right, *each.found.also] if each.found.kind == "right" else -1] = True

    def loss(parameters: Numbers) -> float:
        return -float(np.log((_softmax(padded, parameters) * meant).sum(1)).mean())

    fitted: Numbers = minimize(loss, np.array([np.log(20.0), 0.5]), method="Nelder-Mead").x
    return lambda new: np.asarray(_softmax(_padded(new), fitted)[:, :-1].max(1), np.float64)


def try_rule(readings: Sequence[Reading], fit: Fit, *places: str) -> TriedRule:
    """Leave each tree out in turn: fit a rule and its threshold on the others, one for each of ``places``.

    ``places`` are ``both``, or ``topic`` and ``study``.
    """
    accepted, scores = np.zeros(len(readings), bool), np.zeros(len(readings))
    thresholds = {}
    trees = np.array([each.found.tree for each in readings])
    studies = np.array([each.found.is_study for each in readings])
    for place in places:
        found, here = [], np.isin(studies, PLACES[place])
        for tree in dict.fromkeys(trees.tolist()):
            parts = (here & (trees != tree), here & (trees == tree))
            others, left = ([readings[i] for i in np.flatnonzero(part).tolist()] for part in parts)
            scorer = fit(others)
            found.append(best_threshold(others, scorer(others)))
            scores[parts[1]] = scorer(left)
            accepted[parts[1]] = scores[parts[1]] >= found[-1]
        thresholds[place] = min(found), max(found)
    return TriedRule(accepted.tolist(), thresholds, scores.tolist())


def best_threshold(readings: Sequence[Reading], scores: Numbers) -> float:
    """Return the threshold on the scores with the best balance over the readings together.

    The balance is understood − (misread + foreign taken) / 2. Candidates lie midway between successive scores.
    """
    order = np.argsort(-scores)
    right, meant = _right(readings)[order], _meant(readings)[order]
    gain = right / meant.sum() - (meant & ~right) / meant.sum() / 2 - ~meant / (~meant).sum() / 2
    best = int(np.argmax(np.cumsum(gain)))
    edge = scores[order][best : best + 2]
    return float(edge.mean())


def balances(readings: Sequence[Reading], accepted: Sequence[bool], *, is_study: bool) -> dict[str, float]:
    """Return the balance at one place for each tree that has texts there that mean a node, and others."""
    trees = np.array([each.found.tree for each in readings])
    here = np.array([each.found.is_study == is_study for each in readings])
    meant = _meant(readings)
    worth = np.where(_right(readings), 1.0, -0.5) * np.array(accepted, float)
    found = {}
    for tree in dict.fromkeys(trees.tolist()):
        own, strange = (here & (trees == tree) & of for of in (meant, ~meant))
        if own.any() and strange.any():
            found[tree] = float(worth[own].mean() + worth[strange].mean())
    return found


def gain(found: Mapping[str, float], than: Mapping[str, float]) -> Estimate:
    """Return by how much balances are higher than those of another rule or reader, paired by tree."""
    return clustered_mean((tree, value - than[tree]) for tree, value in found.items())


def separation(readings: Sequence[Reading], scores: Sequence[float], *, is_study: bool) -> float:
    """Return the area under the ROC curve, in [0, 1]: scores of texts that mean a node over those that mean none."""
    from sklearn.metrics import roc_auc_score

    here = [each.found.is_study == is_study for each in readings]
    return float(roc_auc_score(_meant(readings)[here], np.array(scores)[here]))


def _similarities(readings: Sequence[Reading]) -> Numbers:
    return np.array([each.found.similarity for each in readings])


def _features(readings: Sequence[Reading]) -> Numbers:
    return np.array([[each.found.similarity, each.margin] for each in readings])


def _meant(readings: Sequence[Reading]) -> NDArray[np.bool_]:
    return np.array([each.found.kind == "right" for each in readings])


def _right(readings: Sequence[Reading]) -> NDArray[np.bool_]:
    return np.array([each.found.kind == "right" and each.found.right_node for each in readings])


def _padded(readings: Sequence[Reading]) -> Numbers:
    """Return a row of similarities for each reading, filled up with −∞, and a last column for the outside class."""
    rows = np.full((len(readings), max(len(each.similarities) for each in readings) + 1), -np.inf)
    for row, each in zip(rows, readings, strict=True):
        row[: len(each.similarities)] = each.similarities
    rows[:, -1] = 0
    return rows


def _softmax(padded: Numbers, parameters: Numbers) -> Numbers:
    """Return probabilities of the candidates and, last, of the outside class, whose similarity is the second parameter.

    The first parameter is the logarithm of the inverse temperature.
    """
    log_sharpness, outside = parameters
    powers = np.exp(log_sharpness) * (padded - outside)
    powers[:, -1] = 0
    powers = np.exp(powers - powers.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True), np.float64)
