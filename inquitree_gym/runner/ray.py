"""Play a study on Ray: the same episodes into the same folder, by workers on this machine or on several.

The process that runs the study claims the folder, hands out episodes and counts outcomes; workers play them by
`play_cells`, as the local runner does. A worker that dies leaves torn logs, which another one resumes.
"""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from types import ModuleType

from inquitree_gym.errors import InquiTreeError, LogError, OptionError, require
from inquitree_gym.runner.chats import Terms
from inquitree_gym.runner.playing import Tell, interleaved
from inquitree_gym.runner.ray_crew import Crew
from inquitree_gym.runner.stop_conditions import Stops
from inquitree_gym.runner.study import Cell, Study

LOCAL = "local"
BATCH = 25
"""Episodes at most that a worker is given at a time, of those whose agent asks no model."""
_PATIENCE = 10.0
"""Seconds for a cluster to answer."""
_CLUSTERED = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray reads it when it is imported; with 0 it uses the loopback address alone, on every system."""
_STORE = 100_000_000
"""Bytes of memory of a local cluster for objects that workers share, of which there are hardly any."""


@dataclass(frozen=True)
class OnRay:
    """Plays episodes on a Ray cluster; give it to `run_study` as ``play``.

    The folder of the run has to be on a file system that all machines of the cluster share, under the same path; so
    have the folder of the command, and the trees and the cache of replies where there are any. Keys are read from the
    environment of the machines. Caps and rates hold for all workers together.
    """

    address: str = LOCAL
    """``local`` starts a cluster on this machine, reachable from nowhere else, and ends it afterwards; else the address
    of one that runs. A connection that this process has already is used instead, and left open."""

    async def __call__(
        self, study: Study, folder: Path, cells: Sequence[Cell], terms: Terms, stops: Stops, tell: Tell
    ) -> None:
        """See `play_cells`.

        Raises:
            InquiTreeError: Ray cannot be reached, a machine does not see the folders, or a fault concerns the run.
            MissingExtraError: Ray is not installed.
        """
        if terms.paces:
            raise OptionError("workers on Ray cannot share a pace of this process; give the models rates in the study")
        if not cells:
            return
        with connected(self.address), _stamped(folder) as stamp:
            crew = Crew(study, folder.resolve(), terms, stops, tell, stamp)
            try:
                await crew.play(_batches([cell for cell in cells if not cell.model], crew.size), crew.size)
                await crew.play([[cell] for cell in interleaved(cells)], terms.max_concurrency)
            finally:
                crew.dismiss()


def _batches(cells: Sequence[Cell], workers: int) -> list[Sequence[Cell]]:
    """Return the cells in batches, small enough that the workers end at about the same time."""
    size = min(BATCH, max(1, len(cells) // (4 * workers)))
    return [cells[start : start + size] for start in range(0, len(cells), size)]


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Be connected to a cluster during the block; see `OnRay.address`.

    Raises:
        InquiTreeError: there is none, or one on this machine could not be kept to it.
        MissingExtraError: Ray is not installed.
    """
    _look_for(address)
    with _variable(_CLUSTERED, "0") if address == LOCAL else nullcontext():
        ray = require("ray", "ray")
        if ray.is_initialized():
            yield
            return
        _look_for(address)
        _connect(ray, address)
        try:
            if address == LOCAL and not ip_address(ray.util.get_node_ip_address()).is_loopback:
                raise InquiTreeError(
                    f"Ray was imported before {_CLUSTERED} could be set to 0, so its cluster would be reachable from "
                    "other machines; set that variable for the whole process, or call ray.init yourself"
                )
            yield
        finally:
            ray.shutdown()


def _connect(ray: ModuleType, address: str) -> None:
    own = {"include_dashboard": False, "object_store_memory": _STORE} if address == LOCAL else {}
    at_end = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **own)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InquiTreeError(
            f"Ray cannot be reached at '{address}': {error}; give the address of a cluster that runs, or '{LOCAL}'"
        ) from error
    if at_end is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, at_end)  # Ray has put its own in this place, which ends the process at once


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable during the block, for this process and those that it starts."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _look_for(address: str) -> None:
    """See that there is something at an address: Ray itself tries for minutes, and then ends the process."""
    host, _, port = address.rpartition(":")
    if address in (LOCAL, "auto"):
        return
    if "/" in host or not host or not port.isdigit():
        raise OptionError(
            f"'{address}' is no address of a Ray cluster; give HOST:PORT, auto for the one that runs on this machine, "
            f"or {LOCAL} for one of its own"
        )
    try:
        socket.create_connection((host, int(port)), _PATIENCE).close()
    except OSError as error:
        raise InquiTreeError(f"no Ray cluster answers at '{address}': {error}; start one, or take '{LOCAL}'") from error


@contextmanager
def _stamped(folder: Path) -> Iterator[Path]:
    """Put a file into the folder, by which workers know it."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".ray-") as stamp:
            yield Path(stamp.name).resolve()
    except OSError as error:
        raise LogError(f"cannot write to '{folder}': {error.strerror}; choose another folder with --out") from error
