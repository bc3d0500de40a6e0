"""Registered ids of inquiries and projections: one per shipped or user tree, one for any, one for synthetic ones."""

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
PROJECTION_ENTRY_POINT = "inquitree_gym.envs.projection.env:ProjectionEnv"
PROJECTION_VECTOR_ENTRY_POINT = "inquitree_gym.envs.projection.vector:ProjectionVectorEnv"
PROJECTION_MENU_ENTRY_POINT = "inquitree_gym.envs.projection.menu:projection_menu_env"
PROJECTION_BATCH_ENTRY_POINT = "inquitree_gym.envs.projection.batch:projection_batch"
WORLD_ENTRY_POINT = "inquitree_gym.envs.projection.synthetic:SyntheticProjectionEnv"
WORLD_VECTOR_ENTRY_POINT = "inquitree_gym.envs.projection.synthetic:synthetic_projection_vector"
WORLD_MENU_ENTRY_POINT = "inquitree_gym.envs.projection.synthetic:synthetic_projection_menu_env"
WORLD_BATCH_ENTRY_POINT = "inquitree_gym.envs.projection.synthetic:synthetic_projection_batch"


def register_all() -> None:
    """Register every environment. Opens no shipped tree; an invalid user tree is left out with a warning."""
    shipped = builtin_ids()
    _register("InquiTree", list(shipped))
    _register_view("InquiTree-synthetic-v0", SYNTHETIC_ENTRY_POINT, SYNTHETIC_VECTOR_ENTRY_POINT)
    _register_view("InquiTree-synthetic-menu-v0", SYNTHETIC_MENU_ENTRY_POINT, None)
    _register_view("ProjectionBench-synthetic-v0", WORLD_ENTRY_POINT, WORLD_VECTOR_ENTRY_POINT)
    _register_view("ProjectionBench-synthetic-menu-v0", WORLD_MENU_ENTRY_POINT, WORLD_BATCH_ENTRY_POINT)
    _register_projection("ProjectionBench", list(shipped))
    for tree_id in shipped:
        _register(f"InquiTree-{tree_id}", tree_id)
        _register_projection(f"ProjectionBench-{tree_id}", tree_id)
    for folder in missing_folders():
        warnings.warn(f"{TREES_VARIABLE} names '{folder:.200}', which is not a folder", stacklevel=2)
    for name, file in user_files().items():
        _register_user_file(name, file)


def _register_user_file(name: str, file: Path) -> None:
    """Register the environments of a user's tree or task; leave out an invalid one with a warning."""
    from inquitree_gym.errors import TreeError
    from inquitree_gym.trees.schema import Tree
    from inquitree_gym.trees.tasks import load_user_file

    try:
        found = load_user_file(file)
    except (TreeError, OSError) as error:
        warnings.warn(f"a tree in {TREES_VARIABLE} is left out: {error}", stacklevel=3)
        return
    is_tree, path = isinstance(found, Tree), str(file.absolute())
    if is_tree:
        _register(f"InquiTree-{name}", path)
    if not is_tree or found.disclosure is not None:
        _register_projection(f"ProjectionBench-{name}", path)


def _register(name: str, tree: str | list[str]) -> None:
    """Register the text view and the discrete view of a tree, or of several to sample from."""
    _register_view(f"{name}-v0", ENTRY_POINT, VECTOR_ENTRY_POINT, tree=tree)
    _register_view(f"{name}-menu-v0", MENU_ENTRY_POINT, BATCH_ENTRY_POINT, tree=tree)


def _register_projection(name: str, task: str | list[str]) -> None:
    """Register the text view and the discrete view of a projection task, or of several to sample from."""
    _register_view(f"{name}-v0", PROJECTION_ENTRY_POINT, PROJECTION_VECTOR_ENTRY_POINT, task=task)
    _register_view(f"{name}-menu-v0", PROJECTION_MENU_ENTRY_POINT, PROJECTION_BATCH_ENTRY_POINT, task=task)


def _register_view(name: str, entry_point: str, vector_entry_point: str | None, **keywords: str | list[str]) -> None:
    gym.register(name, entry_point=entry_point, vector_entry_point=vector_entry_point, kwargs=keywords)
