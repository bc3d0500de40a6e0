"""Ids for `gymnasium.make`: one per shipped tree, one per user tree, one that takes any, one that makes its own."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NoReturn

import gymnasium as gym

from inquitree_gym.trees.catalogue import RESTRICTED
from inquitree_gym.trees.paths import TREES_VARIABLE, builtin_ids, missing_folders, user_files

ENTRY_POINT = "inquitree_gym.envs.inquiry:InquiryEnv"
REFUSAL = "inquitree_gym.envs.registration:refuse"
VECTOR_ENTRY_POINT = "inquitree_gym.envs.vector:InquiryVectorEnv"
MENU_ENTRY_POINT = "inquitree_gym.wrappers.menu:menu_env"
BATCH_ENTRY_POINT = "inquitree_gym.envs.batch.env:InquiryBatchEnv"
SYNTHETIC_ENTRY_POINT = "inquitree_gym.envs.synthetic:SyntheticEnv"
SYNTHETIC_VECTOR_ENTRY_POINT = "inquitree_gym.envs.synthetic:synthetic_vector"
SYNTHETIC_MENU_ENTRY_POINT = "inquitree_gym.wrappers.menu:synthetic_menu_env"
SYNTHETIC = "InquiTree-synthetic-v0"
SYNTHETIC_MENU = "InquiTree-synthetic-menu-v0"
ANY_TREE = "InquiTree-v0"
ANY_TREE_MENU = "InquiTree-menu-v0"


def env_id(tree_id: str) -> str:
    """Return the registered id of a tree: ``InquiTree-paper12-v0``."""
    return f"InquiTree-{tree_id}-v0"


def menu_id(tree_id: str) -> str:
    """Return the registered id of a tree's discrete view: ``InquiTree-paper12-menu-v0``."""
    return f"InquiTree-{tree_id}-menu-v0"


def register_all() -> None:
    """Register every environment. Opens no shipped tree; a user tree that cannot be played warns and is left out."""
    shipped = builtin_ids()
    _register(ANY_TREE, ANY_TREE_MENU, list(shipped))
    gym.register(SYNTHETIC, entry_point=SYNTHETIC_ENTRY_POINT, vector_entry_point=SYNTHETIC_VECTOR_ENTRY_POINT)
    gym.register(SYNTHETIC_MENU, entry_point=SYNTHETIC_MENU_ENTRY_POINT)
    for tree_id in shipped:
        _register(env_id(tree_id), menu_id(tree_id), tree_id)
    for folder in missing_folders():
        warnings.warn(f"{TREES_VARIABLE} names '{folder:.200}', which is not a folder", stacklevel=2)
    own = user_files()
    for tree_id in RESTRICTED:
        if tree_id not in own:
            for name in (env_id(tree_id), menu_id(tree_id)):
                gym.register(name, entry_point=REFUSAL, vector_entry_point=REFUSAL, kwargs={"tree": tree_id})
    for tree_id, file in own.items():
        if fault := _user_fault(file):
            warnings.warn(f"a tree in {TREES_VARIABLE} is left out: {fault}", stacklevel=2)
        else:
            _register(env_id(tree_id), menu_id(tree_id), str(file.absolute()))


def _register(text_name: str, menu_name: str, tree: str | list[str]) -> None:
    """Register the text view and the discrete view of a tree, or of any of several."""
    gym.register(text_name, entry_point=ENTRY_POINT, vector_entry_point=VECTOR_ENTRY_POINT, kwargs={"tree": tree})
    gym.register(menu_name, entry_point=MENU_ENTRY_POINT, vector_entry_point=BATCH_ENTRY_POINT, kwargs={"tree": tree})


def refuse(tree: str, **_: object) -> NoReturn:
    """Stand in for the environment of a paper whose tree may not be distributed.

    Raises:
        UnknownTreeError: always, saying how to bring a tree of one's own.
    """
    from inquitree_gym.trees.load import load_tree

    load_tree(tree)
    raise AssertionError("a tree that may not be distributed is not there to be loaded")


def _user_fault(file: Path) -> str | None:
    from inquitree_gym.errors import TreeError
    from inquitree_gym.trees.load import load_user_tree

    try:
        load_user_tree(file)
    except (TreeError, OSError) as error:
        return str(error)
    return None
