"""Conclusions of inquiries, labelled per line and per conclusion item by readers who did not write them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from inquitree_gym.inquiry.judges.quality import FULL, NOTHING, PARTIAL
from research.static.proposals import LabelledSet, load_sets

PLAYED = Path(__file__).parent / "conclusions"
"""Folder of the labelled conclusions: one file per tree."""
LabelledVerdict = Literal["full", "part", "wrong", "nothing"]
SCORES: dict[LabelledVerdict, float] = {"full": FULL, "part": PARTIAL, "wrong": NOTHING, "nothing": NOTHING}
"""S of each verdict."""


class Line(BaseModel):
    """A line of a conclusion, with what it says about conclusion items."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    says: dict[str, Literal["full", "part", "wrong"]]
    """Verdict by conclusion item. Items of which the line does not speak are left out."""


class LabelledConclusion(BaseModel):
    """A conclusion written after an inquiry, with a verdict on every conclusion item."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    author: str
    style: str
    """``own`` for the conclusion that ended the inquiry. Else the style in which another author wrote it."""
    text: str
    lines: tuple[Line, ...]
    items: dict[str, LabelledVerdict]
    doubt: tuple[str, ...] = ()
    """Items on which another careful reader might decide otherwise."""
    labeller: str
    second: dict[str, LabelledVerdict] = {}
    """Verdicts of a second labeller, who did not see the first ones. Empty without one."""


class PlayedConclusions(LabelledSet):
    """The conclusions about one tree."""

    conclusions: tuple[LabelledConclusion, ...]


def load_played(folder: Path = PLAYED) -> list[PlayedConclusions]:
    """Read every set of a folder, in paper order.

    Raises:
        OptionError: the folder holds none, or a file is invalid.
    """
    return load_sets(folder, PlayedConclusions, "conclusions")
