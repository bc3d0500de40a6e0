"""Where tree files are: in this package, and in the folders that the user names. Opens none of them."""

from __future__ import annotations

import os
from glob import escape, glob
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

TREES_VARIABLE = "INQUITREE_TREES"
"""Environment variable: folders with user trees, separated like PATH."""


def builtin_ids() -> tuple[str, ...]:
    """Return the ids of the trees in this package, in paper order."""
    ids = [entry.name.removesuffix(".json") for entry in _data().iterdir() if entry.name.endswith(".json")]
    return tuple(sorted(ids, key=lambda name: int(name.removeprefix("paper"))))


def builtin_file(tree_id: str) -> Traversable:
    """Return the file of a tree in this package."""
    return _data().joinpath(f"{tree_id}.json")


def user_files() -> dict[str, Path]:
    """Return the tree files in the folders of `INQUITREE_TREES` by id, which is the file's stem; first folder wins.

    Folders that cannot be read, and hidden files, hold no trees.
    """
    found: dict[str, Path] = {}
    for folder in filter(None, os.environ.get(TREES_VARIABLE, "").split(os.pathsep)):
        pattern = os.path.join(escape(os.path.expanduser(folder)), "*.json")
        for file in map(Path, sorted(glob(pattern))):
            found.setdefault(file.stem, file)
    return found


def _data() -> Traversable:
    return resources.files("inquitree_gym").joinpath("trees", "data")
