"""Replies kept on disk: a question is paid for once."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from inquitree_gym.errors import CacheError
from inquitree_gym.llm.middleware import Around, Way
from inquitree_gym.llm.model import Chat, Message
from inquitree_gym.llm.response import Completion
from inquitree_gym.trees.schema import CANARY

_COMPLETION: TypeAdapter[Completion] = TypeAdapter(Completion)


class ReplyCache:
    """One file per question, whole or not there. Threads and event loops may share it, processes its folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Keep replies in ``folder``. Makes nothing yet."""
        self.folder = Path(folder).expanduser()
        self._asked: dict[str, Future[Completion | None]] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[ReplyCache], tuple[Path]]:
        """Pickle by the folder: what is asked in this process concerns no other."""
        return type(self), (self.folder,)

    def find(self, key: str) -> Completion | None:
        """Return the reply that was kept under ``key``, as cached; None without one that can be read."""
        try:
            kept = json.loads(self._file(key).read_text(encoding="utf-8"))
            return _as_cached(_COMPLETION.validate_python(kept["completion"]))
        except (OSError, ValidationError, ValueError, KeyError, TypeError):
            return None

    def keep(self, key: str, asked: Mapping[str, Any], completion: Completion) -> None:
        """Keep a reply, beside what was asked for it.

        Raises:
            CacheError: it cannot be written, and would have to be paid for again.
        """
        file = self._file(key)
        document = {"canary": CANARY, "asked": dict(asked), "completion": completion._asdict()}
        self.make_room(key)
        try:
            descriptor, part = tempfile.mkstemp(dir=file.parent, prefix=file.stem, suffix=".part")
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump(document, stream, indent=1)
            os.replace(part, file)
        except OSError as error:
            Path(part).unlink(missing_ok=True)
            raise self._unwritable(error) from error

    def make_room(self, key: str) -> None:
        """Make the folder for a reply, so that what cannot be kept is not even asked for.

        Raises:
            CacheError: it cannot be made.
        """
        try:
            self._file(key).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error

    def begin(self, key: str) -> Future[Completion | None] | None:
        """Take it on to answer ``key``, which `end` ends; or return what will bring the answer of whoever has."""
        with self._lock:
            if key in self._asked:
                return self._asked[key]
            answer: Future[Completion | None] = Future()
            self._asked[key] = answer
        answer.set_running_or_notify_cancel()  # so that nobody who waits for it can cancel it for the others
        return None

    def end(self, key: str, completion: Completion | None) -> None:
        """Tell whoever waits the answer; None where there is none, so that the next one asks."""
        with self._lock:
            answer = self._asked.pop(key)
        answer.set_result(None if completion is None else _as_cached(completion))

    def _file(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def _unwritable(self, error: OSError) -> CacheError:
        return CacheError(
            f"replies cannot be kept in '{self.folder}', where they are to be found again: {error.strerror}; make room "
            "or name another folder with --cache, and run the same command again"
        )


class CachedChat(Around):
    """Asks for nothing that it has been told. Of equal questions at the same time one is asked.

    A question is the chat's `Chat.config`, the messages and the seed, also where the provider takes no seed: episodes
    of several seeds stay independent draws.
    """

    def __init__(self, chat: Chat, cache: ReplyCache) -> None:
        """Keep the replies of ``chat`` in ``cache``."""
        super().__init__(chat)
        self.cache = cache

    async def _through(self, way: Way, messages: Sequence[Message], seed: int | None) -> Completion:
        asked = {"chat": self.config, "messages": _digest(list(messages)), "seed": seed}
        key = _digest(asked)
        while (begun := self.cache.begin(key)) is not None:
            answer = await way.wait(begun)
            if answer is not None:
                return answer
        found = None
        try:
            found = self.cache.find(key) or await self._ask(way, messages, seed, key)
            if not found.cached:
                self.cache.keep(key, asked, found)
            return found
        finally:
            self.cache.end(key, found)

    async def _ask(self, way: Way, messages: Sequence[Message], seed: int | None, key: str) -> Completion:
        self.cache.make_room(key)
        return await way.ask(messages, seed)


def _as_cached(completion: Completion) -> Completion:
    """Return a reply as it is when it comes again: the same text for no money, without a request."""
    return completion._replace(cached=True, cost=0.0, seconds=0.0, retries=0)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
