"""Reading of episode logs of every version."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from inquitree_gym.errors import LogError
from inquitree_gym.log.episode import Episode
from inquitree_gym.log.jsonl import read_lines
from inquitree_gym.log.records import LOG_VERSION, Failure, Footer, Header, Record, Reply, Turn

_RECORD: TypeAdapter[Record] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])
TASK_VERSION = 5
"""First version whose header names a task; earlier ones name a tree."""
MAX_HEADER = 1_000_000
"""Largest header, in bytes; a file with a longer first line is not a log."""
_REMEDY = "the line is damaged: bring the file back, or remove it"


def read_episode(path: str | os.PathLike[str]) -> Episode:
    """Read one log; a torn last line is left out.

    Raises:
        LogError: the file is missing, a line is damaged, the log is newer than this release, or it has no header.
    """
    file = Path(path)
    parser = _Parser(file)
    records = [record for parsed in read_lines(file, parser.parse, remedy=_REMEDY) for record in parsed]
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
        LogError: the path is not a regular file or cannot be read, its first line is not a header, or the log is newer
            than this release.
    """
    file = Path(path)
    try:
        if file.exists() and not file.is_file():
            raise LogError(f"'{file}' is no regular file")
        with file.open("rb") as stream:
            line = stream.readline(MAX_HEADER)
    except OSError as error:
        raise LogError(f"cannot read '{file}': {error.strerror}") from error
    if not line.endswith(b"\n"):
        raise LogError(f"'{file}' is no episode log: it has no whole first line")
    try:
        (header,) = _Parser(file).parse(json.loads(line))
    except (ValueError, RecursionError):
        raise LogError(f"'{file}' is no episode log: its first line is no header") from None
    if not isinstance(header, Header):
        raise LogError(f"'{file}' is no episode log: its first line is no header")
    return header


class _Parser:
    """Parse the lines of one file, whose header gives their version."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._version = LOG_VERSION

    def parse(self, document: Any) -> list[Record]:
        replies: list[Record] = []
        if isinstance(document, dict):
            self._version = self._checked(document.get("log_version", self._version))
            if self._version == 1 and document.get("reply") is not None:
                replies.append(_reply_of_version_1(document))
            if self._version == 1:
                document.pop("reply", None)
            if self._version in range(TASK_VERSION) and "tree" in document:
                document["task"] = document.pop("tree")
        return [*replies, _RECORD.validate_python(document)]

    def _checked(self, version: Any) -> Any:
        if isinstance(version, int) and version > LOG_VERSION:
            raise LogError(
                f"'{self._file}' has log version {version}; this release reads up to {LOG_VERSION}: "
                "update inquitree-gym"
            )
        return version


def _reply_of_version_1(turn: dict[str, Any]) -> Reply:
    """Return the raw reply of a turn as a record."""
    return Reply(
        turn=turn.get("turn", 0),
        role="proposer",
        text=turn["reply"],
        finish_reason="",
        tokens=turn.get("tokens"),
        cost=turn.get("cost"),
        seconds=turn.get("agent_seconds") or 0.0,
    )


def _in_order(file: Path, records: Sequence[Record]) -> tuple[tuple[Turn, ...], tuple[Reply, ...]]:
    """Return the turns, numbered from 1, and the replies, each of which precedes its turn."""
    turns: list[Turn] = []
    replies: list[Reply] = []
    for record in records:
        if isinstance(record, Turn | Reply):
            if record.turn != len(turns) + 1:
                raise LogError(f"'{file}' has a {record.kind} {record.turn} after turn {len(turns)}; it is damaged")
            (turns if isinstance(record, Turn) else replies).append(record)  # type: ignore[arg-type]
    return tuple(turns), tuple(replies)
