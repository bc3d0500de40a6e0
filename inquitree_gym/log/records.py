"""Records of an episode log, one per line, and the reading of whole logs."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from operator import not_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import Field, SerializeAsAny, TypeAdapter, ValidationInfo, field_validator

from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.files import MAX_LOG, open_input
from inquitree_gym.kinds import Kind, kind
from inquitree_gym.log.jsonl import JsonlRecord, line_fault, read_lines
from inquitree_gym.sheets import Sheet, SheetReading
from inquitree_gym.trees.fields import CANARY

LOG_VERSION: Literal[1] = 1
JUDGE_ROLE = "judge"
"""Role of a judge's replies, and the folder of its cached replies. See `Reply.role`."""
READER_ROLE = "reader"
"""Role of the replies of a model that reads the actions for an environment. See `Reply.role`."""


def nan_to_none(value: Any) -> Any:
    """Return None for NaN, which JSON does not have, and any other value as it is."""
    return None if isinstance(value, float) and math.isnan(value) else value


class TaskRef(JsonlRecord):
    """Identity of a task."""

    kind: str
    """Kind of environment that it is played in. See `inquitree_gym.kinds`."""
    id: str
    version: int
    digest: str


class Setup(JsonlRecord):
    """Base class of what one kind of environment adds to the header, besides task, rules and seed."""

    judge: dict[str, Any] | None = Field(default=None, exclude_if=lambda judge: judge is None)
    """Name, version and settings of the judge, where it sets the reward of every turn. None, and not written, where
    only the end of an episode is judged. See `Footer.judge`."""


class TurnEvent(JsonlRecord):
    """Base class of the outcome of one action, of which each kind of environment has its own."""

    kind: str
    """Kind of the next observation."""
    state: str
    """State in which the next action is read."""

    @property
    def unscored(self) -> bool:
        """True if the judge could not score the action. Its reward of 0 is then no grade."""
        return False

    def matches(self, other: Self) -> bool:
        """Tell whether a replayed event agrees. Numbers that depend on the machine may differ a little."""
        return self == other


class SheetRecord(JsonlRecord):
    """Answers of a sheet."""

    choices: tuple[int | None, ...]
    """Option of each item in file order, from 0. None for one that was left out."""
    probabilities: tuple[float | None, ...] = Field(default=(), exclude_if=not_)
    """Probabilities given to the choices. Not written where none was given."""
    notes: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """Reasons why parts of the reply were not read."""

    @classmethod
    def of(cls, reading: SheetReading) -> Self:
        """Return the record of a sheet."""
        sheet = reading.sheet
        given = sheet.probabilities if any(each is not None for each in sheet.probabilities) else ()
        return cls(choices=sheet.choices, probabilities=given, notes=tuple(map(str, reading.notes)))

    @property
    def sheet(self) -> Sheet:
        """The answers."""
        return Sheet(self.choices, self.probabilities)


E = TypeVar("E", bound=TurnEvent)


class Header(JsonlRecord):
    """First line: everything that determines an episode except the actions."""

    kind: Literal["header"] = "header"
    log_version: Literal[1] = LOG_VERSION
    canary: str = CANARY
    versions: dict[str, str | None]
    """Versions of Python and of the packages that affect an episode. None for a package that is not installed."""
    task: TaskRef
    rules: dict[str, Any]
    """All rules by name."""
    seed: int
    """Seed of the episode."""
    setup: Any
    """`Setup` of the kind of environment."""
    prompts: str
    """SHA-256 of the templates."""
    agent: dict[str, Any]
    """Configuration of the agent. Holds at least its name when played by `play`."""
    started: str
    """UTC time, ISO 8601."""

    @field_validator("setup", mode="before")
    @classmethod
    def _parse_setup(cls, setup: Any, info: ValidationInfo) -> Any:
        """Return the setup. A document is parsed with the model that the reader of the file found."""
        if isinstance(setup, Setup):
            return setup
        model: type[Setup] = Setup if info.context is None else info.context.setup
        return model.model_validate(setup)


class Reply(JsonlRecord):
    """Reply of a model, written before it is used."""

    kind: Literal["reply"] = "reply"
    turn: int
    """Turn whose action it is for."""
    role: str
    """Purpose: ``proposer`` for the agent's move, ``correction`` for the same after a malformed reply, ``sceptic`` for
    a second opinion, ``reader`` and ``judge`` for the environment's reading of the action and its grades."""
    text: str
    """The raw reply."""
    finish_reason: str
    """The service's word: ``stop``, ``length``, …"""
    tokens: dict[str, int] | None = None
    """Tokens by kind as counted by the service. None if it did not count."""
    cost: float | None = None
    """US dollars. None if the price is unknown."""
    seconds: float
    """Time from the first request to the reply, waits included."""
    retries: int = 0
    """Failed requests before this reply."""
    cut: int = 0
    """Characters cut off the end."""
    cached: bool = False
    """True for a reply from a cache, which cost nothing."""
    fault: str = ""
    """Fault against the format of its role. Empty for a valid reply."""


Probability = Annotated[float, Field(ge=0, le=1)]


class Turn(JsonlRecord, Generic[E]):
    """One action and its outcome."""

    kind: Literal["turn"] = "turn"
    turn: int
    """1 for the first action."""
    observation: str
    """Observation before the action."""
    action: str
    event: SerializeAsAny[E]
    """Outcome, in the form of the kind of environment."""
    reward: float
    terminated: bool
    truncated: bool
    tokens: dict[str, int] | None = None
    """Tokens by kind over the replies of the turn. None if there is none or none was counted."""
    cost: float | None = None
    """US dollars over these replies. None if there is none or a price is unknown."""
    stated: dict[str, Probability] = Field(default={})
    """Probabilities that the agent stated with its action, by name. See `stated_by`."""
    agent_seconds: float | None = None
    env_seconds: float

    @field_validator("event", mode="before")
    @classmethod
    def _parse_event(cls, event: Any, info: ValidationInfo) -> Any:
        """Return the event. A document is parsed with the model that the reader of the file found."""
        if isinstance(event, TurnEvent) or info.context is None:
            return event
        model: type[TurnEvent] = info.context.event
        return model.model_validate(event)


class Failure(JsonlRecord):
    """Error that stopped the episode and is not the agent's fault. The episode can be resumed."""

    kind: Literal["failure"] = "failure"
    error: str
    when: str


class Footer(JsonlRecord):
    """Last line of a complete episode."""

    kind: Literal["footer"] = "footer"
    status: Literal["concluded", "truncated", "abandoned"]
    observation: str
    """Observation after the last action."""
    turns: int
    episode_return: float
    """Sum of rewards, undiscounted."""
    seconds: float
    judge: dict[str, Any] | None = None
    """Judge of the reward: its name, version and settings. None for an episode that did not conclude."""

    @field_validator("judge")
    @classmethod
    def _check_judge(cls, judge: dict[str, Any] | None) -> dict[str, Any] | None:
        if judge is not None and not isinstance(judge.get("name"), str):
            raise ValueError("must have a name")
        return judge


if TYPE_CHECKING:
    Record = Header | Reply | Turn[Any] | Failure | Footer

_CIRCUMSTANCES: dict[str, Any] = dict.fromkeys(
    (
        "log_version", "started", "agent_seconds", "env_seconds", "seconds", "versions", "agent", "tokens", "cost",
        "judge", "stated",
    ),
    True,
)  # fmt: skip
"""Fields outside the fingerprint: clocks, versions, the judge (its reward is inside), and the origin of the actions."""
_OF_SETUP: dict[str, Any] = {"setup": {"judge"}}


@dataclass(frozen=True, slots=True)
class Episode(Generic[E]):
    """A logged episode. Its turns hold the events of one kind of environment."""

    header: Header
    turns: tuple[Turn[E], ...]
    footer: Footer | None = None
    failure: Failure | None = None
    """Failure that ended a torn episode."""
    replies: tuple[Reply, ...] = ()
    """All replies in order. Those for a turn that was never taken come last."""

    @property
    def status(self) -> str:
        """``concluded``, ``truncated`` or ``abandoned``. Without a footer ``failed`` or ``torn``."""
        if self.footer is not None:
            return self.footer.status
        return "torn" if self.failure is None else "failed"

    @property
    def judge(self) -> dict[str, Any] | None:
        """Judge of the reward. None for an episode that did not conclude."""
        return None if self.footer is None else self.footer.judge

    @property
    def unscored(self) -> int:
        """Number of turns that the judge could not score."""
        return sum(turn.event.unscored for turn in self.turns)

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions in order."""
        return tuple(turn.action for turn in self.turns)

    def replies_to(self, turn: int) -> tuple[Reply, ...]:
        """Return the replies behind the action of a turn, 1 for the first."""
        return tuple(reply for reply in self.replies if reply.turn == turn)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the played episode, equal for an episode and its replay by any agent.

        Excludes clocks, versions, the judge and the origin of the actions (agent, replies, tokens, cost, statements).
        """
        digest = hashlib.sha256()
        for record in filter(None, (self.header, *self.turns, self.footer)):
            excluded = _CIRCUMSTANCES | _OF_SETUP if isinstance(record, Header) else _CIRCUMSTANCES
            digest.update(json.dumps(record.model_dump(exclude=excluded), sort_keys=True).encode())
        return digest.hexdigest()


@cache
def line_adapter() -> TypeAdapter[Record]:
    """Return the adapter of the lines of a log. Built on first use, since `Turn[Any]` builds the schema of `Turn`."""
    return TypeAdapter(Annotated[Header | Reply | Turn[Any] | Failure | Footer, Field(discriminator="kind")])


MAX_HEADER = 1_000_000
"""Largest header, in bytes. A file with a longer first line is not a log."""
_REMEDY = "the line is damaged: bring the file back, or remove it"


def read_episode(path: str | os.PathLike[str]) -> Episode[Any]:
    """Read one log. A torn last line is left out.

    The events of its turns have the type of its kind of environment.

    Raises:
        LogError: the file is missing, too large or no regular file, has no header, is of another version or of an
            unknown kind, or has a damaged line.
    """
    file = Path(path)
    records: list[Record] = read_lines(file, _Parser(file).parse, remedy=_REMEDY, limit=MAX_LOG)
    if not records or not isinstance(records[0], Header):
        raise LogError(
            f"'{file}' has no header line; it is not an episode log, or was torn before its first turn: remove it"
        )
    turns, replies = _in_order(file, records)
    last = records[-1]
    footer = last if isinstance(last, Footer) else None
    return Episode(records[0], turns, footer, last if isinstance(last, Failure) else None, replies)


def read_header(path: str | os.PathLike[str]) -> Header:
    """Read the header of a log alone.

    Raises:
        LogError: see `read_episode`.
    """
    file = Path(path)
    with open_input(file, limit=MAX_LOG, error=LogError) as stream:
        line = stream.readline(MAX_HEADER)
    if not line.endswith(b"\n"):
        raise LogError(f"'{file}' is not an episode log: its first line is incomplete")
    try:
        header = _Parser(file).parse(json.loads(line))
    except (ValueError, RecursionError) as error:
        fault = line_fault(error, "it is not the header of an episode log")
        raise LogError(f"'{file}', line 1: {fault}") from None
    if not isinstance(header, Header):
        raise LogError(f"'{file}' is not an episode log: its first line is not a header")
    return header


class _Parser:
    """Parse the lines of one file, whose header names the kind of its events."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._kind: Kind | None = None

    def parse(self, document: Any) -> Record:
        if self._kind is None and isinstance(document, dict) and document.get("kind") == "header":
            self._check_version(document.get("log_version"))
            self._kind = self._kind_of(document.get("task"))
        return line_adapter().validate_python(document, context=self._kind)

    def _check_version(self, version: Any) -> None:
        if version is True or version != LOG_VERSION:
            raise LogError(
                f"'{self._file}' must have log_version {LOG_VERSION}, got {version!r:.80}. Read it with the release "
                "that wrote it, or play the episode again."
            )

    def _kind_of(self, task: Any) -> Kind | None:
        name = task.get("kind") if isinstance(task, dict) else None
        if not isinstance(name, str):
            return None  # which is a fault of the header
        try:
            return kind(name)
        except OptionError as error:
            raise LogError(f"'{self._file}' is a log of another kind of environment: {error}") from error


def _in_order(file: Path, records: Sequence[Record]) -> tuple[tuple[Turn[Any], ...], tuple[Reply, ...]]:
    """Return the turns, numbered from 1, and the replies, each of which precedes its turn."""
    turns: list[Turn[Any]] = []
    replies: list[Reply] = []
    for record in records:
        if record.kind == "turn" or record.kind == "reply":  # faster than to look at their classes
            if record.turn != len(turns) + 1:
                raise LogError(f"'{file}' has a {record.kind} {record.turn} after turn {len(turns)}; it is damaged")
            if record.kind == "turn":
                turns.append(record)
            else:
                replies.append(record)
    return tuple(turns), tuple(replies)
