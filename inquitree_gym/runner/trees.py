"""Trees of a run: copies in its folder, each named by its digest, so that a run can be read anywhere."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from inquitree_gym.errors import LogError, TreeError
from inquitree_gym.log import read_header
from inquitree_gym.runner.folder import RunManifest, log_file, write_whole
from inquitree_gym.runner.study import EpisodeSpec
from inquitree_gym.trees import Tree, dump_tree, load_tree

TREES = "trees"
"""Folder of the copies in a run folder."""
DIGITS = 12
"""Hexadecimal digits of a digest in names."""


def version_name(name: str, digest: str) -> str:
    """Return the name of one version of a tree: ``bread@1f0c2d3e4a5b``."""
    return f"{name}@{digest[:DIGITS]}"


def score_name(name: str, tree: Tree) -> str:
    """Return the name of a tree in tables: its id, or the name of a version played beside an earlier one."""
    return name if name == version_name(tree.id, tree.digest) else tree.id


def keep_tree(folder: Path, tree: Tree) -> None:
    """Copy a tree into a run folder, unless its copy is there; the folder has to be writable."""
    file = folder / TREES / f"{version_name(tree.id, tree.digest)}.json"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        write_whole(file, dump_tree(tree))


def kept_tree(folder: str | os.PathLike[str], tree_id: str, digest: str) -> Tree | None:
    """Return the version of a tree that a run folder holds; None if it holds no copy.

    Args:
        folder: of the run.
        tree_id: id of the tree, as in the header of a log.
        digest: full digest of the tree, as in the header of a log.

    Raises:
        TreeError: the copy is damaged.
        LogError: the copy is of another version than its name says.
    """
    name = f"{version_name(tree_id, digest)}.json"
    file = Path(folder) / TREES / name
    if Path(name).name != name or not file.is_file():
        return None
    tree = load_tree(file)
    if tree.digest != digest:
        raise LogError(f"'{file}' was changed: its digest is {tree.digest[:DIGITS]}; bring the original copy back")
    return tree


def run_tree(folder: str | os.PathLike[str], manifest: RunManifest, name: str) -> Tree:
    """Return the tree that a run calls ``name``: its copy in the folder, or without one the tree of this machine.

    Raises:
        TreeError: there is neither, or the file is invalid.
        LogError: the tree of this machine is another version than the run's, or the copy was changed.
    """
    ref = manifest.trees.get(name)
    if ref is None:  # a run of a release that kept no copies
        return load_tree(name)
    if (kept := kept_tree(folder, ref.id, ref.digest)) is not None:
        return kept
    missing = f"'{folder}' lacks the copy of {name} in {TREES}/"
    try:
        tree = load_tree(ref.id)
    except TreeError as error:
        raise LogError(f"{missing}; bring it back") from error
    if tree.digest != ref.digest:
        raise LogError(f"{missing}, and {ref.id} has another version here; bring the copy back")
    return tree


def logged_digests(folder: Path, specs: Iterable[EpisodeSpec]) -> set[str]:
    """Return the digests of the trees that the logs of some episodes were played on; damaged headers are left out."""
    found = set()
    for spec in specs:
        try:
            found.add(read_header(log_file(folder, spec)).task.digest)
        except LogError:
            continue
    return found
