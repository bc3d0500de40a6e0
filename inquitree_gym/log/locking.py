"""Files that one process writes at a time."""

from __future__ import annotations

from typing import IO, Any

try:
    import fcntl
except ImportError:  # on Windows, which has no such locks
    fcntl = None  # type: ignore[assignment]


def lock(stream: IO[Any]) -> bool:
    """Keep a file to this process until it closes ``stream`` or ends, however it ends; False where another one has it.

    Raises:
        OSError: the file system keeps no locks.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
