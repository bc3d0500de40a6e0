"""What is to end before its end: a whole run, or what is left of one model; and which fault ends how much."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from inquitree_gym.errors import (
    CacheError,
    EmbedderError,
    InquiTreeError,
    LogError,
    MissingExtraError,
    OptionError,
    ServiceError,
)
from inquitree_gym.runner.study import Cell

_FOLDER_FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO}
"""What the system says when no log of the folder can be written any more."""


@dataclass
class Stops:
    """What is to end, with the first reason for it. Any thread may end a run."""

    on_end: Callable[[str], None] = lambda reason: None
    """Told the reason once the run is to end."""
    whole: str = ""
    """Why the run ends; empty while it goes on."""
    models: dict[str, str] = field(default_factory=dict)
    """By label of a model, why no further episode of it is begun."""
    _in_a_row: Counter[str] = field(default_factory=Counter)

    def end(self, reason: str) -> None:
        """Let the run end: no episode is begun any more, and no request made."""
        if not self.whole:
            self.whole = reason
            self.on_end(reason)

    def note(self, model: str, error: InquiTreeError | None, patience: int) -> None:
        """Note how an episode of a model came out; let the rest of it be where that would fail likewise.

        Args:
            model: its label.
            error: what stopped the episode, if anything did.
            patience: episodes that its service may fail one after the other.
        """
        self._in_a_row[model] = self._in_a_row[model] + 1 if isinstance(error, ServiceError) else 0
        if error is not None and _ends_model(error):
            self.models.setdefault(model, str(error))
        elif self._in_a_row[model] >= patience:
            self.models.setdefault(model, f"{patience} of its episodes failed in a row, the last like this: {error}")

    def reason(self, cell: Cell) -> str:
        """Return why ``cell`` is not to be begun; an empty string where it is."""
        return self.whole or self.models.get(cell.model, "")


def ends_run(error: InquiTreeError) -> bool:
    """Tell whether every further episode would fail likewise, whoever plays it."""
    if isinstance(error, LogError):
        return isinstance(error.__cause__, OSError) and error.__cause__.errno in _FOLDER_FAULTS
    return isinstance(error, EmbedderError | CacheError | MissingExtraError)


def _ends_model(error: InquiTreeError) -> bool:
    """Tell whether every further episode of the same model would fail likewise."""
    if isinstance(error, ServiceError):
        return error.concerns_all
    return isinstance(error, OptionError)
