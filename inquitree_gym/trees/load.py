"""Reading and writing of tree files. Untrusted files are data: size-capped, validated whole, never executed."""

from __future__ import annotations

import codecs
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from inquitree_gym.errors import Fault, OptionError, TreeError, UnknownTreeError, suggest
from inquitree_gym.files import MAX_TASK, read_input
from inquitree_gym.trees.catalogue import (
    RESTRICTED,
    TREES_VARIABLE,
    builtin_file,
    builtin_ids,
    is_path,
    user_files,
)
from inquitree_gym.trees.fields import FrozenModel
from inquitree_gym.trees.rules import fault
from inquitree_gym.trees.schema import Tree
from inquitree_gym.trees.validation import legible, validation_faults

if TYPE_CHECKING:
    from inquitree_gym.trees.disclosure import ProjectionTask

M = TypeVar("M", bound=FrozenModel)

WORLDS = "inquitree/2"
"""Format of trees with worlds."""
MAX_NEW = len(ascii_lowercase)
"""Largest number of subtopics of a new tree, and of studies of each, which have a letter each."""
MAX_FAULTS = 10_000
"""Largest number of faults that are listed. More are only counted."""


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


def read_document(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file of at most `MAX_TASK` bytes, without a byte order mark. See `load_tree`."""
    file = os.path.expanduser(path)
    if not os.path.isfile(file):
        raise UnknownTreeError(f"no tree file at '{path}'; give a path to an existing .json file, or an id")
    content = read_input(file, limit=MAX_TASK, error=lambda message: _unreadable(os.fspath(path), message))
    return content.removeprefix(codecs.BOM_UTF8)


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
    refuse_ambiguous_json(document, where)
    if _format_of(document) == WORLDS:
        from inquitree_gym.trees.world_schema import WorldTree

        return _validated(WorldTree, document, where)
    from inquitree_gym.trees.earlier_schema import EarlierTree

    return _validated(EarlierTree, document, where)


def validated(model: type[M], document: bytes, where: str) -> M:
    """Validate one JSON document against the model of its kind. See `parse_tree` for the errors."""
    refuse_ambiguous_json(document, where)
    return _validated(model, document, where)


def _validated(model: type[M], document: bytes, where: str) -> M:
    try:
        return model.model_validate_json(document)
    except ValidationError as error:
        if (count := error.error_count()) > MAX_FAULTS:
            raise _too_many(where, count) from None
        raise TreeError(where, list(validation_faults(error, json.loads(document)))) from None


def _format_of(document: bytes) -> str:
    """Return the format that a document names, or an empty string. The document has to be JSON."""
    content = json.loads(document)
    found = content.get("format") if isinstance(content, dict) else ""
    return found if isinstance(found, str) else ""


def dump_tree(tree: Tree) -> str:
    """Return the canonical JSON of a tree. See `dump_document`."""
    return dump_document(tree)


def dump_document(document: FrozenModel) -> str:
    """Return the canonical JSON: fields in schema order, two spaces, UTF-8, a newline at the end."""
    return json.dumps(document.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def new_tree(tree_id: str, subtopics: int = 2, studies: int = 2) -> Tree:
    """Return a tree to fill in: every text says TODO and what to write. Each subtopic needs the one before it.

    Each result has a conclusion item. A last one needs either of the first two results and the last one.

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
    """Repeat the one subtopic, study, item and entry of support of the skeleton under further names."""
    ids = [name + letter for name in names for letter in letters]
    needs = [[[name]] for name in ids]
    if len(names) > 1 and len(letters) > 1:
        needs.append([ids[:2], ids[-1:]])
    pattern, (item,), (support,) = document["subtopics"][0], document["conclusions"], document["provenance"]["support"]
    document["subtopics"] = [_renamed(pattern, "SUBTOPIC", name) for name in names]
    for i, (name, subtopic) in enumerate(zip(names, document["subtopics"], strict=True)):
        subtopic["prerequisites"] = names[:i][-1:]
        subtopic["studies"] = [_renamed(pattern["studies"][0], "STUDY", name + letter) for letter in letters]
        for study in subtopic["studies"]:
            study["fakes"][0]["told_by"] = [other for other in ids[:2] if other != study["id"]][:1]
    document["conclusions"] = [item | {"id": f"c{i}", "needs": groups} for i, groups in enumerate(needs, 1)]
    nodes = [node for name in names for node in (name, *(name + letter for letter in letters))]
    nodes = ["topic", *nodes, *(each["id"] for each in document["conclusions"])]
    document["provenance"]["support"] = [support | {"node": node} for node in nodes]


def _renamed(pattern: dict[str, Any], name: str, new: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(pattern).replace(name, new))
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
    return parse_tree(builtin_file(name).read_bytes(), name)


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
