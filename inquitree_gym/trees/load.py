"""Research trees by id and from files, and new ones to fill in."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from string import ascii_lowercase
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast, get_args, get_origin

from inquitree_gym.errors import Fault, OptionError, TreeError, UnknownTreeError, suggest
from inquitree_gym.trees.catalogue import RESTRICTED, TREES_VARIABLE, builtin_file, builtin_ids, is_path, user_files
from inquitree_gym.trees.document import MAX_AXES
from inquitree_gym.trees.fields import FrozenModel, written_digest
from inquitree_gym.trees.reading import dump_document, read_document, validated
from inquitree_gym.trees.rules import fault
from inquitree_gym.trees.schema import Tree
from inquitree_gym.trees.validation import legible

if TYPE_CHECKING:
    from inquitree_gym.trees.disclosure import ProjectionTask

M = TypeVar("M", bound=FrozenModel)

CHECKED = "checked.json"
"""File beside this module: SHA-256 of the file of each shipped tree, by id. ``research.shipped_vectors`` writes it."""
MAX_NEW = len(ascii_lowercase)
"""Largest number of subtopics of a new tree, and of studies of each, which have a letter each."""


def load_tree(tree: str | os.PathLike[str] | Tree) -> Tree:
    """Return the tree with an id (``"paper12"``, ``"12"``) or at a path. A `Tree` is returned as it is.

    Raises:
        UnknownTreeError: the id or file does not exist, or the paper's tree may not be distributed.
        TreeError: the file is invalid. Every fault is listed with its node.
    """
    if isinstance(tree, Tree):
        return tree
    if is_path(tree):
        return load_file(tree)
    name = str(tree)
    return _load_id(f"paper{name.lstrip('0')}" if name.isascii() and name.isdigit() else name)


def load_file(path: str | os.PathLike[str]) -> Tree:
    """Read and validate one tree file. See `load_tree` for the errors."""
    return parse_tree(read_document(path), where=os.fspath(path))


def load_user_tree(file: Path) -> Tree:
    """Read and validate a tree file in a folder of `INQUITREE_TREES`, which has to be named after the tree's id.

    Raises:
        TreeError: the file is invalid, or its id cannot be registered. See `id_faults`.
    """
    tree = load_file(file)
    if faults := id_faults(tree, file):
        raise TreeError(str(file), faults)
    return tree


def id_faults(tree: Tree | ProjectionTask, file: Path) -> list[Fault]:
    """Return the reasons why the tree or task of a user's file cannot be registered under its id.

    The id has to agree with the file name, and must not be that of a shipped tree.
    """
    faults: list[Fault] = []
    if tree.id in builtin_ids() and file.resolve() != Path(str(builtin_file(tree.id))).resolve():
        message = f"'{file.name}' has the id of a shipped tree; rename the file and its id"
        faults.append(fault("T103", "id", "id", message))
    if tree.id in ("synthetic", "menu") or tree.id.endswith("-menu"):
        message = f"'{tree.id}' would take the name of another environment; rename the file and its id"
        faults.append(fault("T103", "id", "id", message))
    if file.stem != tree.id:
        message = f"'{file.name}' holds the id '{tree.id}'; file name and id have to agree"
        faults.append(fault("T103", "id", "id", message))
    return faults


def parse_tree(document: bytes, where: str = "tree") -> Tree:
    """Validate one JSON document.

    Raises:
        TreeError: the document is invalid. All faults that can be found at once are listed.
    """
    return validated(Tree, document, where)


def dump_tree(tree: Tree) -> str:
    """Return the canonical JSON of a tree. See `dump_document`."""
    return dump_document(tree)


def new_tree(tree_id: str, subtopics: int = 2, studies: int = 2) -> Tree:
    """Return a tree to fill in: every text says TODO and what to write. Each subtopic needs the one before it.

    There are as many axes as subtopics, up to `MAX_AXES`. The k-th study of the i-th subtopic reads axis i + k, and one
    conclusion item examines each axis.

    Raises:
        OptionError: A number is below 1 or above `MAX_NEW`.
        TreeError: ``tree_id`` is no id, or that of a shipped tree.
    """
    for name, number in (("subtopics", subtopics), ("studies", studies)):
        if not 1 <= number <= MAX_NEW:
            raise OptionError(
                f"{name} must be an integer from 1 to {MAX_NEW}, got {number}. Write further ones yourself."
            )
    if tree_id in builtin_ids():
        raise TreeError(legible(tree_id), [fault("T103", "id", "id", "is the id of a shipped tree; take another one")])
    document = json.loads(resources.files(__package__).joinpath("skeleton.json").read_bytes()) | {"id": tree_id}
    _multiply(document, [f"s{i + 1}" for i in range(subtopics)], ascii_lowercase[:studies])
    return parse_tree(json.dumps(document).encode(), legible(tree_id))


def _multiply(document: dict[str, Any], names: Sequence[str], letters: str) -> None:
    """Repeat the one axis, subtopic, study, item and entry of support of the skeleton under further names."""
    axes = [f"a{i + 1}" for i in range(min(len(names), MAX_AXES))]
    readers: dict[str, list[str]] = {axis: [] for axis in axes}
    pattern, (item,), (support,) = document["subtopics"][0], document["conclusions"], document["provenance"]["support"]
    document["axes"] = [_renamed(document["axes"][0], AXIS=axis) for axis in axes]
    document["subtopics"] = []
    for i, name in enumerate(names):
        earlier = names[max(i, 1) - 1]
        subtopic = _renamed(pattern, SUBTOPIC=name, EARLIER=earlier) | {"studies": []}
        subtopic["prerequisites"] = subtopic["prerequisites"][: i > 0]
        for k, letter in enumerate(letters):
            axis = axes[(i + k) % len(axes)]
            readers[axis].append(name + letter)
            subtopic["studies"].append(_renamed(pattern["studies"][0], STUDY=name + letter, AXIS=axis))
        document["subtopics"].append(subtopic)
    document["conclusions"] = [
        _renamed(item, AXIS=axis) | {"id": f"c{i}", "needs": [found]}
        for i, (axis, found) in enumerate(readers.items(), 1)
    ]
    nodes = [node for name in names for node in (name, *(name + letter for letter in letters))]
    nodes = ["topic", *nodes, *(each["id"] for each in document["conclusions"])]
    document["provenance"]["support"] = [support | {"node": node} for node in nodes]


def _renamed(pattern: dict[str, Any], **names: str) -> dict[str, Any]:
    text = json.dumps(pattern)
    for name, new in names.items():
        text = text.replace(name, new)
    found: dict[str, Any] = json.loads(text)
    return found


def _load_id(name: str) -> Tree:
    shipped, own = builtin_ids(), user_files()
    if name in shipped:
        return _load_builtin(name)
    if name in own:
        return load_user_tree(own[name])
    if name in RESTRICTED:
        raise UnknownTreeError(
            f"'{name}' is in the paper pool but its tree may not be distributed; write a tree file of your own "
            f"and pass its path, or put it as '{name}.json' in a folder named by {TREES_VARIABLE}"
        )
    known = [*shipped, *own]
    raise UnknownTreeError(
        f"no tree has the id '{name:.80}'{suggest(name, known)}; known ids: {', '.join(known)}. "
        f"A path to a .json file works as well; so do the ids of trees in folders named by {TREES_VARIABLE}."
    )


@lru_cache(maxsize=64)
def _load_builtin(name: str) -> Tree:
    document = builtin_file(name).read_bytes()
    return shipped_tree(document, name) or parse_tree(document, name)


def shipped_tree(document: bytes, name: str) -> Tree | None:
    """Return the tree of a file that was validated when it was recorded. None for any other content.

    It equals what `parse_tree` returns for the same file, which takes several times as long.
    """
    if hashlib.sha256(document).hexdigest() != _checked().get(name):
        return None
    fields = json.loads(document)
    tree = _constructed(Tree, fields)
    fields.pop("disclosure", None)
    vars(tree)["digest"] = written_digest(fields)  # the cached property
    return tree


@cache
def _checked() -> dict[str, str]:
    found: dict[str, str] = json.loads(resources.files(__package__).joinpath(CHECKED).read_bytes())
    return found


def _constructed(model: type[M], fields: Mapping[str, Any]) -> M:
    annotations = model.model_fields
    values = {name: _value(annotations[name].annotation, value) for name, value in fields.items()}
    return cast(M, model.model_construct(set(fields), **values))


def _value(annotation: Any, value: Any) -> Any:
    """Return a JSON value in the type of its field: lists as tuples, objects as models."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _value(arguments[0], value)
    if origin is UnionType:
        (inner,) = (each for each in arguments if each is not NoneType)
        return None if value is None else _value(inner, value)
    if origin is tuple:
        return tuple(_value(arguments[0], each) for each in value)
    if origin is dict:
        return {key: _value(arguments[1], each) for key, each in value.items()}
    if isinstance(annotation, type) and issubclass(annotation, FrozenModel):
        return _constructed(annotation, value)
    return value
