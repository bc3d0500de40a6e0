"""The same tree before the cutoff of one model and after that of another: a difference in differences.

Older papers may simply make easier trees. Where the cutoffs of two models lie apart, the papers between them were out
in time for the one model and not for the other, so that the trees are compared with themselves:

    value of model m on tree t  =  level of m + level of t + effect · [paper t appeared before the cutoff of m]

fitted by least squares. With two models the effect is the mean, over the trees between their cutoffs, of what the later
model does better there, minus the same over all other trees.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.scoring import Estimate
from inquitree_gym.scoring.statistics import FEWEST_TREES, quantile

_NOTHING_LEFT = 1e-9
"""Sum of squares below which levels of models and trees explain every side."""


class Sighting(NamedTuple):
    """One episode."""

    model: str
    tree: str
    before: bool
    """Whether the paper appeared before the cutoff of the model."""
    value: float


class Crossing(NamedTuple):
    """What it brings a model, on the same tree, that the paper appeared before its cutoff."""

    effect: Estimate
    """Of before − after; None where no tree lies on both sides. ``trees`` are those that do, ``episodes`` all that
    were compared. The interval is a jackknife over trees, t with one less degree of freedom than the fewer of the
    trees on both sides and the other trees; None where either are fewer than `FEWEST_TREES`."""
    others: int
    """Trees that lie on one side for every model."""
    models: int


def crossing(sightings: Iterable[Sighting]) -> Crossing:
    """Return the effect over all trees that two models or more have played."""
    groups: dict[tuple[str, str], list[Sighting]] = defaultdict(list)
    for each in sightings:
        groups[each.tree, each.model].append(each)
    by_tree: dict[str, list[Sighting]] = defaultdict(list)
    for (tree, _), found in groups.items():
        by_tree[tree].append(found[0]._replace(value=fmean(each.value for each in found)))
    compared = {tree: found for tree, found in by_tree.items() if len(found) > 1}
    table = [each for found in compared.values() for each in found]
    crossed = sum(len({each.before for each in found}) > 1 for found in compared.values())
    others = len(compared) - crossed
    effect = _effect(table) if crossed else None
    half = _half_width(table, crossed, others) if effect is not None else None
    low, high = (None, None) if effect is None or half is None else (effect - half, effect + half)
    episodes = sum(len(groups[each.tree, each.model]) for each in table)
    return Crossing(Estimate(effect, low, high, crossed, episodes), others, len({each.model for each in table}))


def _effect(table: Sequence[Sighting]) -> float | None:
    """Return the least-squares effect; None where the levels of models and trees explain every side."""
    before = np.array([each.before for each in table], np.float64)
    values = np.array([each.value for each in table], np.float64)
    levels = np.hstack([_indicators([each.model for each in table]), _indicators([each.tree for each in table])])
    left = before - levels @ np.linalg.lstsq(levels, before, rcond=None)[0]
    squares = float(left @ left)
    return None if squares < _NOTHING_LEFT else float(left @ values) / squares


def _half_width(table: Sequence[Sighting], crossed: int, others: int) -> float | None:
    """Return half the interval, from the effects with one tree left out at a time; None with too few trees."""
    if min(crossed, others) < FEWEST_TREES:
        return None
    trees = sorted({each.tree for each in table})
    found = [_effect([each for each in table if each.tree != tree]) for tree in trees]
    effects = np.array([effect for effect in found if effect is not None], np.float64)
    if len(effects) < len(trees):
        return None
    spread = math.sqrt((len(trees) - 1) / len(trees) * float(np.sum((effects - effects.mean()) ** 2)))
    return quantile(min(crossed, others) - 1) * spread


def _indicators(names: Sequence[str]) -> NDArray[np.float64]:
    """Return a column of zeros and ones per name, shape ``(names, different names)``."""
    _, places = np.unique(np.array(names), return_inverse=True)
    return np.asarray(np.eye(int(places.max()) + 1)[places], np.float64)
