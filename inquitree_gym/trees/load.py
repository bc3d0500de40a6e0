"""Read and write tree files. Untrusted files are data: capped in size, validated whole, never executed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from inquitree_gym.errors import TreeError, UnknownTreeError, suggest
from inquitree_gym.trees.catalogue import CATALOGUE, RESTRICTED
from inquitree_gym.trees.places import TREES_VARIABLE, builtin_file, builtin_ids, user_files
from inquitree_gym.trees.schema import Tree

MAX_FILE_BYTES = 8_000_000


def load_tree(tree: str | os.PathLike[str] | Tree) -> Tree:
    """Return the tree behind an id (``"paper12"``, ``"12"``), a path to a file, or a `Tree` itself.

    Raises:
        UnknownTreeError: no such id or file; or the paper's tree may not be distributed.
        TreeError: the file is at fault; every fault is listed with its node.
    """
    if isinstance(tree, Tree):
        return tree
    name = os.fspath(tree)
    if Path(name).suffix == ".json" or os.sep in name:
        return load_file(name)
    return _load_id(f"paper{int(name)}" if name.isascii() and name.isdigit() else name)


def load_file(path: str | os.PathLike[str]) -> Tree:
    """Read and validate one tree file; see `load_tree` for the errors."""
    file = Path(path).expanduser()
    if not file.is_file():
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
        f"no tree has the id '{name}'{suggest(name, known)}; known ids: {', '.join(known)}. "
        f"A path to a .json file works as well."
    )


@lru_cache(maxsize=64)
def _load_builtin(name: str) -> Tree:
    return parse_tree(builtin_file(name).read_bytes(), name)


def _refuse_doubtful_json(document: bytes, where: str) -> None:
    """Refuse what a JSON reader could take in two ways: repeated keys, NaN, bytes that are no UTF-8."""
    repeated: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        repeated.extend(f"key '{key}' stands twice in one object" for key in dict.fromkeys(keys) if keys.count(key) > 1)
        return dict(pairs)

    def no_constant(name: str) -> float:
        raise TreeError(where, [f"holds {name}, which is not JSON"])

    try:
        json.loads(document.decode(), object_pairs_hook=unique, parse_constant=no_constant)
    except UnicodeDecodeError as error:
        raise TreeError(where, [f"is not UTF-8 text at byte {error.start}"]) from None
    except RecursionError:
        raise TreeError(where, ["is nested too deeply for a tree"]) from None
    except json.JSONDecodeError as error:
        raise TreeError(where, [f"is not JSON at line {error.lineno}, column {error.colno}: {error.msg}"]) from None
    if repeated:
        raise TreeError(where, repeated)


def _faults(error: ValidationError, document: Any) -> Iterator[str]:
    for fault in error.errors(include_url=False, include_input=False):
        if fault["type"] == "not_playable":
            yield from map(str, fault["ctx"]["list"])
        else:
            yield f"{_place(fault['loc'], document)}: {fault['msg']}"


def _place(location: tuple[int | str, ...], document: Any) -> str:
    """Name a place by node ids where there are any: ``s3 › s3a › result``."""
    names: list[str] = []
    for key in location:
        inside = document[key] if _holds(document, key) else None
        named = inside.get("id") if isinstance(inside, dict) else None
        if isinstance(named, str):
            names[-1:] = [named]
        else:
            names.append(str(key))
        document = inside
    return " › ".join(names) or "document"


def _holds(document: Any, key: int | str) -> bool:
    if isinstance(document, list):
        return isinstance(key, int) and key < len(document)
    return isinstance(document, dict) and key in document
