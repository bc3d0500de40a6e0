"""Checked reading of users' files, and atomic writes."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import platformdirs

from inquitree_gym.errors import InquiTreeError

MAX_LOG = 512_000_000
"""Largest log of an episode, in bytes."""
MAX_RECORDS = 4_000_000_000
"""Largest file of judgements or answers about a run, in bytes."""
MAX_MANIFEST = 64_000_000
"""Largest manifest of a run, in bytes."""
MAX_SETTINGS = 1_000_000
"""Largest file of settings, such as a study, in bytes."""
CACHE_VARIABLE = "INQUITREE_CACHE"
"""Environment variable that names the folder of files kept between runs."""
MAX_NAME = 255
"""Longest file name that file systems take, in bytes of UTF-8."""
MAX_TASK = 8_000_000
"""Largest file of a tree or task, in bytes."""

_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFSOCK: "a socket"}


@contextmanager
def open_input(
    path: str | os.PathLike[str], *, limit: int, error: Callable[[str], InquiTreeError]
) -> Iterator[BinaryIO]:
    """Open a regular file of limited size for reading, during a block.

    Args:
        path: the file. A link is followed.
        limit: largest size, in bytes.
        error: makes the exception from a message. An exception class will do.

    Raises:
        InquiTreeError: ``error``, naming the file, if it cannot be read, is no regular file or is too large.
    """
    try:
        # Without O_NONBLOCK, a pipe that nobody writes would be waited for here.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            _check(path, os.fstat(descriptor), limit, error)
            with os.fdopen(descriptor, "rb", closefd=False) as stream:
                yield stream
        finally:
            os.close(descriptor)
    except OSError as cause:
        raise error(f"cannot read '{path}': {cause.strerror}") from cause


def read_input(path: str | os.PathLike[str], *, limit: int, error: Callable[[str], InquiTreeError]) -> bytes:
    """Return the content of a file. See `open_input`."""
    with open_input(path, limit=limit, error=error) as stream:
        return stream.read()


def read_text_input(path: str | os.PathLike[str], *, limit: int, error: Callable[[str], InquiTreeError]) -> str:
    """Return the content of a file of UTF-8 text, without a byte order mark. See `open_input`.

    Raises:
        InquiTreeError: ``error``, also if the file is not UTF-8 text.
    """
    try:
        return read_input(path, limit=limit, error=error).decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise error(f"'{path}' must be UTF-8 text, got other bytes at {cause.start}. Save it as UTF-8.") from cause


def name_file(stem: str, suffix: str) -> str:
    """Return a file name of at most `MAX_NAME` bytes. A digest ends the stem of one that had to be cut."""
    name = (stem + suffix).encode("utf-8", "surrogatepass")
    if len(name) <= MAX_NAME:
        return stem + suffix
    end = f"-{hashlib.sha256(name).hexdigest()[:12]}{suffix}"
    return name[: MAX_NAME - len(end)].decode("utf-8", "ignore") + end


def write_whole(file: Path, content: bytes) -> None:
    """Write a file and its folder, so that other threads and processes see the file whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{uuid4().hex}.part")
    try:
        part.write_bytes(content)
        part.replace(file)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _check(
    path: str | os.PathLike[str], state: os.stat_result, limit: int, error: Callable[[str], InquiTreeError]
) -> None:
    if not stat.S_ISREG(state.st_mode):
        kind = _KINDS.get(stat.S_IFMT(state.st_mode), "something else")
        raise error(f"'{path}' must be a regular file, got {kind}. Give the path of a file.")
    if state.st_size > limit:
        raise error(f"'{path}' must hold at most {limit:,} bytes, got {state.st_size:,}. Give a smaller file.")


def user_folder(purpose: str) -> Path:
    """Return the folder of files kept between runs for one purpose: in `INQUITREE_CACHE`, or in the user's cache."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named or platformdirs.user_cache_dir("inquitree-gym")).expanduser() / purpose
