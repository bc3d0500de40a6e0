"""Calibration sets: one JSON file per tree, validated."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from inquitree_gym.errors import OptionError


class CalibrationSet(BaseModel):
    """Something written about one tree, with what a fair reader makes of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tree: str
    """Id of the tree."""


Set = TypeVar("Set", bound=CalibrationSet)


def load_sets(folder: str | os.PathLike[str], model: type[Set]) -> list[Set]:
    """Read every set of a folder, in paper order.

    Raises:
        OptionError: the folder holds none, or a file is at fault.
    """
    sets = []
    for file in Path(folder).glob("*.json"):
        try:
            sets.append(model.model_validate_json(file.read_bytes()))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            raise OptionError(f"'{file}' is no {model.__name__}: {fault['msg']} at {fault['loc']}") from error
    if not sets:
        raise OptionError(f"no sets (*.json) in '{folder}'; give the folder that holds proposals/ and conclusions/")
    return sorted(sets, key=lambda each: (len(each.tree), each.tree))
