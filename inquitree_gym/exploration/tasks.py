"""Tasks of explorations, by id or path: the frozen ones over five test libraries, and files of anybody's own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import resources
from typing import Any

from inquitree_gym.errors import Fault, UnknownTreeError, suggest
from inquitree_gym.exploration.schema import ExplorationTask
from inquitree_gym.protocols import Outline, Tasks
from inquitree_gym.trees.catalogue import expand_names, is_path, user_files
from inquitree_gym.trees.reading import dump_document, read_document, validated

TaskLike = str | os.PathLike[str] | ExplorationTask
FROZEN = ("T1", "T2", "T3", "T4")
"""Types with frozen tasks, each with a file of one a line."""


@cache
def frozen_tasks() -> dict[str, ExplorationTask]:
    """Return the frozen tasks by id, in order."""
    folder = resources.files("inquitree_gym").joinpath("exploration", "data")
    texts = [folder.joinpath(f"{name.lower()}.jsonl").read_text(encoding="utf-8") for name in FROZEN]
    tasks = map(ExplorationTask.model_validate_json, "".join(texts).splitlines())
    return {task.id: task for task in tasks}


def _synthetic(name: str) -> ExplorationTask:
    """Return a synthetic question by its id. Raise `UnknownTreeError` for any other text."""
    from inquitree_gym.exploration.building.synthetic import spec_of, synthetic_question

    spec = spec_of(name)
    if spec is not None:
        return synthetic_question(spec)
    hint = suggest(name, frozen_tasks())
    raise UnknownTreeError(
        f"a task must be a frozen one, a synthetic one such as synthetic-t1-17, or a path, got '{name:.60}'{hint}. See "
        "inquitree list."
    )


@cache
def shelf_tasks() -> dict[str, ExplorationTask]:
    """Return the tasks on the shipped papers by id, in order."""
    file = resources.files("inquitree_gym").joinpath("exploration", "data", "shelf.jsonl")
    tasks = map(ExplorationTask.model_validate_json, file.read_text(encoding="utf-8").splitlines())
    return {task.id: task for task in tasks}


def _of_types(*types: str) -> tuple[str, ...]:
    return tuple(task.id for task in frozen_tasks().values() if task.kind in types)


class ExplorationTasks(Tasks[ExplorationTask]):
    """Tasks about libraries. See `protocols.Tasks` for the methods."""

    noun = "question"
    schema = ExplorationTask
    columns = ("id", "version", "group", "hops", "title")
    drawn = (
        "synthetic-t1-17 is a question of type T1 from the seed 17; even seeds are for training, odd ones for tests.\n"
        "-n2000 behind it takes a library of 2,000 documents in place of 200, and -h4 a T1 question of 4 records."
    )

    def expand(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return ids and paths. ``all`` stands for every frozen task, ``T1`` for a type, ``shelf`` for real papers."""
        types = {name: partial(_of_types, name) for name in FROZEN}
        return expand_names(names, {"all": partial(_of_types, *FROZEN), "shelf": lambda: tuple(shelf_tasks()), **types})

    def load(self, task: TaskLike) -> ExplorationTask:
        """Return a task by id or path, or as it is. ``synthetic-t1-17`` is drawn from its seed.

        Raises:
            UnknownTreeError: there is no such id or file.
            TreeError: the file is invalid. Every fault is listed with its place.
        """
        if isinstance(task, ExplorationTask):
            return task
        if is_path(task):
            return validated(ExplorationTask, read_document(task), str(task))
        known = {**frozen_tasks(), **shelf_tasks()} if str(task).startswith("shelf") else frozen_tasks()
        if str(task) in known:
            return known[str(task)]
        file = user_files().get(str(task))
        return _synthetic(str(task)) if file is None else validated(ExplorationTask, read_document(file), str(file))

    def dump(self, task: ExplorationTask) -> bytes:
        """Return the canonical document."""
        return dump_document(task).encode()

    def lint(self, task: ExplorationTask, embedder: Any = None) -> Sequence[Fault]:
        """Return what keeps the task from being proved. See `proofs`."""
        from inquitree_gym.exploration.proofs import proof_faults
        from inquitree_gym.exploration.providers import local_library

        provider = local_library(task.library)
        return [Fault("X101", task.id, fault) for fault in proof_faults(task, provider.library, provider)]

    def entries(self) -> Iterator[Mapping[str, Any]]:
        """Yield the frozen tasks, and those on the shipped papers."""
        for task in (*frozen_tasks().values(), *shelf_tasks().values()):
            yield {name: getattr(task, name, task.question) for name in self.columns} | {"playable": True}

    def outline(self, task: ExplorationTask, spoil: bool) -> Outline:
        """Return the question, and with ``spoil`` the answer and the path to it."""
        path = tuple(Outline(action) for action in task.path) if spoil else ()
        return Outline(f"{task.id} · {task.kind} · records: {task.hops}", task.question, path)


TASKS = ExplorationTasks()
