"""`map` over the processors of this machine or of a Ray cluster, and the connection to such a cluster."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from ipaddress import ip_address
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import inquitree_gym
from inquitree_gym.errors import InquiTreeError, OptionError, require
from inquitree_gym.protocols import Mapped

A = TypeVar("A")
R = TypeVar("R")

LOCAL = "local"
_TIMEOUT = 10.0
"""Seconds for a cluster to answer."""
_CLUSTERED = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Read by Ray on import. 0 confines a cluster to the loopback address, on every system."""
_OBJECT_STORE = 100_000_000
"""Bytes of shared memory of a local cluster, which needs hardly any."""


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Connect to a cluster during the block. See `RayExecutor.address`. Raise `InquiTreeError` if none can be used."""
    _check_address(address)
    before = os.environ.get(_CLUSTERED)
    if address == LOCAL:
        os.environ[_CLUSTERED] = "0"
    try:
        ray = require("ray", "ray")
        if ray.is_initialized():
            yield
            return
        try:
            _connect(ray, address)
            yield
        finally:
            ray.shutdown()
    finally:
        os.environ.pop(_CLUSTERED, None)
        os.environ.update({} if before is None else {_CLUSTERED: before})


def _connect(ray: ModuleType, address: str) -> None:
    local = {"include_dashboard": False, "object_store_memory": _OBJECT_STORE} if address == LOCAL else {}
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **local)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InquiTreeError(
            f"Ray cannot be reached at '{address}': {error}; give the address of a running cluster, or '{LOCAL}'"
        ) from error
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)  # Ray's own handler would end the process at once
    if address == LOCAL and not ip_address(ray.util.get_node_ip_address()).is_loopback:
        raise InquiTreeError(
            f"Ray was imported before {_CLUSTERED} could be set to 0, so its cluster would be reachable from other "
            "machines; set that variable for the whole process, or call ray.init yourself"
        )


def _check_address(address: str) -> None:
    """Check that something listens at an address, since Ray itself retries for minutes and then ends the process."""
    host, _, port = address.rpartition(":")
    if address in (LOCAL, "auto"):
        return
    if "/" in host or not host or not port.isdigit():
        raise OptionError(
            f"'{address}' is no address of a Ray cluster; give HOST:PORT, auto for the one that runs on this machine, "
            f"or {LOCAL} for one of its own"
        )
    try:
        socket.create_connection((host, int(port)), _TIMEOUT).close()
    except OSError as error:
        raise InquiTreeError(f"no Ray cluster answers at '{address}': {error}; start one, or take '{LOCAL}'") from error


NO_CPU = 300.0
"""Seconds in which a cluster without a processor may get one."""
MAX_DEATHS = 3
"""Deaths of workers after which a piece of work is given up."""
_MAX_CHUNK = 5_000
"""Most items of one task, whose results lie in memory together."""
MANY = 2_000
"""Items from which on the processors of this machine share them."""


@contextmanager
def map_on(address: str | None, path: Path) -> Iterator[Mapped]:
    """Return a `map` over the processors of a cluster during the block, or of this machine if ``address`` is None.

    Each processor gets about four chunks of the items, with a copy of the function for each. A chunk whose machine dies
    is worked on again elsewhere. All machines must have ``path`` under the same name. Entering the block raises the
    errors of `connected`; the mapping raises those of the function, and `InquiTreeError` for a machine without ``path``
    or if `MAX_DEATHS` machines or processes have died on one chunk. See `check_processors`, too.
    """
    if address is None:
        yield map_here
        return
    with connected(address):
        yield lambda function, items: _map(function, items, path.resolve())


def map_here(function: Callable[[A], R], items: Sequence[A], many: int | None = None) -> Iterator[R]:
    """Map in this process, or from ``many`` items on, by default `MANY`, in one for each processor."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if len(items) < (MANY if many is None else many) or cpus == 1:
        yield from map(function, items)
        return
    with ProcessPoolExecutor(min(cpus, len(items)), get_context("spawn")) as pool:
        try:
            yield from pool.map(function, items, chunksize=_chunk(len(items), cpus))
        except BrokenProcessPool as error:
            raise InquiTreeError(
                "a process of this command was ended, maybe for want of memory; give fewer logs"
            ) from error


def _chunk(items: int, cpus: int) -> int:
    return min(_MAX_CHUNK, max(1, -(-items // (4 * cpus))))


def _map(function: Callable[[A], R], items: Sequence[A], path: Path) -> Iterator[R]:
    ray: Any = require("ray", "ray")
    cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))
    size = _chunk(len(items), cpus)
    task = ray.remote(num_cpus=1, max_retries=MAX_DEATHS - 1)(_work)
    place = inquitree_gym.__version__, os.getcwd(), path
    tasks = (task.remote(function, items[at : at + size], *place) for at in range(0, len(items), size))
    pending = deque(islice(tasks, 2 * cpus))
    while pending:
        try:
            while not ray.wait([pending[0]], timeout=NO_CPU)[0]:
                check_processors()
            yield from ray.get(pending.popleft())
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError as error:
            raise InquiTreeError(f"a task on Ray was lost for good: {error}; run the same command again") from error
        pending.extend(islice(tasks, 1))


def check_processors() -> None:
    """Raise `InquiTreeError` if the cluster has no processor, to be called `NO_CPU` seconds after the last progress."""
    if not require("ray", "ray").cluster_resources().get("CPU"):
        raise InquiTreeError(
            f"the Ray cluster has had no processor for {NO_CPU:g} s: its nodes died or left; add a node, and run "
            "the same command again"
        )


def _work(function: Callable[[A], R], items: Sequence[A], version: str, directory: str, path: Path) -> list[R]:
    join_machine(version, directory, path)
    return list(map(function, items))


def join_machine(version: str, directory: str, path: Path) -> None:
    """Enter the working directory of the driver. Raise `OptionError` if this machine lacks its release or its files."""
    host = socket.gethostname()
    if inquitree_gym.__version__ != version:
        raise OptionError(
            f"{host} has inquitree-gym {inquitree_gym.__version__}, and the command was given with {version}; "
            "install the same release on every machine"
        )
    if not path.exists() or not os.path.isdir(directory):
        folder = path.parent if path.name.startswith(".") else path
        raise OptionError(
            f"{host} does not have '{folder}' and '{directory}' as the machine where the command was given has "
            "them; put them on a file system that all machines share, under the same paths"
        )
    os.chdir(directory)
