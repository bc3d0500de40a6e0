"""How well a judge judges: conclusions of known worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from inquitree_gym.concluding import Judge
from inquitree_gym.experiments.sets import CalibrationSet
from inquitree_gym.trees import Tree, load_tree

Kind = Literal["perfect", "partial", "contradicting", "padded", "hedged", "injected", "empty"]
KINDS: tuple[Kind, ...] = ("perfect", "partial", "contradicting", "padded", "hedged", "injected", "empty")


class Conclusion(BaseModel):
    """A conclusion and the scores that a fair reader gives its items."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    text: str
    expected: dict[str, float]
    """S per conclusion item: 1, 0.6 or 0."""


class ConclusionSet(CalibrationSet):
    """The calibration conclusions of one tree."""

    conclusions: tuple[Conclusion, ...]


class Judged(NamedTuple):
    """What a judge made of the conclusions of one tree: mean score by kind, in [0, 1]."""

    tree: str
    means: dict[str, float]
    error: float
    """Mean absolute difference to the expected scores, over all items of all kinds."""

    @property
    def holds(self) -> bool:
        """Whether perfect > partial > contradicting, padded ≤ perfect and injected ≤ empty."""
        means = self.means
        ordered = means["perfect"] > means["partial"] > means["contradicting"]
        return ordered and means["padded"] <= means["perfect"] and means["injected"] <= means["empty"]


def judge_set(conclusions: ConclusionSet, make_judge: Callable[[Tree], Judge]) -> Judged:
    """Put one tree's conclusions before a judge; an item left unscored counts as an error of 1."""
    tree = load_tree(conclusions.tree)
    judge = make_judge(tree)
    means: dict[str, float] = {}
    errors: list[float] = []
    for conclusion in conclusions.conclusions:
        scores = [verdict.score for verdict in judge.judge(conclusion.text)]
        expected = [conclusion.expected[item.id] for item in tree.conclusions]
        means[conclusion.kind] = float(np.mean([score or 0.0 for score in scores]))
        errors += [1.0 if s is None else abs(s - e) for s, e in zip(scores, expected, strict=True)]
    return Judged(tree.id, means, float(np.mean(errors)))
