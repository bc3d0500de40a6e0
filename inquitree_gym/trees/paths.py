"""Locations of tree files: the package, and the folders named by the user. No file is opened here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from glob import escape, glob
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

TREES_VARIABLE = "INQUITREE_TREES"
"""Environment variable that names the folders with user trees, separated as in PATH."""


def builtin_ids() -> tuple[str, ...]:
    """Return the ids of the shipped trees, in paper order."""
    ids = [entry.name.removesuffix(".json") for entry in _data().iterdir() if entry.name.endswith(".json")]
    return tuple(sorted(ids, key=lambda name: int(name.removeprefix("paper"))))


def builtin_file(tree_id: str) -> Traversable:
    """Return the file of a shipped tree."""
    return _data().joinpath(f"{tree_id}.json")


def user_files() -> dict[str, Path]:
    """Return the tree files in the folders of `INQUITREE_TREES`, by file name without suffix; the first folder wins.

    Hidden files and unreadable folders are skipped.
    """
    found: dict[str, Path] = {}
    for folder in _user_folders():
        for file in map(Path, sorted(glob(os.path.join(escape(folder), "*.json")))):
            found.setdefault(file.stem, file)
    return found


def missing_folders() -> list[str]:
    """Return the entries of `INQUITREE_TREES` that are not folders."""
    return [folder for folder in _user_folders() if not os.path.isdir(folder)]


def _user_folders() -> Iterator[str]:
    return map(os.path.expanduser, filter(None, os.environ.get(TREES_VARIABLE, "").split(os.pathsep)))


def _data() -> Traversable:
    return resources.files("inquitree_gym").joinpath("trees", "data")
