"""Cache of replies on disk, so that no request is paid for twice."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from inquitree_gym.errors import CacheError, ServiceError
from inquitree_gym.files import write_whole
from inquitree_gym.llm.chat import Chat, ChatMiddleware, Completion, Message
from inquitree_gym.trees.fields import CANARY

_COMPLETION = TypeAdapter(Completion)


class ReplyCache:
    """One file per request, written atomically. Threads and event loops may share the object, processes the folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).expanduser()
        self._failure: OSError | None = None
        self._pending: dict[str, Future[Completion | None]] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[ReplyCache], tuple[Path]]:
        """Pickle the folder alone: pending requests belong to this process."""
        return type(self), (self.folder,)

    def get(self, key: str) -> Completion | None:
        """Return the reply stored under ``key``, marked as cached. None if there is none or it cannot be read."""
        try:
            stored = json.loads(self._file(key).read_text(encoding="utf-8"))
            return _as_cached(_COMPLETION.validate_python(stored["completion"]))
        except (OSError, ServiceError, ValidationError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, asked: Mapping[str, Any], completion: Completion) -> None:
        """Store a reply with its request. Failing that, the paid reply can still be used, but `make_folder` raises."""
        file = self._file(key)
        document = {"canary": CANARY, "asked": dict(asked), "completion": dataclasses.asdict(completion)}
        try:
            write_whole(file, json.dumps(document, indent=1).encode())
        except OSError as error:
            self._failure = error

    def make_folder(self, key: str) -> None:
        """Create the folder of a reply, so that no request is made whose reply could not be stored.

        Raises:
            CacheError: it cannot be created, or an earlier reply could not be stored.
        """
        if self._failure is not None:
            raise self._unwritable(self._failure) from self._failure
        try:
            self._file(key).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error

    def claim(self, key: str) -> Future[Completion | None] | None:
        """Claim the request ``key`` until `release`. If it is claimed already, return the future of its reply."""
        with self._lock:
            if key in self._pending:
                return self._pending[key]
            reply = self._pending[key] = Future()
        reply.set_running_or_notify_cancel()  # so that no waiting caller can cancel it for the others
        return None

    def release(self, key: str, completion: Completion | None) -> None:
        """Pass the reply to the waiting callers. None lets one of them make the request."""
        with self._lock:
            reply = self._pending.pop(key)
        reply.set_result(None if completion is None else _as_cached(completion))

    def _file(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def _unwritable(self, error: OSError) -> CacheError:
        return CacheError(
            f"cannot write replies to the cache '{self.folder}': {error.strerror}; free some space or choose another "
            "folder with --cache, and run the same command again"
        )


class CachedChat(ChatMiddleware):
    """Middleware that answers known requests from a cache. Of equal concurrent requests only one is made.

    Requests are equal if the chat's `Chat.config`, the messages and the seed are. The seed counts even if the provider
    ignores it, so that episodes of several seeds stay independent draws.
    """

    def __init__(self, chat: Chat, cache: ReplyCache, *, keeps_cut: bool = True) -> None:
        """Keep the replies of ``chat`` in ``cache``, also those that were cut off, unless they are asked for again."""
        super().__init__(chat)
        self.cache = cache
        self._passing = ("context",) if keeps_cut else ("context", "cut")

    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        """Return the cached reply, or that of the wrapped chat.

        Raises:
            CacheError: replies cannot be stored, so no request is made. The reply that showed it was returned.
        """
        asked = {"chat": self.config, "messages": _digest(list(messages)), "seed": seed}
        key = _digest(asked)
        while (pending := self.cache.claim(key)) is not None:
            if (reply := await asyncio.wrap_future(pending)) is not None:
                return reply
        found = None
        try:
            found = self.cache.get(key)
            if found is None:
                self.cache.make_folder(key)
                found = await self.chat.complete(messages, seed=seed)
                # Asked again, the model may give a text.
                if not (found.cached or found.used_up or found.end in self._passing):
                    self.cache.put(key, asked, found)
            return found
        finally:
            self.cache.release(key, found)


def _as_cached(completion: Completion) -> Completion:
    """Return the reply as from the cache: free, and without a request."""
    return dataclasses.replace(completion, cached=True, cost=0.0, seconds=0.0, retries=0)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
