"""Registered ids of inquiries: one per shipped or user tree, one for any tree, one for synthetic trees."""

from __future__ import annotations

import warnings

import gymnasium as gym

from inquitree_gym.trees.catalogue import (
    TREES_VARIABLE,
    builtin_ids,
    is_task_file,
    missing_folders,
    user_files,
    withheld,
)

ENTRY_POINT = "inquitree_gym.inquiry.env:InquiryEnv"
VECTOR_ENTRY_POINT = "inquitree_gym.inquiry.vector:InquiryVectorEnv"
MENU_ENTRY_POINT = "inquitree_gym.inquiry.actions:menu_env"
BATCH_ENTRY_POINT = "inquitree_gym.inquiry.arrays.env:InquiryBatchEnv"
SYNTHETIC_ENTRY_POINT = "inquitree_gym.inquiry.vector:SyntheticEnv"
SYNTHETIC_VECTOR_ENTRY_POINT = "inquitree_gym.inquiry.vector:synthetic_vector"
SYNTHETIC_MENU_ENTRY_POINT = "inquitree_gym.inquiry.actions:synthetic_menu_env"
VERBS = {
    "match": ("commands.match_and_new", "Show how an action is read: decision, nearest nodes and their similarities."),
    "new": ("commands.match_and_new", "Write a tree to fill in, whose texts say TODO and what to write."),
    "probe": ("commands.controls", "Ask a model whether results are valid, outside an inquiry."),
    "bounds": ("commands.controls", "Measure how many turns random agents take."),
    "reproduce": ("commands.reproduce", "Make a table or figure of the paper."),
}
"""Verbs of the command line, each with its module and its help in one line."""


def register() -> None:
    """Register every environment. Opens no shipped tree. An invalid user tree is left out with a warning."""
    _register("InquiTree", list(builtin_ids()))
    gym.register(
        "InquiTree-synthetic-v0", entry_point=SYNTHETIC_ENTRY_POINT, vector_entry_point=SYNTHETIC_VECTOR_ENTRY_POINT
    )
    gym.register("InquiTree-synthetic-menu-v0", entry_point=SYNTHETIC_MENU_ENTRY_POINT)
    for tree_id in builtin_ids():
        _register(f"InquiTree-{tree_id}", tree_id)
    for folder in missing_folders():
        warnings.warn(f"{TREES_VARIABLE} names '{folder:.200}', which is not a folder", stacklevel=2)
    _register_user_trees()
    for refused in withheld("InquiTree"):
        gym.register(**refused)


def _register_user_trees() -> None:
    for name, file in user_files().items():
        if is_task_file(file):
            continue
        from inquitree_gym.errors import TreeError, visible
        from inquitree_gym.trees.load import load_user_tree

        try:
            load_user_tree(file)
        except (TreeError, OSError) as error:
            warnings.warn(visible(f"a tree in {TREES_VARIABLE} is left out: {error}"), stacklevel=2)
        else:
            _register(f"InquiTree-{name}", str(file.absolute()))


def _register(name: str, tree: str | list[str]) -> None:
    """Register the text view and the discrete view of a tree, or of several to sample from."""
    keywords = {"tree": tree}
    gym.register(f"{name}-v0", entry_point=ENTRY_POINT, vector_entry_point=VECTOR_ENTRY_POINT, kwargs=keywords)
    gym.register(f"{name}-menu-v0", entry_point=MENU_ENTRY_POINT, vector_entry_point=BATCH_ENTRY_POINT, kwargs=keywords)
