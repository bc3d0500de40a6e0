"""What can go wrong, and who can mend it.

    InquiTreeError
    ├── TreeError             a tree file or tree document is at fault; ``faults`` lists every one
    │   └── UnknownTreeError  no tree answers to that id (or its paper may not be distributed)
    ├── OptionError           an option, rule or keyword is unknown or out of range
    ├── ActionError           an action is not text
    ├── EmbedderError         an embedder cannot be found, loaded or trusted
    ├── ServiceError          a model service gave no answer that can be used
    ├── BudgetError           a cap on cost, tokens or time is reached; nothing more is asked
    ├── CacheError            replies of models cannot be kept
    ├── JudgeError            a judge cannot be loaded, or what it found cannot be kept or read
    ├── StoppedError          what was asked to end, such as an interrupted run, asks and plays nothing more
    ├── LogError              an episode log cannot be read or written
    │   └── LogExistsError    a log stands where a new one was to be written
    └── MissingExtraError     an optional dependency is not installed

Every message says what was expected, what came, and what to do next.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Sequence
from types import ModuleType


class InquiTreeError(Exception):
    """Base of every error that this package raises on purpose."""


class TreeError(InquiTreeError, ValueError):
    """A research tree is at fault. ``faults`` holds one line per fault, each naming its node."""

    def __init__(self, where: str, faults: Sequence[str]) -> None:
        super().__init__(where, faults)
        self.where = where
        self.faults = tuple(faults)

    def __str__(self) -> str:
        count = f"{len(self.faults)} fault{'s' * (len(self.faults) != 1)}"
        return "\n".join([f"{self.where}: {count}", *(f"  - {fault}" for fault in self.faults)])


class UnknownTreeError(TreeError):
    """No tree answers to the given id."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ())

    def __reduce__(self) -> tuple[type[UnknownTreeError], tuple[str]]:
        """Pickle by the message alone, so that the error crosses processes."""
        return type(self), (self.where,)

    def __str__(self) -> str:
        return self.where


class OptionError(InquiTreeError, ValueError):
    """An option is unknown or its value is out of range."""


class ActionError(InquiTreeError, TypeError):
    """An action is not a string."""


class EmbedderError(InquiTreeError, RuntimeError):
    """An embedder cannot be found, loaded or trusted."""


class ServiceError(InquiTreeError, RuntimeError):
    """A model service gave no answer that can be used.

    ``status`` is the HTTP status, or None where there was none; ``passing`` tells whether asking again later may help.
    """

    ONE_REQUEST = frozenset({400, 413, 422})
    """Statuses that say something of one request, such as that it is too long."""

    def __init__(self, message: str, *, status: int | None = None, passing: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.passing = passing

    @property
    def concerns_all(self) -> bool:
        """Whether every further request would fail likewise: the key, the model's name or the quota is at fault."""
        return not self.passing and self.status not in self.ONE_REQUEST


class BudgetError(InquiTreeError, RuntimeError):
    """A cap on cost, tokens or time is reached; nothing more is asked."""


class CacheError(InquiTreeError, RuntimeError):
    """Replies of models cannot be kept."""


class JudgeError(InquiTreeError, RuntimeError):
    """A judge cannot be loaded, or what it found cannot be kept or read."""


class StoppedError(InquiTreeError, RuntimeError):
    """What was asked to end, such as an interrupted run, asks and plays nothing more."""


class LogError(InquiTreeError, RuntimeError):
    """An episode log cannot be read or written."""


class LogExistsError(LogError):
    """A log stands where a new one was to be written; logs are never overwritten."""


class MissingExtraError(InquiTreeError, ImportError):
    """An optional dependency is not installed."""


def require(module: str, extra: str) -> ModuleType:
    """Import ``module``, or raise `MissingExtraError` naming the extra that brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise MissingExtraError(
            f"'{module}' is needed for this and is not installed; run: pip install 'inquitree-gym[{extra}]'"
        ) from error


def suggest(word: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the nearest known word, or an empty string."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean '{near[0]}'?)" if near else ""
