"""Connect to a Ray cluster, or start one on this machine."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from types import ModuleType

from inquitree_gym.errors import InquiTreeError, OptionError, require

LOCAL = "local"
_TIMEOUT = 10.0
"""Seconds for a cluster to answer."""
_CLUSTERED = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Read by Ray on import; 0 confines a cluster to the loopback address, on every system."""
_OBJECT_STORE = 100_000_000
"""Bytes of shared memory of a local cluster, which needs hardly any."""


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Connect to a cluster during the block; see `RayExecutor.address`.

    Raises:
        InquiTreeError: no cluster answers, or a local one would be reachable from other machines.
        MissingExtraError: Ray is not installed.
    """
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
