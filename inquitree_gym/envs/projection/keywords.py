"""The keywords and options of a projection: their types, and the loading of tasks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from inquitree_gym.envs.keywords import check_names, check_several
from inquitree_gym.envs.projection.rules import ProjectionRules
from inquitree_gym.trees import Tree
from inquitree_gym.trees.disclosure import ProjectionTask
from inquitree_gym.trees.tasks import TaskLike, load_task


def load_tasks(task: TaskLike | Sequence[TaskLike]) -> tuple[ProjectionTask, ...]:
    """Return one task or several.

    Raises:
        OptionError: ``task`` is neither.
        TreeError: a task or tree is unknown or invalid, or a tree has no disclosure.
    """
    if isinstance(task, str | os.PathLike | Tree | ProjectionTask):
        return (load_task(task),)
    check_several(task, "task is an id, a path, a Tree with a disclosure, a ProjectionTask")
    return tuple(load_task(each) for each in task)


def projection_rules(rules: ProjectionRules, options: Mapping[str, Any]) -> ProjectionRules:
    """Return the rules of an episode with these `reset` options, in an environment with ``rules``.

    Raises:
        OptionError: an option is unknown or out of range.
    """
    check_names(options, ("task", *ProjectionRules.names()), "reset")
    return rules.override({name: value for name, value in options.items() if name != "task"})
