"""Episode logs as files: read whole, written line by line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from inquitree_gym.errors import LogError, LogExistsError
from inquitree_gym.log.locking import lock
from inquitree_gym.log.records import LOG_VERSION, Episode, Failure, Footer, Header, Record, Reply, Turn, to_line

_RECORD: TypeAdapter[Record] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])


def is_begun(path: str | os.PathLike[str]) -> bool:
    """Tell whether a log is there and has a whole first line; one torn before that holds nothing."""
    try:
        with Path(path).open("rb") as stream:
            return stream.readline().endswith(b"\n")
    except FileNotFoundError:
        return False


def read_episode(path: str | os.PathLike[str]) -> Episode:
    """Read one log.

    Raises:
        LogError: the file is missing, or a line other than a torn last one is at fault.
    """
    file = Path(path)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise LogError(f"cannot read the log '{file}': {error.strerror}") from error
    records = list(_records(file, content))
    if not records or not isinstance(records[0], Header):
        raise LogError(
            f"'{file}' has no header line; it is no episode log, or was torn before its first turn: remove it"
        )
    turns, replies = _in_order(file, records)
    last = records[-1]
    footer = last if isinstance(last, Footer) else None
    return Episode(records[0], turns, footer, last if isinstance(last, Failure) else None, replies)


def _in_order(file: Path, records: Sequence[Record]) -> tuple[tuple[Turn, ...], tuple[Reply, ...]]:
    """Return the turns, counted from 1, and the replies, each before its turn."""
    turns: list[Turn] = []
    replies: list[Reply] = []
    for record in records:
        if isinstance(record, Turn | Reply):
            if record.turn != len(turns) + 1:
                raise LogError(f"'{file}' has a {record.kind} {record.turn} after turn {len(turns)}; it is damaged")
            (turns if isinstance(record, Turn) else replies).append(record)  # type: ignore[arg-type]
    return tuple(turns), tuple(replies)


def _records(file: Path, content: bytes) -> Iterator[Record]:
    *lines, _torn = content.split(b"\n")
    version = LOG_VERSION
    for number, line in enumerate(lines, 1):
        try:
            # Not pydantic's own JSON reader: it refuses the lone surrogates that an agent may write.
            document = json.loads(line)
            _refuse_newer(file, document)
            if isinstance(document, dict):
                version = document.get("log_version", version)
                if version == 1 and "reply" in document and (reply := _reply_of_version_1(document)):
                    yield reply
            yield _RECORD.validate_python(document)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise _damaged(file, number, f"{first['msg']} at {place}" if place else first["msg"]) from None
        except (ValueError, RecursionError) as error:
            raise _damaged(file, number, f"not JSON ({error})") from None


def _reply_of_version_1(turn: dict[str, Any]) -> Reply | None:
    """Take the raw reply out of a turn, as a record of its own; None where there was none."""
    text = turn.pop("reply")
    if text is None:
        return None
    return Reply(
        turn=turn.get("turn", 0),
        role="proposer",
        text=text,
        finish_reason="",
        tokens=turn.get("tokens"),
        cost=turn.get("cost"),
        seconds=turn.get("agent_seconds") or 0.0,
    )


def _refuse_newer(file: Path, document: Any) -> None:
    found = document.get("log_version", 0) if isinstance(document, dict) else 0
    if isinstance(found, int) and found > LOG_VERSION:
        raise LogError(
            f"'{file}' has log version {found}; this release reads up to {LOG_VERSION}: update inquitree-gym"
        )


def _damaged(file: Path, line: int, fault: str) -> LogError:
    return LogError(f"'{file}', line {line}: {fault}; the line is damaged: bring the file back, or remove it")


class EpisodeWriter:
    """Appends records to a file, each flushed to the system before the next action is taken."""

    def __init__(self, path: str | os.PathLike[str], *, resume: bool = False) -> None:
        """Open a new file; with ``resume`` an existing one, cut back to its last whole line.

        Raises:
            LogExistsError: the file exists, without ``resume``.
            LogError: the file cannot be written.
        """
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self.path.open("a" if resume else "x", encoding="ascii")
            self._lock()
            if resume:
                _drop_torn_line(self.path)
        except OSError as error:
            if isinstance(error, FileExistsError) and self.path.exists():
                raise LogExistsError(
                    f"'{self.path}' exists already; logs are never overwritten: choose another place"
                ) from error
            raise self._error(error) from error

    def write(self, record: Record) -> None:
        """Append one record.

        Raises:
            LogError: the disk is full or the file cannot be written, which closes it; lines written before are safe.
        """
        if self._stream.closed:
            raise LogError(f"the log '{self.path}' is closed; open another writer to go on")
        try:
            self._stream.write(to_line(record))
            self._stream.flush()
        except OSError as error:
            with suppress(OSError):
                self._stream.close()
            raise self._error(error) from error

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        try:
            self._stream.close()
        except OSError as error:
            raise self._error(error) from error

    def _lock(self) -> None:
        if not lock(self._stream):
            self._stream.close()
            raise LogError(
                f"another process is writing the log '{self.path}'; wait until it is done, or choose another folder"
            )

    def _error(self, error: OSError) -> LogError:
        return LogError(
            f"cannot write the log '{self.path}': {error.strerror}; what was logged before is safe. "
            f"Free some space or choose another folder, then run the same command again to resume"
        )


def _drop_torn_line(path: Path) -> None:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
