"""Registered ids of explorations: one for all frozen tasks, one for each type, one for synthetic questions."""

from __future__ import annotations

import gymnasium as gym

ENTRY_POINT = "inquitree_gym.exploration.env:ExplorationEnv"
SYNTHETIC_ENTRY_POINT = "inquitree_gym.exploration.synthetic:SyntheticExplorationEnv"
NAMES = {
    "SciExplore-v0": "all",
    "SciExplore-T1-v0": "T1",
    "SciExplore-T2-v0": "T2",
    "SciExplore-T3-v0": "T3",
    "SciExplore-T4-v0": "T4",
}
"""Ids, and the tasks that they sample from."""

VERBS = {"grade": ("commands", "Grade the answers of a system that was played elsewhere.")}


def register() -> None:
    """Register every environment. Opens no task."""
    for name, tasks in NAMES.items():
        gym.register(name, entry_point=ENTRY_POINT, kwargs={"task": tasks})
    gym.register("SciExplore-synthetic-v0", entry_point=SYNTHETIC_ENTRY_POINT)
