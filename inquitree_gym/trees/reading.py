"""Reading and writing of documents. Untrusted files are data: size-capped, validated whole, never executed."""

from __future__ import annotations

import codecs
import json
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import ValidationError

from inquitree_gym.errors import Fault, TreeError, UnknownTreeError
from inquitree_gym.files import MAX_TASK, read_input
from inquitree_gym.trees.fields import FrozenModel
from inquitree_gym.trees.rules import fault
from inquitree_gym.trees.validation import legible, validation_faults

M = TypeVar("M", bound=FrozenModel)

MAX_FAULTS = 10_000
"""Largest number of faults that are listed. More are only counted."""


def read_document(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file of at most `MAX_TASK` bytes, without a byte order mark. See `load.load_tree`."""
    file = os.path.expanduser(path)
    if not os.path.isfile(file):
        raise UnknownTreeError(f"no tree file at '{path}'; give a path to an existing .json file, or an id")
    content = read_input(file, limit=MAX_TASK, error=lambda message: _unreadable(os.fspath(path), message))
    return content.removeprefix(codecs.BOM_UTF8)


def validated(model: type[M], document: bytes, where: str) -> M:
    """Validate one JSON document against the model of its kind. See `load.parse_tree` for the errors."""
    refuse_ambiguous_json(document, where)
    try:
        return model.model_validate_json(document)
    except ValidationError as error:
        if (count := error.error_count()) > MAX_FAULTS:
            raise _too_many(where, count) from None
        raise TreeError(where, list(validation_faults(error, json.loads(document)))) from None


def dump_document(document: FrozenModel) -> str:
    """Return the canonical JSON: fields in schema order, two spaces, UTF-8, a newline at the end."""
    return json.dumps(document.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def refuse_ambiguous_json(document: bytes, where: str) -> None:
    """Refuse repeated keys, NaN and bytes that are not UTF-8, which JSON readers treat differently."""
    faults: dict[Fault, None] = {}

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            faults.update(dict.fromkeys(_repeated_keys(pairs, found)))
        return found

    def no_constant(name: str) -> None:
        faults[fault("T101", "", "", f"contains {name}, which is not JSON")] = None

    try:
        json.loads(document.decode(), object_pairs_hook=unique, parse_constant=no_constant)
    except UnicodeDecodeError as error:
        raise _unreadable(where, f"is not UTF-8 text at byte {error.start}") from None
    except RecursionError:
        raise _unreadable(where, "is nested too deeply for a tree") from None
    except json.JSONDecodeError as error:
        message = f"is not JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        raise _unreadable(where, message) from None
    except ValueError:
        raise _unreadable(where, "contains a whole number with too many digits") from None
    if faults:
        raise TreeError(where, list(faults)) if len(faults) <= MAX_FAULTS else _too_many(where, len(faults))


def _repeated_keys(pairs: list[tuple[str, Any]], found: dict[str, Any]) -> Iterator[Fault]:
    node = legible(found["id"]) if isinstance(found.get("id"), str) else ""
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            yield fault("T101", node, "", f"key '{legible(key)}' is repeated in one object; keep one")


def _unreadable(where: str, message: str) -> TreeError:
    return TreeError(where, [fault("T101", "", "", message)])


def _too_many(where: str, count: int) -> TreeError:
    message = f"{count:,} faults, more than the {MAX_FAULTS:,} that are listed; is this a research tree?"
    return TreeError(where, [fault("T102", "", "", message)])
