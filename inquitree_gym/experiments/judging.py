"""How well a judge judges: conclusions of known worth."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from inquitree_gym.concluding import Judge
from inquitree_gym.errors import OptionError
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


class ConclusionSet(BaseModel):
    """The calibration conclusions of one tree."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tree: str
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


def load_conclusions(folder: str | os.PathLike[str]) -> list[ConclusionSet]:
    """Read every conclusion set of a folder, in paper order.

    Raises:
        OptionError: the folder holds none, or a file is at fault.
    """
    sets = []
    for file in Path(folder).glob("*.json"):
        try:
            sets.append(ConclusionSet.model_validate_json(file.read_bytes()))
        except ValidationError as error:
            raise OptionError(f"'{file}' is no conclusion set: {error.errors()[0]['msg']}") from error
    if not sets:
        raise OptionError(f"no conclusion sets (*.json) in '{folder}'")
    return sorted(sets, key=lambda each: (len(each.tree), each.tree))


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
