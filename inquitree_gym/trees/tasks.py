"""Projection tasks by id or path: those of trees with a disclosure, and files that hold a task alone."""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Literal

from inquitree_gym.errors import Fault, TreeError, UnknownTreeError
from inquitree_gym.trees.catalogue import builtin_ids, user_files
from inquitree_gym.trees.disclosure import TOLD, ProjectionTask, swapped_task, tree_task
from inquitree_gym.trees.load import (
    id_faults,
    is_path,
    load_tree,
    parse_tree,
    read_document,
    refuse_ambiguous_json,
    validated,
)
from inquitree_gym.trees.rules import fault
from inquitree_gym.trees.schema import Tree

TASK_FORMAT = "projection/1"
TaskKind = Literal["inquiry", "projection"]
"""A tree, which is played as an inquiry, or a projection task."""

TaskLike = str | os.PathLike[str] | Tree | ProjectionTask
"""An id, a path of a tree or task file, a tree with a disclosure, or a task."""


def load_task(task: TaskLike) -> ProjectionTask:
    """Return the projection task with an id (``"paper12"``, ``"12"``), at a path, or of a tree.

    ``"paper12-told-paper5"`` is a control, which scores the claims of paper 12 and discloses paper 5.

    Raises:
        UnknownTreeError: the id or file does not exist, or the tree has no disclosure.
        TreeError: the file is invalid; every fault is listed with its place.
    """
    if isinstance(task, ProjectionTask):
        return task
    if isinstance(task, Tree):
        return _task_of(task)
    if is_path(task):
        return parse_task(read_document(task), where=str(task))
    if str(task) not in builtin_ids() and (file := user_files().get(str(task))) is not None:
        found = load_user_file(file)
        return _task_of(found) if isinstance(found, Tree) else found
    scored, swapped, told = str(task).partition(TOLD)
    return swapped_task(load_task(scored), load_task(told)) if swapped else _task_of(load_tree(task))


def builtin_tasks() -> tuple[str, ...]:
    """Return the ids of the shipped tasks, in the order of the shipped trees."""
    return builtin_ids()


def swapped_tasks() -> tuple[str, ...]:
    """Return the ids of the controls: each shipped task, with the disclosure of a task from another domain."""
    domains = {name: load_task(name).disclosure.domain for name in builtin_tasks()}
    ids = sorted(domains, key=lambda name: domains[name])
    shift = max(Counter(domains.values()).values())
    swaps = {scored: f"{scored}{TOLD}{told}" for scored, told in zip(ids, ids[shift:] + ids[:shift], strict=True)}
    return tuple(swaps[name] for name in domains)


def parse_task(document: bytes, where: str = "task") -> ProjectionTask:
    """Validate one JSON document: a task, or a tree with a disclosure.

    Raises:
        UnknownTreeError: it is a tree without a disclosure.
        TreeError: it is invalid; all faults that can be found at once are listed.
    """
    found = parse_document(document, where)
    return _task_of(found) if isinstance(found, Tree) else found


def parse_document(document: bytes, where: str) -> Tree | ProjectionTask:
    """Validate one JSON document: a task if it has the format of one, otherwise a tree.

    Raises:
        TreeError: the document is invalid; all faults that can be found at once are listed.
    """
    refuse_ambiguous_json(document, where)
    found = json.loads(document)
    if not isinstance(found, dict) or found.get("format") != TASK_FORMAT:
        return parse_tree(document, where)
    task = validated(ProjectionTask, document, where)
    if faults := _unsupported_evidence(task):
        raise TreeError(where, faults)
    return task


def load_user_file(file: Path) -> Tree | ProjectionTask:
    """Read a file in a folder of `INQUITREE_TREES`, which has to be named after the id of its tree or task.

    Raises:
        TreeError: the file is invalid, or its id cannot be registered; see `id_faults`.
    """
    found = parse_document(read_document(file), str(file))
    if faults := id_faults(found, file):
        raise TreeError(str(file), faults)
    return found


@lru_cache(maxsize=256)
def _task_of(tree: Tree) -> ProjectionTask:
    task = tree_task(tree)
    if task is None:
        raise UnknownTreeError(
            f"'{tree.id}' has no disclosure, so there is nothing to project; add one to the tree, or choose another"
        )
    return task


def _unsupported_evidence(task: ProjectionTask) -> list[Fault]:
    """Return a fault for each study that a claim names but the provenance does not; a task file has no tree."""
    known = {support.node for support in task.provenance.support}
    return [
        fault("T116", claim.id, f"disclosure.claims[{i}].evidence[{k}]", f"needs '{name}', which has no support")
        for i, claim in enumerate(task.claims)
        for k, name in enumerate(claim.evidence)
        if name not in known
    ]


def is_task_file(name: str) -> bool:
    """Return whether a name is the path of a file that has the format of a projection task."""
    if not is_path(name):
        return False
    with suppress(OSError), open(os.path.expanduser(name), "rb") as stream:
        return TASK_FORMAT.encode() in stream.read(200)
    return False
