"""Reading of episode logs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic

from pydantic import Field, TypeAdapter

from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.files import MAX_LOG, open_input
from inquitree_gym.kinds import Kind, kind
from inquitree_gym.log.jsonl import read_lines
from inquitree_gym.log.records import LOG_VERSION, E, Failure, Footer, Header, Record, Reply, Turn

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


_RECORD: TypeAdapter[Record] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])
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
        raise LogError(f"'{file}' is no episode log: it has no whole first line")
    try:
        header = _Parser(file).parse(json.loads(line))
    except (ValueError, RecursionError):
        raise LogError(f"'{file}' is no episode log: its first line is no header") from None
    if not isinstance(header, Header):
        raise LogError(f"'{file}' is no episode log: its first line is no header")
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
        return _RECORD.validate_python(document, context=self._kind)

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
        if isinstance(record, Turn | Reply):
            if record.turn != len(turns) + 1:
                raise LogError(f"'{file}' has a {record.kind} {record.turn} after turn {len(turns)}; it is damaged")
            if isinstance(record, Turn):
                turns.append(record)
            else:
                replies.append(record)
    return tuple(turns), tuple(replies)
