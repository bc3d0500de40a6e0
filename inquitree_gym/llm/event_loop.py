"""One event loop, in a thread of its own, for everything that is asked of services in this process.

litellm keeps connections per event loop. On the loops of callers, which come and go with every `asyncio.run`, they
would be left open, or found again by a later loop that cannot use them; here they are reused, with asyncio and without.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def begin(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start ``coroutine`` on the loop; cancelling the future cancels it."""
    return asyncio.run_coroutine_threadsafe(coroutine, _loop(os.getpid()))


@cache
def _loop(process: int) -> asyncio.AbstractEventLoop:
    """Return the loop of a process: a fork has the parent's memory and none of its threads."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="inquitree-chat", daemon=True).start()
    return loop
