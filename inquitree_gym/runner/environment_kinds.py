"""Kinds of environments that a study can play: their tasks, their rules and their templates."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from inquitree_gym.engine import Rules
from inquitree_gym.envs.projection.rules import ProjectionRules
from inquitree_gym.errors import OptionError
from inquitree_gym.judges.local import VERSION as CONCLUSION_JUDGE_VERSION
from inquitree_gym.judges.projections.local import VERSION as PROJECTION_JUDGE_VERSION
from inquitree_gym.log import TaskKind, TaskRef
from inquitree_gym.prompts import (
    AGENT_TEMPLATE_NAMES,
    BELIEF_TEMPLATE,
    PROJECTION_AGENT_TEMPLATE_NAMES,
    PROJECTION_TEMPLATE_NAMES,
    TEMPLATE_NAMES,
)
from inquitree_gym.runner.rules import PRESET, expanded
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.disclosure import ProjectionTask
from inquitree_gym.trees.tasks import load_task

T = TypeVar("T", Tree, ProjectionTask)

OWN_SETTINGS = ("fake_level", "max_turns", "threshold")
"""Rules of inquiries that a study has as separate settings."""


@dataclass(frozen=True)
class EnvironmentKind(Generic[T]):
    """The parts of a study that depend on the kind of its environment."""

    name: TaskKind
    copies: str
    """Folder of the copies of its tasks in a run folder."""
    load: Callable[[str | os.PathLike[str]], T]
    """Loads a task by id or path; raises `TreeError`."""
    all_rules: Callable[[Mapping[str, Any]], dict[str, Any]]
    """Returns all rules of a study by name, defaults included; raises `OptionError`."""
    templates: tuple[str, ...]
    """Names of the templates of the observations."""
    agent_templates: tuple[str, ...]
    """Names of the templates of the messages from agents to language models."""
    judge_version: int
    """Version of the local judge."""

    def ref(self, task: T) -> TaskRef:
        """Return kind, id, version and digest of a task."""
        return TaskRef(kind=self.name, id=task.id, version=task.version, digest=task.digest)

    def checked_rules(self, rules: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rules of a study as it keeps them: without the name of the default preset.

        Raises:
            ValueError: a rule is unknown or out of range, or belongs among the settings of the study.
        """
        if own := sorted(rules.keys() & set(OWN_SETTINGS)):
            raise ValueError(f"{', '.join(own)} cannot be among the rules of a study; give each as a separate setting")
        kept = {name: value for name, value in rules.items() if (name, value) != (PRESET, "default")}
        try:
            self.all_rules(kept)
        except OptionError as error:
            raise ValueError(str(error)) from error
        return kept


def _inquiry_rules(rules: Mapping[str, Any]) -> dict[str, Any]:
    return Rules().override(expanded(rules)).as_dict()


def _projection_rules(rules: Mapping[str, Any]) -> dict[str, Any]:
    if PRESET in rules:
        raise OptionError(f"projections have no preset '{rules[PRESET]}'; their rules are {projection_rule_names()}")
    return ProjectionRules().override(rules).as_dict()


def projection_rule_names() -> str:
    """Return the names of the rules of projections, for messages."""
    return ", ".join(ProjectionRules.names())


INQUIRIES = EnvironmentKind(
    name="inquiry",
    copies="trees",
    load=load_tree,
    all_rules=_inquiry_rules,
    templates=TEMPLATE_NAMES,
    agent_templates=(*AGENT_TEMPLATE_NAMES, BELIEF_TEMPLATE),
    judge_version=CONCLUSION_JUDGE_VERSION,
)
PROJECTIONS = EnvironmentKind(
    name="projection",
    copies="tasks",
    load=load_task,
    all_rules=_projection_rules,
    templates=PROJECTION_TEMPLATE_NAMES,
    agent_templates=PROJECTION_AGENT_TEMPLATE_NAMES,
    judge_version=PROJECTION_JUDGE_VERSION,
)
KINDS: Mapping[TaskKind, EnvironmentKind[Any]] = {"inquiry": INQUIRIES, "projection": PROJECTIONS}
