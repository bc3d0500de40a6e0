"""Growth of a run: the studies that can share a folder, their union, and the episodes that a study adds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from inquitree_gym import __version__
from inquitree_gym.errors import LogError, OptionError, plural
from inquitree_gym.files import write_whole
from inquitree_gym.kinds import Kind, kind
from inquitree_gym.log import TaskRef
from inquitree_gym.log.records import LOG_VERSION
from inquitree_gym.prompts import Prompts
from inquitree_gym.prompts.render import DEFAULT, is_packaged
from inquitree_gym.protocols import Task
from inquitree_gym.runner.services import judge_settings
from inquitree_gym.runs.folder import (
    DIGITS,
    MANIFEST,
    RunManifest,
    cannot_write,
    has_logs,
    keep_task,
    load_manifest,
    logged_digests,
    version_name,
    write_manifest,
)
from inquitree_gym.runs.specs import EpisodeSpec
from inquitree_gym.runs.study import StudyConfig, faults
from inquitree_gym.trees.catalogue import task_name

MAX_SHOWN = 10
"""Most values of one kind that are named as added."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A study named as in a run folder, and what it adds to the run."""

    study: StudyConfig
    """The study, its tasks and its prompts named as in the folder."""
    tasks: Mapping[str, Any]
    manifest: RunManifest
    """All studies of the folder so far, this one included."""
    templates: Mapping[str, str] = field(default_factory=dict)
    """Templates that the package does not ship, by name."""
    added: str = ""
    """Episodes that the study adds to a folder with earlier episodes, in words. Empty for none."""


def plan_run(folder: Path, study: StudyConfig, as_new_version: bool = False) -> RunPlan:
    """Return how a study is added to ``folder``, which may not exist yet. Nothing is written.

    A folder without episodes takes any study. Otherwise the study may ask for further episodes, under the same settings
    and of the same versions of tasks. With ``as_new_version`` a changed task is played under a new name
    beside the old one.

    Raises:
        LogError: the settings contradict those of the folder, a task was changed, or the manifest cannot be read.
        OptionError: two of the episodes would share their log, there are too many, or a template is invalid.
        TreeError: a task cannot be loaded.
    """
    played = kind(study.env)
    tasks = {task_name(name): played.tasks.load(name) for name in study.trees}
    templates = own_templates(study)
    prompts = Prompts(study.prompts_name, played.play.templates, played.package).digest
    study = _renamed(named_by_digest(study, templates), {name: task_name(name) for name in study.trees})
    if not ((folder / MANIFEST).exists() and has_logs(folder)):
        return RunPlan(study, tasks, _manifest([study], _task_refs(played, tasks), prompts), templates)
    there = load_manifest(folder)
    if there.env != study.env:  # first, since tasks of several kinds may have the same name
        raise _contradiction(folder, [f"env is {there.env} there and {study.env} here"])
    names = _names_in(folder, there, tasks, as_new_version)
    study, tasks = _renamed(study, names), {names[name]: task for name, task in tasks.items()}
    if contradictions := dict.fromkeys(text for earlier in there.studies for text in differences(earlier, study)):
        raise _contradiction(folder, contradictions)
    added = _addition(there.specs, study)
    studies = (*there.studies, study) if added else there.studies
    manifest = _manifest(studies, {**there.tasks, **_task_refs(played, tasks)}, prompts)
    return RunPlan(study, tasks, manifest, templates, added)


def _contradiction(folder: Path, contradictions: Collection[str]) -> LogError:
    return LogError(
        f"cannot add to '{folder}': {'; '.join(contradictions)}; a run has one setting of each, so choose another "
        "folder with --out"
    )


def take_in(folder: Path, plan: RunPlan) -> None:
    """Write the tasks, the templates and the manifest of a plan into its folder. Raise `LogError` if that fails."""
    try:
        for task in plan.tasks.values():
            keep_task(folder, kind(plan.study.env), task)
        keep_templates(folder, plan.study, plan.templates)
        write_manifest(folder, plan.manifest)
    except OSError as error:
        raise cannot_write(folder, error) from error


def differences(there: StudyConfig, here: StudyConfig) -> Iterator[str]:
    """Yield the contradictions between two studies in words: every setting that decides how an episode is played.

    Models are compared by label. Settings that do not affect replies may differ.
    """
    yield from _compared("judge", _judge(there), _judge(here))
    yield from _compared("prompts", there.prompts_name, here.prompts_name)
    mine = here.settings.fixed()
    for name, value in there.settings.fixed().items():
        yield from _compared(name, value, mine[name])
    models = {model.label: model for model in there.models}
    for model in here.models:
        if model.label in models:
            before = models[model.label]
            known = before.fixed_settings | there.own_settings(before).model_dump()
            asked = model.fixed_settings | here.own_settings(model).model_dump()
            yield from _compared(f"model '{model.label}', setting", known, asked)


def _judge(study: StudyConfig) -> dict[str, Any] | None:
    settings = judge_settings(study)
    return None if settings is None else settings.fixed_settings


def _addition(specs: Collection[EpisodeSpec], study: StudyConfig) -> str:
    """Return the episodes of a study that are not among ``specs``, in words. Empty for none."""
    old = set(specs)
    new = [spec for spec in study.specs() if spec not in old]
    if not new:
        return ""
    parts = [plural(len(new), "episode")]
    for axis, value_of in _axes(study).items():
        before = {value_of(spec) for spec in old}
        values = list(dict.fromkeys(str(value) for spec in new if (value := value_of(spec)) not in before))
        if values:
            more = ", …" if len(values) > MAX_SHOWN else ""
            parts.append(f"{axis} {', '.join(values[:MAX_SHOWN])}{more}")
    return "; ".join(parts)


def _axes(study: StudyConfig) -> dict[str, Callable[[EpisodeSpec], Any]]:
    """Return the ways in which the episodes of a study differ, by name in messages."""

    def value_of(name: str, spec: EpisodeSpec) -> Any:
        return dict(spec.cell)[name]

    grid = {name.replace("_", " ") + "s": partial(value_of, name) for name in study.settings.grid}
    return {
        "agents": lambda spec: spec.player,
        kind(study.env).tasks.noun + "s": lambda spec: spec.task,
        **grid,
        "seeds": lambda spec: spec.seed,
    }


def _names_in(folder: Path, there: RunManifest, tasks: Mapping[str, Task], as_new_version: bool) -> dict[str, str]:
    """Return the name of each task in the folder, by its own name. Raise `LogError` for a task that was changed."""
    names, changed = {}, []
    known = {ref.digest: name for name, ref in there.tasks.items()}
    for name, task in tasks.items():
        if task.digest in known:
            names[name] = known[task.digest]
        elif not (played := logged_digests(folder, (spec for spec in there.specs if spec.task == name))):
            names[name] = name
        elif as_new_version:
            names[name] = version_name(name, task.digest)
        else:
            digests = " and ".join(sorted(digest[:DIGITS] for digest in played))
            changed.append(f"{name} has the digest {digests} there and {task.digest[:DIGITS]} here")
    if changed:
        raise LogError(
            f"cannot add to '{folder}': {'; '.join(changed)}; bring back the version that was played, play the changed "
            "one beside it with --as-new-version, or choose another folder with --out"
        )
    return names


def _renamed(study: StudyConfig, names: Mapping[str, str]) -> StudyConfig:
    """Return a study with other names for its tasks. Those that ``names`` does not have stay."""
    trees = tuple(dict.fromkeys(names.get(name, name) for name in study.trees))
    return study.model_copy(update={"trees": trees})


def _task_refs(played: Kind, tasks: Mapping[str, Task]) -> dict[str, TaskRef]:
    """Return kind, id, version and digest of tasks by the same names."""
    return {
        name: TaskRef(kind=played.name, id=task.id, version=task.version, digest=task.digest)
        for name, task in tasks.items()
    }


def _manifest(studies: Sequence[StudyConfig], tasks: Mapping[str, TaskRef], prompts: str) -> RunManifest:
    """Return the manifest of studies, named as in the folder. Raise `OptionError` for too many or equal episodes."""
    settings = studies[-1].settings
    rules = {name: value for name, value in settings.all_rules().items() if name not in type(settings).model_fields}
    versions = {"inquitree-gym": __version__, "log": LOG_VERSION, "prompts": prompts}
    try:
        return RunManifest(studies=tuple(studies), tasks=dict(tasks), versions=versions, rules=rules)
    except ValidationError as error:
        raise OptionError(f"the study cannot be run; {'; '.join(faults(error))}") from None


def _compared(name: str, there: Any, here: Any) -> Iterator[str]:
    if isinstance(there, dict) and isinstance(here, dict):
        for key in {**there, **here}:
            yield from _compared(f"{name} {key}", there.get(key), here.get(key))
    elif there != here:
        yield f"the run has {name}={_shown(there)}, this study {name}={_shown(here)}"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("model", value)
    return value if isinstance(value, str) else "not set" if value is None else json.dumps(value, default=str)


PROMPTS = "prompts"
"""Folder of the copies in a run folder."""


def own_templates(study: StudyConfig) -> dict[str, str]:
    """Return the templates of a study that are not the package's, by name. Raise `OptionError` for invalid ones."""
    if is_packaged(study.prompts_name, kind(study.env).package):
        return {}
    played = kind(study.env)
    agents = [name for agent in played.play.model_agents.values() for name in agent.template_names]
    return Prompts(study.prompts_name, (*played.play.templates, *agents), played.package).changed


def named_by_digest(study: StudyConfig, templates: Mapping[str, str]) -> StudyConfig:
    """Return a study whose folder of templates is named by digest, so that equal ones have one name."""
    if is_packaged(study.prompts_name, kind(study.env).package):
        return study
    digest = hashlib.sha256(repr(sorted(templates.items())).encode()).hexdigest()
    return study.model_copy(update={"prompts": f"{PROMPTS}/{digest[:DIGITS]}" if templates else DEFAULT})


def keep_templates(folder: Path, study: StudyConfig, templates: Mapping[str, str]) -> None:
    """Copy the templates of a study, named by digest, into a run folder, which has to be writable."""
    for name, text in templates.items():
        file = folder / study.prompts_name / f"{name}.md"
        if not file.exists():
            write_whole(file, text.encode())


def with_kept_templates(study: StudyConfig, folder: Path) -> StudyConfig:
    """Return a study, named by digest, that takes its templates from a run folder."""
    if is_packaged(study.prompts_name, kind(study.env).package):
        return study
    return study.model_copy(update={"prompts": str(folder.resolve() / study.prompts_name)})
