"""Stop conditions: which errors end an episode, the rest of a model, or the whole run."""

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

GRACE = 10.0
"""Seconds that pending requests have to be answered in after a run is interrupted."""
PATIENCE = 10
"""Consecutive service failures after which a model is stopped, or twice the concurrency if that is more."""
INTERRUPTED = "interrupted"
ERROR_ELSEWHERE = "unexpected error in another episode"

_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO}


@dataclass
class StopConditions:
    """Reasons to stop a run or one of its models early. Any thread may stop the run."""

    on_stop: Callable[[str], None] = lambda reason: None
    """Called once with the reason when the run is stopped."""
    reason: str = ""
    """Reason why the run was stopped; empty while it goes on."""
    models: dict[str, str] = field(default_factory=dict)
    """Reason by label of each model that was stopped."""
    _failures_in_a_row: Counter[str] = field(default_factory=Counter)

    def stop(self, reason: str) -> None:
        """Stop the run: no further episode starts and no further request is sent. The first reason is kept."""
        if not self.reason:
            self.reason = reason
            self.on_stop(reason)

    def record(self, model: str, error: InquiTreeError | None, patience: int) -> None:
        """Record the end of an episode, and stop its model if further episodes would fail the same way.

        Args:
            model: label of the model.
            error: the error that ended the episode; None for an episode that ended normally.
            patience: number of consecutive service failures after which the model is stopped.
        """
        self._failures_in_a_row[model] = self._failures_in_a_row[model] + 1 if isinstance(error, ServiceError) else 0
        if error is not None and _stops_model(error):
            self.models.setdefault(model, str(error))
        elif self._failures_in_a_row[model] >= patience:
            self.models.setdefault(model, f"{patience} episodes failed in a row; the last error: {error}")

    def reason_for(self, model: str) -> str:
        """Return the reason not to start an episode of ``model`` (a label, empty for none); empty if it may start."""
        return self.reason or self.models.get(model, "")


def stops_run(error: InquiTreeError) -> bool:
    """Return whether every further episode would fail with the same error."""
    if isinstance(error, LogError):
        return isinstance(error.__cause__, OSError) and error.__cause__.errno in _DISK_ERRORS
    return isinstance(error, EmbedderError | CacheError | MissingExtraError)


def _stops_model(error: InquiTreeError) -> bool:
    if isinstance(error, ServiceError):
        return error.concerns_all
    return isinstance(error, OptionError)
