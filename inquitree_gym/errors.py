"""Exceptions of the package.

Every message says what was expected, what came, and what to do next.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


class InquiTreeError(Exception):
    """Base class of the exceptions of this package."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a tree, found by the loader or the linter. Docs/trees-format.md lists the codes."""

    code: str
    """Stable code of the rule, such as ``T501``."""
    node: str
    """Id of the node, the place in ids such as ``s1 › hints``, or empty for the whole file."""
    message: str
    path: str = ""
    """Place in the document, such as ``subtopics[2].studies[0].fakes[1]``. Empty for the whole file."""
    value: float | None = None
    """Measured value, if the rule measures one."""
    bound: float | None = None
    """Value that the rule allows at most or at least."""
    severity: Severity = "error"
    """An error must be fixed. A warning needs a person's decision. A note names something optional."""

    def __str__(self) -> str:
        return f"{self.node}: {self.message}" if self.node else self.message


class TreeError(InquiTreeError, ValueError):
    """An invalid research tree. ``faults`` holds every `Fault`, each naming its node."""

    def __init__(self, where: str, faults: Sequence[Fault]) -> None:
        super().__init__(where, faults)
        self.where = where
        self.faults = tuple(faults)

    def __str__(self) -> str:
        count = plural(len(self.faults), "fault")
        return "\n".join([f"{self.where}: {count}", *(f"  - {fault}" for fault in self.faults)])


class UnknownTreeError(TreeError):
    """There is no tree with the given id, or it may not be distributed."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ())

    def __reduce__(self) -> tuple[type[UnknownTreeError], tuple[str]]:
        """Pickle by the message alone, because ``args`` does not match the constructor."""
        return type(self), (self.where,)

    def __str__(self) -> str:
        return self.where


class OptionError(InquiTreeError, ValueError):
    """An option is unknown or its value is out of range."""


class ActionError(InquiTreeError, TypeError):
    """An action is not a string."""


class AuthoringError(InquiTreeError, RuntimeError):
    """A paper cannot be disclosed: it reports no experiment, or the model's replies cannot be read."""


class AgentError(InquiTreeError, RuntimeError):
    """An agent of the user's own cannot be imported or loaded, is no agent, or failed while it acted."""


class EmbedderError(InquiTreeError, RuntimeError):
    """An embedder cannot be found, loaded or trusted."""


class ServiceError(InquiTreeError, RuntimeError):
    """A model service gave no usable answer.

    ``status`` is the HTTP status or None. ``transient`` is True if a later request may succeed.
    """

    ONE_REQUEST = frozenset({400, 413, 422})
    """Statuses that concern a single request, for example one that is too long."""

    def __init__(self, message: str, *, status: int | None = None, transient: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.transient = transient

    @property
    def concerns_all(self) -> bool:
        """True if every further request would fail: the key, the model name or the quota is wrong."""
        return not self.transient and self.status not in self.ONE_REQUEST


class ReaderError(ServiceError):
    """The model that reads the actions gave no usable answer. The agent is not to blame."""


class RewardError(ServiceError):
    """The model that judges conclusions for the reward gave no usable answer. The agent is not to blame."""


class BudgetError(InquiTreeError, RuntimeError):
    """A cap on cost, tokens or time is reached. No further request is made."""


class CacheError(InquiTreeError, RuntimeError):
    """Replies of models cannot be stored."""


class JudgeError(InquiTreeError, RuntimeError):
    """A judge cannot be loaded, or its judgements cannot be read or stored."""


class DamagedJudgementError(JudgeError):
    """A stored judgement does not fit its task."""


class StoppedError(InquiTreeError, RuntimeError):
    """The run was stopped."""


class LogError(InquiTreeError, RuntimeError):
    """An episode log cannot be read or written."""


class LogExistsError(LogError):
    """The log file already exists. Logs are never overwritten."""


class MissingExtraError(InquiTreeError, ImportError):
    """An optional dependency is not installed."""


def require(module: str, extra: str) -> ModuleType:
    """Import ``module``.

    Raises:
        MissingExtraError: ``module`` is not installed. The message names the extra that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise MissingExtraError(
            f"This needs '{error.name}', which is not installed. {install_advice(extra)}"
        ) from error


_SEPARATE = ("inspect", "openenv", "rllib")
"""Extras that conflict with the pins of others. Each has constraints of its own, for a separate environment."""


def install_advice(extra: str) -> str:
    """Return a sentence that says how to install an extra from a clone of the repository."""
    place, pins, names = "", "constraints.txt", extra
    if extra in _SEPARATE:
        place, pins, names = ", and in a separate environment", f"constraints-{extra}.txt", f"{extra},offline"
    return f"In a clone of the repository{place}, run: pip install -c {pins} '.[{names}]'"


def suggest(word: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the closest known word, or an empty string."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean '{near[0]}'?)" if near else ""


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters except tab and line feed, those of writing directions included."""


def visible(text: str) -> str:
    """Return a text whose control characters are escaped, so that none can steer a terminal or split a row."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 fault``, ``2 faults``, ``3,000 studies``."""
    return f"{number:,} {noun if number == 1 else plural_of(noun)}"


def plural_of(noun: str) -> str:
    """Return the plural of a noun, such as ``studies`` or ``axes``."""
    return re.sub(r"(?<!s)$", "s", re.sub(r"(?<![aeiou])y$", "ie", re.sub(r"is$", "e", noun)))
