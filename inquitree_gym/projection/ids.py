"""Registered ids of projections: one per shipped or user task, one for any task, one for synthetic tasks."""

from __future__ import annotations

import warnings

import gymnasium as gym

from inquitree_gym.trees.catalogue import TREES_VARIABLE, builtin_ids, is_task_file, user_files, withheld

ENTRY_POINT = "inquitree_gym.projection.env:ProjectionEnv"
VECTOR_ENTRY_POINT = "inquitree_gym.projection.env:ProjectionVectorEnv"
SYNTHETIC_ENTRY_POINT = "inquitree_gym.projection.synthetic:SyntheticProjectionEnv"
SYNTHETIC_VECTOR_ENTRY_POINT = "inquitree_gym.projection.synthetic:synthetic_projection_vector"
SYNTHETIC_MENU_ENTRY_POINT = "inquitree_gym.projection.synthetic:synthetic_projection_menu_env"
SYNTHETIC_BATCH_ENTRY_POINT = "inquitree_gym.projection.synthetic:synthetic_projection_batch"
VERBS = {"disclose": ("commands", "Let a model write the projection task of a paper, and check it.")}


def register() -> None:
    """Register every environment. Opens no shipped tree. An invalid user task is left out with a warning."""
    _register("ProjectionBench", list(builtin_ids()))
    gym.register(
        "ProjectionBench-synthetic-v0",
        entry_point=SYNTHETIC_ENTRY_POINT,
        vector_entry_point=SYNTHETIC_VECTOR_ENTRY_POINT,
    )
    gym.register(
        "ProjectionBench-synthetic-menu-v0",
        entry_point=SYNTHETIC_MENU_ENTRY_POINT,
        vector_entry_point=SYNTHETIC_BATCH_ENTRY_POINT,
    )
    for task_id in builtin_ids():
        _register(f"ProjectionBench-{task_id}", task_id)
    _register_user_tasks()
    for refused in withheld("ProjectionBench", ["-v0"]):
        gym.register(**refused)


def _register_user_tasks() -> None:
    """Register the tasks in the user's files and trees. A faulty tree is reported where it is registered as one."""
    for name, file in user_files().items():
        from inquitree_gym.errors import TreeError, visible
        from inquitree_gym.projection.tasks import load_user_task

        try:
            task = load_user_task(file)
        except (TreeError, OSError) as error:
            if is_task_file(file):
                warnings.warn(visible(f"a task in {TREES_VARIABLE} is left out: {error}"), stacklevel=2)
            continue
        if task is not None:
            _register(f"ProjectionBench-{name}", str(file.absolute()))


def _register(name: str, task: str | list[str]) -> None:
    """Register the environment of a task, or of several to sample from."""
    keywords = {"task": task}
    gym.register(f"{name}-v0", entry_point=ENTRY_POINT, vector_entry_point=VECTOR_ENTRY_POINT, kwargs=keywords)
