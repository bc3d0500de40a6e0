"""Hand-written conclusions about the shipped trees, with expected scores: one JSON file per tree."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from inquitree_gym.errors import OptionError
from inquitree_gym.trees import Tree
from research.static.proposals import LabelledSet, load_sets

CONCLUSIONS = Path(__file__).parent / "conclusions"
"""Folder of the labelled conclusions."""

ConclusionKind = Literal["perfect", "partial", "contradicting", "padded", "hedged", "injected", "empty"]
CONCLUSION_KINDS: tuple[ConclusionKind, ...] = (
    "perfect", "partial", "contradicting", "padded", "hedged", "injected", "empty",
)  # fmt: skip

Scores = tuple[float | None, ...]
"""S per conclusion item, in tree order. None for an unscored item."""


class Conclusion(BaseModel):
    """A conclusion with the scores that a fair reader gives its items."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ConclusionKind
    text: str
    expected: dict[str, float]
    """S per conclusion item: 1, 0.6 or 0."""


class ConclusionSet(LabelledSet):
    """The conclusions about one tree, one of each kind."""

    conclusions: tuple[Conclusion, ...]

    def expected(self, tree: Tree) -> dict[str, Scores]:
        """Return the expected scores by kind.

        Raises:
            OptionError: a kind is missing, or the items are not those of ``tree``.
        """
        found = {each.kind: each.expected for each in self.conclusions}
        ids = {item.id for item in tree.conclusions}
        if set(found) != set(CONCLUSION_KINDS) or any(set(scores) != ids for scores in found.values()):
            raise OptionError(
                f"the calibration conclusions of {tree.id} are not one of each kind ({', '.join(CONCLUSION_KINDS)}) "
                "with a score for every conclusion item; fix the file"
            )
        return {kind: tuple(found[kind][item.id] for item in tree.conclusions) for kind in CONCLUSION_KINDS}


def load_conclusions(folder: Path = CONCLUSIONS) -> list[ConclusionSet]:
    """Read every set of a folder, in paper order.

    Raises:
        OptionError: the folder holds none, or a file is invalid.
    """
    return load_sets(folder, ConclusionSet, "conclusions")
