"""Cassettes: every answer of a provider is kept under its request, and replayed without the provider."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError

from inquitree_gym.errors import InquiTreeError, OptionError
from inquitree_gym.exploration.actions import Test
from inquitree_gym.exploration.library import Document
from inquitree_gym.exploration.providers import Hit, Listing, Provider, ToolFault
from inquitree_gym.files import MAX_TASK, read_input, write_whole

LABEL = "cassette.json"
"""File of a cassette that says what is on it."""
_Answer = TypeVar("_Answer")


class CassetteError(InquiTreeError, RuntimeError):
    """A cassette cannot be read or written, or lacks a request."""


class Label(NamedTuple):
    """Name and digest of the provider on a cassette. One drawn at random stands for all that it will ever answer."""

    name: str
    digest: str


class Cassette:
    """A provider that keeps every answer of another, and answers a request that it knows without it."""

    def __init__(self, provider: Provider | None, folder: str | os.PathLike[str]) -> None:
        """Open the cassette of a folder, or begin one. Without a provider a request that it lacks is an error.

        Raises:
            OptionError: the cassette is of another provider.
            CassetteError: there is no cassette and no provider, or it cannot be read or written.
        """
        self._provider, self._folder = provider, Path(folder)
        file = self._folder / LABEL
        if provider is not None and not file.exists():
            self._write(file, Label(provider.name, provider.digest or uuid4().hex)._asdict())
        self.name, self.digest = _valid(file, Label)
        if provider is not None and (self.name, provider.digest or self.digest) != (provider.name, self.digest):
            raise OptionError(f"the cassette '{folder}' must be of {provider.name}, got {self.name}. Choose another.")

    def search(self, query: str) -> Sequence[Hit]:
        """See `Provider.search`."""
        return self._answer(tuple[Hit, ...], lambda live: tuple(live.search(query)), "search", query)

    def open(self, name: str) -> Document:
        """See `Provider.open`."""
        return self._answer(Document, lambda live: live.open(name), "open", name)

    def lookup(self, database: str, tests: Sequence[Test]) -> Listing:
        """See `Provider.lookup`."""
        return self._answer(Listing, lambda live: live.lookup(database, tests), "lookup", database, *tests)

    def _answer(self, kind: type[_Answer], ask: Callable[[Provider], _Answer], *request: Any) -> _Answer:
        """Return the kept answer to a request, or raise its kept fault. Without one ask the provider, and keep it."""
        asked = json.dumps(request, ensure_ascii=False)
        file = self._folder / f"{hashlib.sha256(asked.encode('utf-8', 'surrogatepass')).hexdigest()}.json"
        if not file.exists():
            if self._provider is None:
                fault = f"the cassette '{self._folder}' must have every request, got none of {asked:.200}"
                raise CassetteError(f"{fault}. Record it with the provider.")
            try:
                given = {"answer": TypeAdapter(kind).dump_python(ask(self._provider), mode="json")}
            except ToolFault as told:
                given = {"fault": str(told)}
            self._write(file, {"request": request, **given})
        kept = _valid(file, dict[str, Any])
        if "fault" in kept:
            raise ToolFault(kept["fault"])
        return _valid(file, kind, json.dumps(kept.get("answer")))

    def _write(self, file: Path, content: Any) -> None:
        try:
            write_whole(file, json.dumps(content, ensure_ascii=True, indent=1).encode())
        except OSError as error:
            raise CassetteError(f"cannot write '{file}': {error.strerror}. Choose another folder.") from error


def _valid(file: Path, kind: type[_Answer], text: str | None = None) -> _Answer:
    try:
        return TypeAdapter(kind).validate_json(text or read_input(file, limit=MAX_TASK, error=CassetteError))
    except ValidationError as error:
        raise CassetteError(
            f"'{file}' must be a file of a cassette, got other text. Record the cassette anew."
        ) from error
