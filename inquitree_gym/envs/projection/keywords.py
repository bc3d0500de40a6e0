"""The keywords and options of a projection: their types, and the loading of tasks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from inquitree_gym.embeddings import Embedder
from inquitree_gym.envs.keywords import check_names, check_several
from inquitree_gym.envs.projection.rules import Form, ProjectionRules, RewardTime
from inquitree_gym.judges.projections.judgement import AsyncProjectionJudge
from inquitree_gym.trees import Tree
from inquitree_gym.trees.disclosure import Level, ProjectionTask
from inquitree_gym.trees.tasks import TaskLike, load_task


class ProjectionKeywords(TypedDict, total=False):
    """Keywords of `ProjectionEnv`; its signature has the defaults."""

    levels: Sequence[Level]
    form: Form
    reward: RewardTime
    judge: str | AsyncProjectionJudge
    embedder: str | Embedder | None
    prompts: str | os.PathLike[str] | None
    privileged: bool
    render_mode: str | None


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


def projection_rules(
    rules: ProjectionRules, options: Mapping[str, Any], names: Iterable[str] | None = None
) -> ProjectionRules:
    """Return the rules of an episode with these `reset` options, in an environment with ``rules``.

    Args:
        rules: rules of the environment.
        options: ``task`` and rules.
        names: rules that are options; None for all.

    Raises:
        OptionError: an option is unknown or out of range.
    """
    check_names(options, ("task", *(ProjectionRules.names() if names is None else names)), "reset")
    return rules.override({name: value for name, value in options.items() if name != "task"})
