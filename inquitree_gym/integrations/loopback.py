"""HTTP servers that only programs on this machine can reach."""

from __future__ import annotations

import socket
from typing import Any

from inquitree_gym.errors import OptionError, require

HOST = "127.0.0.1"


def listen(port: int) -> socket.socket:
    """Return a socket that listens on a port of loopback, a free one for 0. Raise `OptionError` for a port in use."""
    # Naming the protocol lets asyncio send small answers at once; without it each waits 40 ms.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen()  # clients may connect before the application has started
    except (OSError, OverflowError) as error:
        listening.close()
        raise OptionError(f"cannot listen on port {port}: {error}; choose another port, or 0 for a free one") from error
    return listening


def address(listening: socket.socket) -> str:
    """Return the URL of a server on ``listening``."""
    return f"http://{HOST}:{listening.getsockname()[1]}"


def serve(app: Any, listening: socket.socket, extra: str) -> None:
    """Serve an ASGI application until the process is interrupted. ``extra`` installs what it needs."""
    uvicorn = require("uvicorn", extra)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
