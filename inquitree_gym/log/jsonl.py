"""JSON Lines files: one writer at a time, every line flushed, a torn last line dropped."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from inquitree_gym.errors import InquiTreeError, LogError, LogExistsError
from inquitree_gym.files import MAX_LOG, MAX_RECORDS, open_input, read_input

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]

_WITHOUT_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, 524}
"""Errors of file systems without such locks. 524 is ENOTSUPP of Linux, which some network file systems let through."""
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

_logger = logging.getLogger(__name__)

T = TypeVar("T")
H = TypeVar("H", bound=BaseModel)
R = TypeVar("R", bound=BaseModel)


class JsonlRecord(BaseModel):
    """Base class of the lines of a file."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class JsonlWriter:
    """Append records to a file, each flushed to the system and safe from a kill. A context manager."""

    def __init__(self, path: str | os.PathLike[str], *, resume: bool = False, header: BaseModel | None = None) -> None:
        """Open and lock a file, making its folder.

        Args:
            path: a new file, unless ``resume`` is set.
            resume: open the file if it exists, and cut it back to its last whole line.
            header: record to write first if the file holds no whole line.

        Raises:
            LogExistsError: the file exists, without ``resume``.
            LogError: the file cannot be written, another process is writing it, or the header is no strict JSON.
        """
        self.path = Path(path)
        if header is not None:
            to_line(header)  # one that is no strict JSON is refused before there is a file
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self.path.open("a" if resume else "x", encoding="ascii")
        except OSError as error:
            if isinstance(error, FileExistsError) and self.path.exists():
                raise LogExistsError(
                    f"'{self.path}' exists already; logs are never overwritten: choose another place"
                ) from error
            raise self._error(error) from error
        try:
            self._lock()
            empty = not resume or _cut_to_whole_lines(self.path) == 0
        except OSError as error:
            self._stream.close()
            if not resume:
                self.path.unlink(missing_ok=True)
            raise self._error(error) from error
        if header is not None and empty:
            self.write(header)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def write(self, record: BaseModel) -> None:
        """Append one record.

        Raises:
            LogError: it is closed or cannot be written, or the record is no strict JSON. That closes the file, whose
                lines before stay intact.
        """
        if self._stream.closed:
            raise LogError(f"'{self.path}' is closed; open another writer to go on")
        try:
            self._stream.write(to_line(record))
            self._stream.flush()
        except (OSError, LogError) as error:
            with suppress(OSError):
                self._stream.close()
            if isinstance(error, OSError):
                raise self._error(error) from error
            raise

    def close(self) -> None:
        """Close the file and release its lock. Closing twice does nothing."""
        try:
            self._stream.close()
        except OSError as error:
            raise self._error(error) from error

    def _lock(self) -> None:
        if not lock(self._stream):
            self._stream.close()
            raise LogError(f"another process is writing '{self.path}'; wait until it is done, or choose another folder")

    def _error(self, error: OSError) -> LogError:
        remedy = "Free some space or choose" if error.errno in _FULL else "Choose"
        return LogError(
            f"cannot write '{self.path}': {error.strerror}; the lines written before are safe. "
            f"{remedy} another folder, then run the same command again to resume"
        )


def to_line(record: BaseModel) -> str:
    """Return a record as one line of strict JSON, ASCII only, so that any string survives, lone surrogates included.

    Raise `LogError` if a number in it is NaN or infinite.
    """
    document = record.model_dump(mode="python")
    try:
        return json.dumps(document, ensure_ascii=True, separators=(",", ":"), allow_nan=False) + "\n"
    except ValueError as error:
        raise LogError(
            f"a {type(record).__name__} must hold finite numbers alone, got {document!s:.200}. Mend its origin."
        ) from error


def read_lines(
    path: str | os.PathLike[str],
    parse: Callable[[Any], T],
    *,
    remedy: str,
    limit: int = MAX_LOG,
    error: type[InquiTreeError] = LogError,
    on_damaged: Callable[[str], None] | None = None,
) -> list[T]:
    """Return every whole line of a file, parsed. A torn last line is left out.

    Args:
        path: the file, opened by `open_input`.
        parse: turns a JSON document into a record, and raises pydantic's `ValidationError` for a damaged one.
        remedy: advice that ends the message about a damaged line.
        limit: largest size of the file, in bytes.
        error: the error to raise, which names the file and the line.
        on_damaged: called with a message about each damaged line after the first, which is then left out. None raises
            the error.
    """
    *lines, _torn = read_input(path, limit=limit, error=error).split(b"\n")
    records = []
    for number, line in enumerate(lines, 1):
        try:
            records.append(parse(_document(line)))
        except (ValueError, RecursionError) as cause:
            message = f"'{path}', line {number}: {line_fault(cause, remedy)}"
            if on_damaged is None or number == 1:
                raise error(message) from None
            on_damaged(message)
    return records


def _document(line: bytes) -> Any:
    """Return the JSON document of a line. Raise `ValueError` for a damaged one."""
    try:
        return from_json(line, cache_strings="keys")  # in half the time of the other
    except ValueError:
        return json.loads(line)  # which takes the lone surrogates that a model may write, and places a fault


def read_records(
    path: str | os.PathLike[str],
    header: type[H],
    record: type[R],
    *,
    remedy: str,
    error: type[InquiTreeError] = LogError,
    context: Any = None,
    on_damaged: Callable[[str], None] | None = None,
) -> tuple[H, list[R]]:
    """Return the header line and the records of a file.

    ``context`` is passed to the validators of the models. See `read_lines` for the other arguments and the errors.
    """
    models = chain[type[BaseModel]]([header], repeat(record))
    lines = read_lines(
        path,
        lambda line: next(models).model_validate(line, context=context),
        remedy=remedy,
        limit=MAX_RECORDS,
        error=error,
        on_damaged=on_damaged,
    )
    if not lines:
        raise error(f"'{path}' has no header line; {remedy}")
    return cast(H, lines[0]), cast(list[R], lines[1:])


def has_header(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file exists and its first line is whole. A file torn before that holds nothing.

    Raises:
        LogError: the file cannot be opened. See `open_input`.
    """
    if not os.path.exists(path):
        return False
    with open_input(path, limit=MAX_RECORDS, error=LogError) as stream:
        return stream.readline().endswith(b"\n")


def settings_digest(settings: Mapping[str, Any]) -> str:
    """Return eight hexadecimal digits that name these settings in a file name."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]


def file_stem(name: str) -> str:
    """Return a name as part of a file name: letters, digits, points and hyphens, at most 80.

    A digest ends that of a name that is longer or in another script.

    >>> file_stem("llm:openai/gpt-5 (low)")
    'llm-openai-gpt-5-low'
    """
    stem = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return stem if len(stem) <= 80 and name.isascii() else f"{stem[:71]}-{digest}".lstrip("-")


def lock(stream: IO[Any]) -> bool:
    """Lock a file until ``stream`` is closed or the process ends. False if another process holds it.

    Without locks, as on Windows and on some network file systems, it warns once and goes on.
    """
    if fcntl is None:
        _warn_unlocked("this system has none")
        return True
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _WITHOUT_LOCKS:
            raise
        _warn_unlocked(f"the file system answers: {error.strerror}")
    return True


@cache
def _warn_unlocked(reason: str) -> None:
    _logger.warning("files cannot be locked (%s); let no two processes write to one folder", reason)


def _cut_to_whole_lines(path: Path) -> int:
    """Drop a torn last line. Return the size that is left, in bytes."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    return whole


def line_fault(error: Exception, remedy: str) -> str:
    """Return what is wrong with a line that could not be parsed, and what to do: ``remedy``, unless it is newer."""
    for each in error.errors(include_url=False) if isinstance(error, ValidationError) else ():
        if each["type"] == "extra_forbidden":
            place = ".".join(map(str, each["loc"]))
            return f"{place} is an unknown field, which a later version may have written; read it with that version"
    return f"{fault_of(error)}; {remedy}"


def fault_of(error: Exception) -> str:
    """Return what is wrong with a line that could not be parsed."""
    if not isinstance(error, ValidationError):
        return f"not JSON ({error})"
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{first['msg']} at {place}" if place else str(first["msg"])
