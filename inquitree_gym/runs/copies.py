"""Copies of the tasks and templates of a run in its folder, named by digest, so that it can be read anywhere."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inquitree_gym.errors import LogError
from inquitree_gym.kinds import Kind, kind
from inquitree_gym.log import read_header
from inquitree_gym.prompts import Prompts
from inquitree_gym.prompts.render import DEFAULT, is_packaged
from inquitree_gym.runs.folder import RunManifest, log_file, write_whole

if TYPE_CHECKING:
    from inquitree_gym.parts import Task
    from inquitree_gym.runs.specs import EpisodeSpec
    from inquitree_gym.runs.study import StudyConfig

TASKS = "tasks"
"""Folder of the copies in a run folder."""
DIGITS = 12
"""Hexadecimal digits of a digest in names."""


def version_name(name: str, digest: str) -> str:
    """Return the name of one version of a task: ``bread@1f0c2d3e4a5b``."""
    return f"{name}@{digest[:DIGITS]}"


def keep_task(folder: Path, kind: Kind, task: Task) -> None:
    """Copy a task into a run folder, unless its copy is there. The folder has to be writable."""
    file = folder / TASKS / f"{version_name(task.id, task.digest)}.json"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        write_whole(file, kind.tasks.dump(task))


def kept_task(kind: Kind, folder: str | os.PathLike[str], task_id: str, digest: str) -> Any | None:
    """Return the version of a task that a run folder holds. None if it holds no copy.

    Args:
        kind: kind of the environment that plays the task.
        folder: run folder.
        task_id: id of the task, as in the header of a log.
        digest: full digest of the task, as in the header of a log.

    Raises:
        TreeError: the copy is damaged.
        LogError: the copy is not the version that its name states.
    """
    name = f"{version_name(task_id, digest)}.json"
    file = Path(folder) / TASKS / name
    if Path(name).name != name or not file.is_file():
        return None
    task = kind.tasks.load(file)
    if task.digest != digest:
        raise LogError(f"'{file}' was changed: its digest is {task.digest[:DIGITS]}; bring the original copy back")
    return task


def run_task(folder: str | os.PathLike[str], manifest: RunManifest, name: str) -> Any:
    """Return the task that a run calls ``name``, from the copy in its folder.

    Raises:
        TreeError: the copy is damaged.
        LogError: the copy is missing or was changed.
    """
    ref = manifest.tasks[name]
    task = kept_task(kind(manifest.env), folder, ref.id, ref.digest)
    if task is None:
        raise LogError(f"'{folder}' lacks the copy of {name} in {TASKS}/; bring it back")
    return task


def logged_digests(folder: Path, specs: Iterable[EpisodeSpec]) -> set[str]:
    """Return the digests of the tasks that the logs of some episodes were played on. Damaged headers are left out."""
    found = set()
    for spec in specs:
        try:
            found.add(read_header(log_file(folder, spec)).task.digest)
        except LogError:
            continue
    return found


PROMPTS = "prompts"
"""Folder of the copies in a run folder."""


def own_templates(study: StudyConfig) -> dict[str, str]:
    """Return the templates of a study that are not the package's, by name.

    Raises:
        OptionError: their folder is missing, or a template in it is invalid.
    """
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
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, text.encode())


def with_kept_templates(study: StudyConfig, folder: Path) -> StudyConfig:
    """Return a study, named by digest, that takes its templates from a run folder."""
    if is_packaged(study.prompts_name, kind(study.env).package):
        return study
    return study.model_copy(update={"prompts": str(folder.resolve() / study.prompts_name)})
