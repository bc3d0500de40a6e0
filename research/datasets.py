"""Hand-written proposals and conclusions about the shipped trees: one JSON file per tree."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from inquitree_gym.errors import OptionError
from inquitree_gym.trees import Tree

CALIBRATION = Path(__file__).parent / "calibration"
"""Folder with ``proposals/`` and ``conclusions/``."""

ProposalKind = Literal["right", "vague", "near_miss", "off_target"]
PROPOSAL_KINDS: tuple[ProposalKind, ...] = ("right", "vague", "near_miss", "off_target")
ConclusionKind = Literal["perfect", "partial", "contradicting", "padded", "hedged", "injected", "empty"]
CONCLUSION_KINDS: tuple[ConclusionKind, ...] = (
    "perfect", "partial", "contradicting", "padded", "hedged", "injected", "empty",
)  # fmt: skip

Scores = tuple[float | None, ...]
"""S per conclusion item, in tree order; None for an unscored item."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Dataset(_Model):
    """Base class for the data about one tree."""

    tree: str
    """Id of the tree."""


class Proposal(_Model):
    """A text that an agent might propose instead of a subtopic or study."""

    target: str
    """Id of a subtopic or study."""
    kind: ProposalKind
    """``right`` means the target; the other kinds mean no node of the tree."""
    text: str


class ProposalSet(Dataset):
    """The proposals about one tree."""

    proposals: tuple[Proposal, ...]


class Conclusion(_Model):
    """A conclusion with the scores that a fair reader gives its items."""

    kind: ConclusionKind
    text: str
    expected: dict[str, float]
    """S per conclusion item: 1, 0.6 or 0."""


class ConclusionSet(Dataset):
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


DatasetType = TypeVar("DatasetType", bound=Dataset)


def load_sets(folder: str | os.PathLike[str], model: type[DatasetType]) -> list[DatasetType]:
    """Read every dataset of a folder, in paper order.

    Raises:
        OptionError: the folder holds none, or a file is invalid.
    """
    sets = []
    for file in Path(folder).glob("*.json"):
        try:
            sets.append(model.model_validate_json(file.read_bytes()))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            raise OptionError(f"'{file}' is not a valid {model.__name__}: {fault['msg']} at {fault['loc']}") from error
    if not sets:
        raise OptionError(f"no sets (*.json) in '{folder}'; give the folder that holds proposals/ and conclusions/")
    return sorted(sets, key=lambda each: (len(each.tree), each.tree))
