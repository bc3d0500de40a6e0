"""Registered ids: one per shipped tree, one per user tree, one for any tree and one for generated trees."""

from __future__ import annotations

import warnings
from pathlib import Path

import gymnasium as gym

from inquitree_gym.trees.catalogue import TREES_VARIABLE, builtin_ids, missing_folders, user_files

ENTRY_POINT = "inquitree_gym.envs.inquiry:InquiryEnv"
VECTOR_ENTRY_POINT = "inquitree_gym.envs.vector:InquiryVectorEnv"
MENU_ENTRY_POINT = "inquitree_gym.wrappers.actions:menu_env"
BATCH_ENTRY_POINT = "inquitree_gym.envs.batch.env:InquiryBatchEnv"
SYNTHETIC_ENTRY_POINT = "inquitree_gym.envs.synthetic:SyntheticEnv"
SYNTHETIC_VECTOR_ENTRY_POINT = "inquitree_gym.envs.synthetic:synthetic_vector"
SYNTHETIC_MENU_ENTRY_POINT = "inquitree_gym.wrappers.actions:synthetic_menu_env"


def register_all() -> None:
    """Register every environment. Opens no shipped tree; an invalid user tree is left out with a warning."""
    shipped = builtin_ids()
    _register("InquiTree", list(shipped))
    gym.register(
        "InquiTree-synthetic-v0",
        entry_point=SYNTHETIC_ENTRY_POINT,
        vector_entry_point=SYNTHETIC_VECTOR_ENTRY_POINT,
    )
    gym.register("InquiTree-synthetic-menu-v0", entry_point=SYNTHETIC_MENU_ENTRY_POINT)
    for tree_id in shipped:
        _register(f"InquiTree-{tree_id}", tree_id)
    for folder in missing_folders():
        warnings.warn(f"{TREES_VARIABLE} names '{folder:.200}', which is not a folder", stacklevel=2)
    for tree_id, file in user_files().items():
        if fault := _user_fault(file):
            warnings.warn(f"a tree in {TREES_VARIABLE} is left out: {fault}", stacklevel=2)
        else:
            _register(f"InquiTree-{tree_id}", str(file.absolute()))


def _register(name: str, tree: str | list[str]) -> None:
    """Register the text view and the discrete view of a tree, or of several to sample from."""
    for view, entry_point, vector_entry_point in (
        ("", ENTRY_POINT, VECTOR_ENTRY_POINT),
        ("-menu", MENU_ENTRY_POINT, BATCH_ENTRY_POINT),
    ):
        gym.register(
            f"{name}{view}-v0",
            entry_point=entry_point,
            vector_entry_point=vector_entry_point,
            kwargs={"tree": tree},
        )


def _user_fault(file: Path) -> str | None:
    from inquitree_gym.errors import TreeError
    from inquitree_gym.trees.load import load_user_tree

    try:
        load_user_tree(file)
    except (TreeError, OSError) as error:
        return str(error)
    return None
