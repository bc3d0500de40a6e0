"""Checks of a study that need its agents, its tasks, its embedder or its templates."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, get_args

from inquitree_gym.baselines.registry import agent_names, known_agents
from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.kinds import kind
from inquitree_gym.protocols import Tasks
from inquitree_gym.runner.services import RunOptions, StopConditions, environment_maker
from inquitree_gym.runs.specs import is_own
from inquitree_gym.runs.study import StudyConfig, read_settings, validated
from inquitree_gym.trees.fields import Tier


def make_study(*, tiers: Sequence[str] | None = None, **settings: Any) -> StudyConfig:
    """Return a validated study that can be played.

    Args:
        tiers: evidence tiers of the tasks that are kept. None for all tasks.
        settings: the fields of `StudyConfig`, and those of the settings of its kind of environment.

    Raises:
        OptionError: naming every invalid setting.
        TreeError: a task is unknown or invalid.
        EmbedderError: the embedder is unknown.
    """
    study = validated(settings)
    if tiers is not None:
        kept = _of_tiers(kind(study.env).tasks, study.trees, tiers)
        study = study.model_copy(update={"trees": kept})
    check_study(study)
    return study


def read_study(path: str | os.PathLike[str]) -> StudyConfig:
    """Read a study from a TOML file. See `make_study` for further errors.

    Raises:
        OptionError: the file cannot be read, or is not TOML.
    """
    return make_study(**read_settings(path))


def check_study(study: StudyConfig) -> None:
    """Check that a study names agents, tasks and an embedder that exist, and settings and templates without a fault."""
    names = agent_names(study.env)
    for name in study.agents:
        if name not in names and not is_own(name):
            raise OptionError(
                f"the study cannot be run; agents: no agent is called '{name}'{suggest(name, names)}; known: "
                f"{known_agents(study.env)}"
            )
    tasks = kind(study.env).tasks
    ids = [tasks.load(name).id for name in study.trees]
    if twins := sorted({name for name in ids if ids.count(name) > 1}):
        raise OptionError(
            f"the study has several {tasks.noun}s with the id {', '.join(twins)}; give each an id of its own"
        )
    environment_maker(study, RunOptions(), StopConditions())


def _of_tiers(tasks: Tasks[Any], names: Sequence[str], tiers: Sequence[str]) -> tuple[str, ...]:
    """Return the tasks of the named evidence tiers. Raise `OptionError` for an unknown tier, or if none is left."""
    known = get_args(Tier)
    if not isinstance(tiers, list | tuple) or not tiers or any(tier not in known for tier in tiers):
        raise OptionError(f"the study cannot be run: tiers must be a list of {', '.join(known)}, got {tiers!r}")
    provenances = {name: getattr(tasks.load(name), "provenance", None) for name in names}
    kept = tuple(name for name, source in provenances.items() if source is not None and source.tier in tiers)
    if not kept:
        raise OptionError(
            f"the study cannot be run; none of its {tasks.noun}s has the evidence tier {' or '.join(tiers)}"
        )
    return kept
