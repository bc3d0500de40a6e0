"""Tasks of projections, by id or path: those of trees with a disclosure, and files that hold a task alone."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from inquitree_gym.errors import Fault, TreeError, UnknownTreeError, plural
from inquitree_gym.protocols import Outline, Tasks
from inquitree_gym.trees.catalogue import TASK_FORMAT, builtin_ids, expand_names, is_path, user_files
from inquitree_gym.trees.disclosure import LEVELS, TOLD, ProjectionTask
from inquitree_gym.trees.load import id_faults, load_tree, parse_tree
from inquitree_gym.trees.reading import dump_document, read_document, refuse_ambiguous_json, validated
from inquitree_gym.trees.rules import fault
from inquitree_gym.trees.schema import Tree

TaskLike = str | os.PathLike[str] | Tree | ProjectionTask
"""An id, a path of a tree or task file, a tree with a disclosure, or a task."""


def load_task(task: TaskLike) -> ProjectionTask:
    """Return the projection task with an id (``"paper12"``, ``"12"``), at a path, or of a tree.

    ``"paper12-told-paper5"`` is a control, which scores the claims of paper 12 and discloses paper 5.

    Raises:
        UnknownTreeError: the id or file does not exist, or the tree has no disclosure.
        TreeError: the file is invalid. Every fault is listed with its place.
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
    return _swapped_task(load_task(scored), load_task(told)) if swapped else _task_of(load_tree(task))


def swapped_tasks() -> tuple[str, ...]:
    """Return the ids of the controls: each shipped task, with the disclosure of a task from another domain."""
    domains = {name: load_task(name).disclosure.domain for name in builtin_ids()}
    ids = sorted(domains, key=lambda name: domains[name])
    shift = max(Counter(domains.values()).values())
    swaps = {scored: f"{scored}{TOLD}{told}" for scored, told in zip(ids, ids[shift:] + ids[:shift], strict=True)}
    return tuple(swaps[name] for name in domains)


def parse_task(document: bytes, where: str = "task") -> ProjectionTask:
    """Validate one JSON document: a task, or a tree with a disclosure. See `load_task` for the errors."""
    found = parse_document(document, where)
    return _task_of(found) if isinstance(found, Tree) else found


def parse_document(document: bytes, where: str) -> Tree | ProjectionTask:
    """Validate a JSON document, by its format a task or else a tree. Raise `TreeError` with all faults found."""
    refuse_ambiguous_json(document, where)
    found = json.loads(document)
    if not isinstance(found, dict) or found.get("format") != TASK_FORMAT:
        return parse_tree(document, where)
    task = validated(ProjectionTask, document, where)
    if faults := _unsupported_evidence(task):
        raise TreeError(where, faults)
    return task


def load_user_file(file: Path) -> Tree | ProjectionTask:
    """Read a file in a folder of `INQUITREE_TREES`, named after its id. See `parse_document` and `id_faults`."""
    found = parse_document(read_document(file), str(file))
    if faults := id_faults(found, file):
        raise TreeError(str(file), faults)
    return found


def load_user_task(file: Path) -> ProjectionTask | None:
    """Return the task in a user's file. None for a tree without a disclosure. See `load_user_file` for the errors."""
    found = load_user_file(file)
    return tree_task(found) if isinstance(found, Tree) else found


@lru_cache(maxsize=256)
def _task_of(tree: Tree) -> ProjectionTask:
    task = tree_task(tree)
    if task is None:
        raise UnknownTreeError(
            f"'{tree.id}' has no disclosure, so there is nothing to project; add one to the tree, or choose another"
        )
    return task


def _unsupported_evidence(task: ProjectionTask) -> list[Fault]:
    """Return a fault for each study that a claim names but the provenance does not. A task file has no tree."""
    known = {support.node for support in task.provenance.support}
    return [
        fault("T116", claim.id, f"disclosure.claims[{i}].evidence[{k}]", f"needs '{name}', which has no support")
        for i, claim in enumerate(task.claims)
        for k, name in enumerate(claim.evidence)
        if name not in known
    ]


def tree_task(tree: Tree) -> ProjectionTask | None:
    """Return the task of a tree. None for a tree without a disclosure."""
    if tree.disclosure is None:
        return None
    return ProjectionTask(
        format=TASK_FORMAT,
        id=tree.id,
        version=tree.version,
        canary=tree.canary,
        paper=tree.paper,
        disclosure=tree.disclosure,
        provenance=tree.provenance,
    )


def _swapped_task(scored: ProjectionTask, told: ProjectionTask) -> ProjectionTask:
    """Return a control, which scores the claims of one task and shows the disclosure of another."""
    own = scored.disclosure
    kept = {name: getattr(own, name) for name in ("domain", "hypothesis", "outcome", "claims")}
    mixed = told.disclosure.model_copy(update=kept)
    return scored.model_copy(update={"id": f"{scored.id}{TOLD}{told.id}", "disclosure": mixed})


class ProjectionTasks(Tasks[ProjectionTask]):
    """Projection tasks. See `protocols.Tasks` for the methods."""

    noun = "task"
    schema = ProjectionTask
    columns = ("id", "version", "group", "published", "title")

    def expand(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return ids and paths. ``all`` stands for every shipped task, ``swapped`` for one control for each of them."""
        return expand_names(names, {"all": builtin_ids, "swapped": swapped_tasks})

    def load(self, task: str | os.PathLike[str] | ProjectionTask) -> ProjectionTask:
        """See `load_task`."""
        return load_task(task)

    def dump(self, task: ProjectionTask) -> bytes:
        """Return the canonical document."""
        return dump_document(task).encode()

    def lint(self, task: ProjectionTask, embedder: Any = None) -> Sequence[Fault]:
        """See `lint_task`."""
        from inquitree_gym.embeddings.protocol import embedded
        from inquitree_gym.trees.disclosure_lint import lint_task

        return lint_task(task, None if embedder is None else partial(embedded, embedder))

    def entries(self) -> Iterator[Mapping[str, Any]]:
        """Yield the shipped tasks and those in the user's files, trees with a disclosure included."""
        for name in (*builtin_ids(), *(name for name in user_files() if name not in builtin_ids())):
            try:
                task = load_task(name)
            except UnknownTreeError:
                continue
            except TreeError as error:
                title = f"(cannot be played: {plural(len(error.faults), 'fault')}; see inquitree check {error.where})"
                yield dict.fromkeys(self.columns) | {"id": name, "title": title, "playable": False}
                continue
            values = {name: getattr(task, name) for name in ("id", "version", "group", "published")}
            yield values | {"title": task.paper.title, "playable": True}

    def outline(self, task: ProjectionTask, spoil: bool) -> Outline:
        """Return the disclosure level by level, and with ``spoil`` the hypothesis, the outcome and its claims."""
        parts = [Outline(level, "\n".join(task.disclosure.texts_of(level))) for level in LEVELS]
        if spoil:
            claims = tuple(Outline(f"{claim.id}  {claim.text}") for claim in task.claims)
            parts.append(Outline("Outcome", f"{task.disclosure.hypothesis}\n{task.disclosure.outcome}", claims))
        return Outline(f"{task.id} · {task.paper.title}", parts=tuple(parts))


TASKS = ProjectionTasks()
