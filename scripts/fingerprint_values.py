"""Values of `fingerprints.py`: digests of plain data, of logged episodes, arrays, requests, JSON and tables."""

from __future__ import annotations

import csv
import hashlib
import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FIELDS = (
    "kind", "state", "node", "fake", "wording", "credit", "accepted", "forced", "hint_level", "limit",
    "reason", "decision", "level", "f1",
)  # fmt: skip
"""Fields of an event in the log that count. An event has those of its kind."""
UNCOUNTED = re.compile(r"folder|run|file|path|fingerprint|.*digest|started|.*seconds|cost-time")
"""Keys in the JSON of the command line, and tables, that depend on the machine or on the format of logs."""
DIGITS = 6
"""Digits of a number that count."""

Cases = Iterator[tuple[str, str]]
"""Names and values of cases."""


def digest(value: Any) -> str:
    """Return 12 hexadecimal digits of a value in plain form."""
    text = json.dumps(plain(value), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def plain(value: Any) -> Any:
    """Return a value as JSON has it, with numbers rounded and the keys of `UNCOUNTED` left out."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items() if not UNCOUNTED.fullmatch(str(key))}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return round(value, DIGITS) + 0.0
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    return value if isinstance(value, str | int | type(None)) else str(value)


def columns(name: str, value: Any) -> Cases:
    """Yield the digests of the parts of a JSON document: one per key, over all entries of a list."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            if not UNCOUNTED.fullmatch(key):
                yield from columns(f"{name}.{key}", each)
    elif isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        yield f"{name} size", str(len(value))
        for key in dict.fromkeys(key for each in value for key in each):
            if not UNCOUNTED.fullmatch(key):
                yield f"{name}[].{key}", digest([each.get(key) for each in value])
    else:
        yield name, digest(value)


def tables(name: str, folder: Path) -> Cases:
    """Yield the digest of each column of each CSV file under a folder."""
    for file in sorted(folder.rglob("*.csv")):
        if UNCOUNTED.fullmatch(file.stem):
            continue
        heading, *rows = csv.reader(file.read_text(encoding="utf-8").splitlines())
        for place, title in enumerate(heading):
            if not UNCOUNTED.fullmatch(title):
                yield f"{name} {file.relative_to(folder)}: {title}", digest([row[place] for row in rows])


def event_fields(turn: Any) -> dict[str, Any]:
    """Return the fields of the event of a logged turn that count."""
    return {name: getattr(turn.event, name) for name in FIELDS if hasattr(turn.event, name)}


def summary(episode: Any) -> str:
    """Return turns, return and digest of a logged episode."""
    turns = [
        (turn.observation, turn.action, turn.reward, turn.terminated, turn.truncated, event_fields(turn))
        for turn in episode.turns
    ]
    end = (episode.status, episode.footer.observation)
    return f"{len(turns)} turns, {episode.footer.episode_return:.4f}, {digest([turns, end])}"


def note_arrays(found: Any, values: np.ndarray, infos: Mapping[str, Any]) -> None:
    """Add numbers, rounded, and infos to a digest."""
    found.update((np.round(values.astype(np.float32), 4) + 0.0).tobytes())
    for name, info in sorted(infos.items()):
        numbers = isinstance(info, np.ndarray) and info.dtype != object
        found.update(name.encode() + (info.astype(np.int64).tobytes() if numbers else digest(info).encode()))


def sent(name: str, bodies: Sequence[Mapping[str, Any]]) -> Cases:
    """Yield the number and the parts of requests, which may have been sent in any order."""
    yield f"{name}: requests", str(len(bodies))
    yield f"{name}: system messages", digest(sorted({body["messages"][0]["content"] for body in bodies}))
    yield f"{name}: messages", digest(sorted(digest(body["messages"]) for body in bodies))
    yield f"{name}: settings", digest(sorted(digest({**body, "messages": 0}) for body in bodies))


def parameters(thing: Any) -> str:
    """Return the digest of names and defaults of the parameters of a function or class, or of a value."""
    if not callable(thing):
        return digest(thing)
    try:
        given = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return type(thing).__name__
    return digest([(each.name, str(each.kind), getattr(each.default, "__name__", str(each.default))) for each in given])
