"""Labelled proposals about the shipped trees, and other labelled texts: one JSON file per tree.

Some proposals were written, several for each subtopic and study. Others were said in play, by players who saw
observations alone, and labelled afterwards by somebody else. They calibrate thresholds and train the embedders.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from inquitree_gym.errors import OptionError
from research.proposals import ProposalSet, SetType, load_set

PROPOSALS = Path(__file__).parent / "proposals"
"""Folder of the proposals about the shipped trees."""


class LabelledSet(BaseModel):
    """Base class of the labelled texts about one tree."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tree: str
    """Id of the tree."""


def load_proposals(folder: Path = PROPOSALS) -> list[ProposalSet]:
    """Return the proposals about every shipped tree, in paper order, or those of the JSON files of a folder.

    Raises:
        OptionError: the folder holds none, or a file is invalid.
    """
    return load_sets(folder, ProposalSet, "proposals")


def load_sets(folder: Path, model: type[SetType], content: str) -> list[SetType]:
    """Read the labelled set of every JSON file of a folder, in paper order. ``content`` names it in errors.

    Raises:
        OptionError: the folder holds none, or a file is invalid.
    """
    files = sorted(folder.glob("*.json"), key=lambda file: (len(file.stem), file.stem))
    if not files:
        raise OptionError(f"no {content} (*.json) in '{folder}'; give a folder with one file per tree")
    return [load_set(file, model, content) for file in files]
