"""What of a study a folder holds already, and what is left to do."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from inquitree_gym.errors import LogError
from inquitree_gym.log import has_header, read_episode
from inquitree_gym.runner.folder import log_file
from inquitree_gym.runner.study import Cell, Study


class Survey(NamedTuple):
    """The episodes of a study by what a folder holds of them."""

    whole: list[Cell]
    torn: list[Cell]
    """Begun and not ended; they are resumed."""
    missing: list[Cell]
    damaged: dict[Cell, str]
    """Those whose log cannot be read, with what is wrong; nothing is done about them."""

    @property
    def to_do(self) -> list[Cell]:
        """Torn episodes first: they are nearest to their end."""
        return [*self.torn, *self.missing]


def survey(study: Study, folder: Path) -> Survey:
    """Look at the log of every episode of ``study`` in ``folder``, which need not be there."""
    return look(study.cells(), folder)


def look(cells: Iterable[Cell], folder: Path) -> Survey:
    """Look at the logs of some episodes in ``folder``."""
    found = Survey([], [], [], {})
    for cell in cells:
        file = log_file(folder, cell)
        try:
            if not has_header(file):
                found.missing.append(cell)
            else:
                (found.torn if read_episode(file).footer is None else found.whole).append(cell)
        except LogError as error:
            found.damaged[cell] = str(error)
    return found
