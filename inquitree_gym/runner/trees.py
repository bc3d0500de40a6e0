"""Trees and projection tasks of a run: copies in its folder, named by digest, so that a run can be read anywhere."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from inquitree_gym.errors import LogError, TreeError
from inquitree_gym.log import read_header
from inquitree_gym.runner.environment_kinds import INQUIRIES, PROJECTIONS, EnvironmentKind, T
from inquitree_gym.runner.folder import RunManifest, log_file, write_whole
from inquitree_gym.runner.specs import EpisodeSpec
from inquitree_gym.trees import Tree
from inquitree_gym.trees.disclosure import ProjectionTask
from inquitree_gym.trees.load import dump_document

DIGITS = 12
"""Hexadecimal digits of a digest in names."""


def version_name(name: str, digest: str) -> str:
    """Return the name of one version of a task: ``bread@1f0c2d3e4a5b``."""
    return f"{name}@{digest[:DIGITS]}"


def score_name(name: str, tree: Tree) -> str:
    """Return the name of a tree in tables: its id, or the name of a version played beside an earlier one."""
    return name if name == version_name(tree.id, tree.digest) else tree.id


def keep_task(folder: Path, task: Tree | ProjectionTask) -> None:
    """Copy a tree or a projection task into a run folder, unless its copy is there; the folder has to be writable."""
    kind = INQUIRIES if isinstance(task, Tree) else PROJECTIONS
    file = folder / kind.copies / f"{version_name(task.id, task.digest)}.json"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        write_whole(file, dump_document(task))


def kept_task(kind: EnvironmentKind[T], folder: str | os.PathLike[str], task_id: str, digest: str) -> T | None:
    """Return the version of a tree or a projection task that a run folder holds; None if it holds no copy.

    Args:
        kind: kind of the environment that plays the task.
        folder: run folder.
        task_id: id of the task, as in the header of a log.
        digest: full digest of the task, as in the header of a log.

    Raises:
        TreeError: the copy is damaged.
        LogError: the copy is not the version that its name states.
    """
    name = f"{version_name(task_id, digest)}.json"
    file = Path(folder) / kind.copies / name
    if Path(name).name != name or not file.is_file():
        return None
    task = kind.load(file)
    if task.digest != digest:
        raise LogError(f"'{file}' was changed: its digest is {task.digest[:DIGITS]}; bring the original copy back")
    return task


def run_task(kind: EnvironmentKind[T], folder: str | os.PathLike[str], manifest: RunManifest, name: str) -> T:
    """Return the task that a run calls ``name``: the copy in its folder, or if there is none the task of this machine.

    Raises:
        TreeError: there is neither a copy nor a task, or the file is invalid.
        LogError: the task of this machine is not the version of the run, or the copy was changed.
    """
    ref = manifest.trees.get(name)
    if ref is None:  # a run of a release that kept no copies
        return kind.load(name)
    if (kept := kept_task(kind, folder, ref.id, ref.digest)) is not None:
        return kept
    missing = f"'{folder}' lacks the copy of {name} in {kind.copies}/"
    try:
        task = kind.load(ref.id)
    except TreeError as error:
        raise LogError(f"{missing}; bring it back") from error
    if task.digest != ref.digest:
        raise LogError(f"{missing}, and {ref.id} has another version here; bring the copy back")
    return task


def logged_digests(folder: Path, specs: Iterable[EpisodeSpec]) -> set[str]:
    """Return the digests of the tasks that the logs of some episodes were played on; damaged headers are left out."""
    found = set()
    for spec in specs:
        try:
            found.add(read_header(log_file(folder, spec)).task.digest)
        except LogError:
            continue
    return found
