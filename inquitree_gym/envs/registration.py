"""Ids for `gymnasium.make`: one per shipped tree, one per user tree, and one that takes any."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NoReturn

import gymnasium as gym

from inquitree_gym.trees.catalogue import RESTRICTED
from inquitree_gym.trees.places import TREES_VARIABLE, builtin_ids, user_files

ENTRY_POINT = "inquitree_gym.envs.inquiry:InquiryEnv"
REFUSAL = "inquitree_gym.envs.registration:refuse"
ANY_TREE = "InquiTree-v0"


def env_id(tree_id: str) -> str:
    """Return the registered id of a tree: ``InquiTree-paper12-v0``."""
    return f"InquiTree-{tree_id}-v0"


def register_all() -> None:
    """Register every environment. Opens no shipped tree; a user tree that cannot be played warns and is left out."""
    shipped = builtin_ids()
    gym.register(ANY_TREE, entry_point=ENTRY_POINT, kwargs={"tree": list(shipped)})
    for tree_id in shipped:
        gym.register(env_id(tree_id), entry_point=ENTRY_POINT, kwargs={"tree": tree_id})
    own = user_files()
    for tree_id in RESTRICTED:
        if tree_id not in own:
            gym.register(env_id(tree_id), entry_point=REFUSAL, kwargs={"tree": tree_id})
    for tree_id, file in own.items():
        if fault := _user_fault(tree_id, file, shipped):
            warnings.warn(f"a tree in {TREES_VARIABLE} is left out: {fault}", stacklevel=2)
        else:
            gym.register(env_id(tree_id), entry_point=ENTRY_POINT, kwargs={"tree": str(file.absolute())})


def refuse(tree: str, **_: object) -> NoReturn:
    """Stand in for the environment of a paper whose tree may not be distributed.

    Raises:
        UnknownTreeError: always, saying how to bring a tree of one's own.
    """
    from inquitree_gym.trees.load import load_tree

    load_tree(tree)
    raise AssertionError("a tree that may not be distributed is not there to be loaded")


def _user_fault(tree_id: str, file: Path, shipped: tuple[str, ...]) -> str | None:
    from inquitree_gym.errors import TreeError
    from inquitree_gym.trees.load import load_file

    if tree_id in shipped:
        return f"'{file}' has the id of a shipped tree; rename the file and its id"
    try:
        tree = load_file(file)
    except (TreeError, OSError) as error:
        return str(error)
    return None if tree.id == tree_id else f"'{file}' holds the id '{tree.id}'; file name and id have to agree"
