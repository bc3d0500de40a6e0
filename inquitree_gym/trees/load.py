"""Read and write tree files. Untrusted files are data: capped in size, validated whole, never executed."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from inquitree_gym.errors import TreeError, UnknownTreeError, suggest
from inquitree_gym.trees.catalogue import CATALOGUE, RESTRICTED
from inquitree_gym.trees.paths import TREES_VARIABLE, builtin_file, builtin_ids, user_files
from inquitree_gym.trees.schema import Tree

MAX_FILE_BYTES = 8_000_000
MAX_FAULTS = 10_000
"""More faults than this are counted, not listed."""


def load_tree(tree: str | os.PathLike[str] | Tree) -> Tree:
    """Return the tree behind an id (``"paper12"``, ``"12"``), a path to a file, or a `Tree` itself.

    Raises:
        UnknownTreeError: no such id or file; or the paper's tree may not be distributed.
        TreeError: the file is at fault; every fault is listed with its node.
    """
    if isinstance(tree, Tree):
        return tree
    if isinstance(tree, os.PathLike) or Path(tree).suffix == ".json" or os.sep in tree:
        return load_file(tree)
    return _load_id(f"paper{tree.lstrip('0')}" if tree.isascii() and tree.isdigit() else tree)


def load_file(path: str | os.PathLike[str]) -> Tree:
    """Read and validate one tree file; see `load_tree` for the errors."""
    file = Path(os.path.expanduser(path))
    if not os.path.isfile(file):
        raise UnknownTreeError(f"no tree file at '{file}'; give a path to an existing .json file, or an id")
    if (size := file.stat().st_size) > MAX_FILE_BYTES:
        raise TreeError(str(file), [f"{size:,} bytes; a tree file may hold at most {MAX_FILE_BYTES:,}"])
    return parse_tree(file.read_bytes(), where=str(file))


def parse_tree(document: bytes, where: str = "tree") -> Tree:
    """Validate one JSON document.

    Raises:
        TreeError: with every fault that can be told at once.
    """
    _refuse_doubtful_json(document, where)
    try:
        return Tree.model_validate_json(document)
    except ValidationError as error:
        if error.error_count() > MAX_FAULTS:
            raise TreeError(where, [_too_many(error.error_count())]) from None
        raise TreeError(where, list(_faults(error, json.loads(document)))) from None


def dump_tree(tree: Tree) -> str:
    """Return the canonical JSON: fields in schema order, two spaces, UTF-8, a newline at the end."""
    return json.dumps(tree.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def _load_id(name: str) -> Tree:
    shipped, own = builtin_ids(), user_files()
    if name in shipped:
        return _load_builtin(name)
    if name in own:
        return load_file(own[name])
    if name in RESTRICTED:
        raise UnknownTreeError(
            f"'{name}' is in the paper pool but its tree may not be distributed; write a tree file of your own "
            f"and pass its path, or put it as '{name}.json' in a folder named by {TREES_VARIABLE}"
        )
    if name in CATALOGUE:
        raise UnknownTreeError(f"the tree of '{name}' is not written yet; shipped are: {', '.join(shipped)}")
    known = [*shipped, *own]
    raise UnknownTreeError(
        f"no tree has the id '{name:.80}'{suggest(name, known)}; known ids: {', '.join(known)}. "
        f"A path to a .json file works as well."
    )


@lru_cache(maxsize=64)
def _load_builtin(name: str) -> Tree:
    return parse_tree(builtin_file(name).read_bytes(), name)


def _refuse_doubtful_json(document: bytes, where: str) -> None:
    """Refuse what a JSON reader could take in two ways: repeated keys, NaN, bytes that are no UTF-8."""
    doubts: dict[str, None] = {}

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            node = f"{_legible(found['id'])}: " if isinstance(found.get("id"), str) else ""
            counts = Counter(key for key, _ in pairs)
            twice = [_legible(key) for key in found if counts[key] > 1]
            doubts.update((f"{node}key '{key}' stands twice in one object", None) for key in twice)
        return found

    def no_constant(name: str) -> None:
        doubts[f"holds {name}, which is not JSON"] = None

    try:
        json.loads(document.decode(), object_pairs_hook=unique, parse_constant=no_constant)
    except UnicodeDecodeError as error:
        raise TreeError(where, [f"is not UTF-8 text at byte {error.start}"]) from None
    except RecursionError:
        raise TreeError(where, ["is nested too deeply for a tree"]) from None
    except json.JSONDecodeError as error:
        raise TreeError(where, [f"is not JSON at line {error.lineno}, column {error.colno}: {error.msg}"]) from None
    except ValueError:
        raise TreeError(where, ["holds a whole number with too many digits for a tree"]) from None
    if doubts:
        raise TreeError(where, list(doubts) if len(doubts) <= MAX_FAULTS else [_too_many(len(doubts))])


def _too_many(count: int) -> str:
    return f"{count:,} faults, more than the {MAX_FAULTS:,} that are listed; is this a research tree?"


def _legible(name: str) -> str:
    """Return a name from a file that nobody has checked yet, fit for a terminal."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in name[:80])


def _faults(error: ValidationError, document: Any) -> Iterator[str]:
    for fault in error.errors(include_url=False, include_input=False):
        if fault["type"] == "not_playable":
            yield from map(str, fault["ctx"]["list"])
        elif not _only_seems_short(fault, document):
            yield f"{_place(fault['loc'], document)}: {fault['msg']}"


def _only_seems_short(fault: ErrorDetails, document: Any) -> bool:
    """Tell whether a list counts as too short only because entries at fault, reported already, were not counted."""
    if fault["type"] != "too_short":
        return False
    for key in fault["loc"]:
        document = document[key]
    shortest: int = fault["ctx"]["min_length"]
    return len(document) >= shortest


def _place(location: tuple[int | str, ...], document: Any) -> str:
    """Name a place by node ids where there are any: ``s3 › s3a › result``."""
    names: list[str] = []
    for key in location:
        inside = document[key] if _holds(document, key) else None
        named = inside.get("id") if isinstance(inside, dict) else None
        if isinstance(named, str):
            names[-1:] = [_legible(named)]
        else:
            names.append(_legible(str(key)))
        document = inside
    return " › ".join(names) or "document"


def _holds(document: Any, key: int | str) -> bool:
    if isinstance(document, list):
        return isinstance(key, int) and key < len(document)
    return isinstance(document, dict) and key in document
