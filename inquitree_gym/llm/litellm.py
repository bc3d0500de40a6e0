"""Import of litellm on first use, silent and offline, its messages without keys, and its event loop.

litellm keeps its connections per event loop. The loops of callers come and go with every `asyncio.run`: they would
leave connections open, or pass them to a later loop that cannot use them. So this process has one loop for them, in a
background thread, and a bridge to it for synchronous callers.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
import warnings
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar

from inquitree_gym.errors import require

MIN_SECRET = 8
"""Characters from which a key is recognised in any text."""
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SECRET = re.compile(r"\b(?:(?:sk|pk|rk|gsk|xai|hf|r8|pplx)[-_]|AIza)[\w*-]{8,}|(?<=\bbearer )\S+", re.IGNORECASE)


def load_litellm() -> Any:
    """Import litellm. Raise `MissingExtraError` without the extra ``llm``."""
    # By default, litellm downloads a price map when it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm: Any = require("litellm", "llm")
    litellm.suppress_debug_info = True  # otherwise it prints advice to stdout with every error
    _hush()
    return litellm


@cache
def _hush() -> None:
    """Silence warnings about responses: pydantic's about their types, and litellm's own, which repeat their texts."""
    if "LITELLM_LOG" not in os.environ:
        logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", "Items? .* using the `ReadOnly` qualifier", UserWarning)


def scrub(text: str, sent: str = "") -> str:
    """Return a service's ``text`` without secrets.

    They are the key that was ``sent``, the values of environment variables that name a secret, and likely keys.

    >>> scrub("Incorrect API key provided: sk-12345678. Header: Bearer abc")
    'Incorrect API key provided: [key]. Header: Bearer [key]'
    """
    if sent:
        text = text.replace(sent, "[key]")
    return _SECRET.sub("[key]", _without_secrets_of_environment(text))


def _without_secrets_of_environment(text: str) -> str:
    for name, value in os.environ.items():
        if len(value) >= MIN_SECRET and names_secret(name):
            text = text.replace(value, f"[{name}]")
    return text


def names_secret(variable: str) -> bool:
    """Tell whether the name of an environment variable suggests a secret."""
    return _SECRET_NAME.search(variable) is not None


T = TypeVar("T")

GRACE = 10.0
"""Seconds that an interrupted coroutine gets to clean up."""


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start ``coroutine`` on the loop. Cancelling the future cancels it."""
    return asyncio.run_coroutine_threadsafe(coroutine, _loop(os.getpid()))


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run ``coroutine`` on the loop and wait for its result, even if this thread runs an event loop of its own.

    An interrupted wait (Ctrl-C) cancels the coroutine and waits up to `GRACE` seconds for it to clean up.

    Raises:
        RuntimeError: called on the loop itself, which would wait for ever.
    """
    if threading.current_thread().name == _THREAD:
        coroutine.close()
        raise RuntimeError("a synchronous call inside a coroutine would block its event loop; await it instead")
    ended = threading.Event()

    async def run() -> T:
        try:
            return await coroutine
        finally:
            ended.set()

    future = submit(run())
    try:
        return future.result()
    finally:
        if future.cancel():
            ended.wait(GRACE)


_THREAD = "inquitree-chat"


@cache
def _loop(process: int) -> asyncio.AbstractEventLoop:
    """Return the loop of a process. A fork inherits the parent's memory but none of its threads."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=_run_forever, args=[loop], name=_THREAD, daemon=True).start()
    return loop


def _run_forever(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit):  # raised by a coroutine, and passed on to its caller by the future
            continue
