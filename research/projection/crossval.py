"""Cross-validation by paper: thresholds and weights of the local judge of projections, chosen on the other papers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.projection.judges.local import PROJECTION_SETTINGS, LocalProjectionSettings
from inquitree_gym.projection.tasks import load_task
from research.kappa import cohen_kappa
from research.projection.measures import Judged, judge_set, judge_with, other_outcomes_f1
from research.projection.projections import ProjectionSet

PAIR_AT = (0.2, 0.25, 0.3)
ABOUT_AT = (0.44, 0.47)
MOST_INVENTED = 0.05
"""Maximum mean F1 of other papers' outcomes at which a threshold can be chosen."""

Floats = NDArray[np.float64]


class Measured(NamedTuple):
    """Results of one setting on one paper."""

    judged: list[Judged]
    other: float
    """Mean F1 of the outcomes of all other papers."""


def leave_papers_out(sets: Sequence[ProjectionSet], report: Callable[[str], None]) -> list[Judged]:
    """Judge every labelled projection with thresholds and weights that were chosen on the other papers."""
    grid = [PROJECTION_SETTINGS._replace(pair_at=pair, about_at=about) for pair, about in product(PAIR_AT, ABOUT_AT)]
    found = {}
    for settings in grid:
        report(f"pair_at {settings.pair_at:g}, about_at {settings.about_at:g}")
        found[settings] = list(_measure_all(sets, settings))
    parts = [_sense_samples(each) for each in sets]
    judged: list[Judged] = []
    for left in range(len(sets)):
        rest = [k for k in range(len(sets)) if k != left]
        settings = _weighted(chosen(found, rest), [parts[k] for k in rest])
        judged += judge_set(sets[left], judge_with(load_task(sets[left].tree), settings))
    return judged


def chosen(found: dict[LocalProjectionSettings, list[Measured]], papers: Sequence[int]) -> LocalProjectionSettings:
    """Return the setting with the highest κ on ``papers`` among those that give other papers' outcomes little credit.

    If none of them does, return the one that gives least.
    """
    invented = {settings: np.mean([rows[k].other for k in papers]) for settings, rows in found.items()}
    allowed = [each for each in found if invented[each] <= MOST_INVENTED] or [min(found, key=lambda s: invented[s])]
    return max(allowed, key=lambda each: kappa(row for k in papers for row in found[each][k].judged) or 0.0)


def kappa(rows: Sequence[Judged] | Iterator[Judged]) -> float | None:
    """Return Cohen's κ of ratings and labels: same, opposed, neither."""
    return cohen_kappa(
        (str(rating), str(label)) for row in rows for rating, label in zip(row.ratings, row.labels, strict=True)
    )


def _measure_all(sets: Sequence[ProjectionSet], settings: LocalProjectionSettings) -> Iterator[Measured]:
    tasks = [load_task(each.tree) for each in sets]
    for each, task in zip(sets, tasks, strict=True):
        judge = judge_with(task, settings)
        yield Measured(judge_set(each, judge), other_outcomes_f1(judge, tasks))


def _sense_samples(found: ProjectionSet) -> tuple[Floats, list[bool]]:
    """Return the parts of the sense of each written claim with a direction, shape (n, 4), and whether it is right."""
    judge = judge_with(load_task(found.tree))
    parts, right = [], []
    for each in found.projections:
        if each.kind in ("perfect", "half", "reversed"):
            alignment, labels = judge.judge(each.text), each.ratings(judge.task)
            for i, text in enumerate(alignment.analogous):
                if text is not None and labels[i] and alignment.pairs[i]:
                    parts.append(judge.sense_parts(text)[:, i])
                    right.append(labels[i] > 0)
    return np.array(parts).reshape(-1, 4), right


def _weighted(
    settings: LocalProjectionSettings, samples: Sequence[tuple[Floats, list[bool]]]
) -> LocalProjectionSettings:
    """Return the settings with weights of a logistic regression on the samples."""
    from sklearn.linear_model import LogisticRegression

    parts = np.concatenate([each for each, _ in samples])
    scale = parts.std(axis=0)
    right = [label for _, labels in samples for label in labels]
    fitted = LogisticRegression(C=0.5, fit_intercept=False).fit(parts / scale, right)
    plain, adapted, words, direction = (fitted.coef_[0] / scale).tolist()
    return settings._replace(
        plain_weight=plain, adapted_weight=adapted, wording_weight=words, direction_weight=direction
    )
