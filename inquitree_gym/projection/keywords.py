"""The keywords and options of a projection: their types, and the loading of tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypedDict, TypeVar

from inquitree_gym.envs.keywords import check_names, checked_keywords, load_each, signed_keywords
from inquitree_gym.judging.judgement import AsyncJudge
from inquitree_gym.projection.settings import Form, ProjectionRules, Reward
from inquitree_gym.projection.tasks import TaskLike, load_task
from inquitree_gym.trees import Tree
from inquitree_gym.trees.disclosure import Level, ProjectionTask

P = ParamSpec("P")
R = TypeVar("R")


class ProjectionKeywords(TypedDict, total=False):
    """Keywords of `ProjectionEnv`. Its signature has the defaults."""

    levels: Sequence[Level]
    form: Form
    reward: Reward | None
    judge: str | AsyncJudge[ProjectionTask] | None
    prompts: str | os.PathLike[str] | None
    privileged: bool
    render_mode: str | None


suggest_keywords = checked_keywords(
    refused={
        "task": "a synthetic projection makes its own tasks; to play one of yours, make ProjectionBench-v0 with "
        'task=..., or pass reset(options={"task": ...})'
    }
)
"""Makes a function raise `OptionError` with a suggestion for an unknown keyword."""


def unpack_keywords(template: Callable[..., Any], keywords: type[Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of functions that take ``**keywords: Unpack[...]``. See `signed_keywords`."""
    return signed_keywords(template, keywords, suggest_keywords)


def load_tasks(task: TaskLike | Sequence[TaskLike]) -> tuple[ProjectionTask, ...]:
    """Return one task or several. Raise `OptionError` for anything else, and `TreeError` for an invalid task."""
    noun = "task must be an id, a path, a Tree with a disclosure, a ProjectionTask"
    return load_each(task, load_task, single=(str, os.PathLike, Tree, ProjectionTask), noun=noun)


def projection_rules(
    rules: ProjectionRules, options: Mapping[str, Any], names: Iterable[str] | None = None
) -> ProjectionRules:
    """Return the rules of an episode with these `reset` options, in an environment with ``rules``.

    ``names`` are the options, by default all rules and ``task``. Raise `OptionError` for anything else.
    """
    check_names(options, ("task", *ProjectionRules.names()) if names is None else tuple(names), "reset")
    return rules.override({name: value for name, value in options.items() if name != "task"})
