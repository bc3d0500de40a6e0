"""The engine's function and the loops over rows, compiled where Numba is installed."""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym import seeds
from inquitree_gym.errors import install_advice
from inquitree_gym.files import user_folder
from inquitree_gym.inquiry.arrays import loop
from inquitree_gym.inquiry.engine import rows, transition, values

_SOURCES = (rows, values, transition, loop, seeds)
"""Modules whose text decides the compiled code, beside this package's own."""


class Functions(NamedTuple):
    """The functions of a step, both compiled or neither."""

    step: Callable[..., None]
    go_on: Callable[..., None]
    show_all: Callable[..., None]
    compiled: bool

    def view(self, array: NDArray[Any]) -> Any:
        """Return the buffer that the functions take: a flat array if they are compiled, else a memory view of it."""
        flat = array if array.ndim == 1 else array.reshape(-1)
        flat = flat.view(np.uint8) if flat.dtype.char == "?" else flat
        return flat if self.compiled else flat.data


PLAIN = Functions(loop.step, loop.go_on, loop.show_all, compiled=False)
"""The functions as Python runs them."""


@cache
def functions() -> Functions:
    """Return the compiled functions, or without Numba the plain ones, which are some hundred times slower."""
    if find_spec("numba") is None:
        warnings.warn(
            f"array environments run uncompiled without Numba, some hundred times slower. {install_advice('arrays')}",
            stacklevel=2,
        )
        return PLAIN
    return _compiled()


def _compiled() -> Functions:
    """Return the functions compiled, from the cache on disk if they are in it."""
    import numba

    from inquitree_gym.inquiry.arrays import numba_functions

    folder = _writable(user_folder("numba") / _digest(Path(numba_functions.__file__), numba.__version__))
    if folder is None or not any(folder.iterdir()):
        sys.stderr.write("Compiling the rules for array environments, once for this version: some seconds.\n")
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, "" if folder is None else str(folder)
    try:
        compiled: list[Any] = [
            numba.njit(each, cache=folder is not None, nogil=True, boundscheck=False) for each in PLAIN[:-1]
        ]
    finally:
        numba.config.CACHE_DIR = before
    return Functions(*compiled, compiled=True)  # type: ignore[misc]


def _writable(folder: Path) -> Path | None:
    """Return ``folder``, made if need be. None if it can't be written, which costs a compilation in each process."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".writable").touch()
        (folder / ".writable").unlink()
    except OSError:
        return None
    return folder


def _digest(*more: Any) -> str:
    """Return a digest of everything that decides the compiled code: Numba notices changes in one file alone."""
    sources = [Path(str(module.__file__)).read_bytes() for module in _SOURCES]
    sources += [each.read_bytes() if isinstance(each, Path) else str(each).encode() for each in more]
    return hashlib.blake2b(b"\0".join(sources), digest_size=8).hexdigest()
