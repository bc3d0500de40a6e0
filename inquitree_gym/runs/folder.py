"""Run folder: the manifest, the episode logs, the copies of tasks, and the lock that keeps other processes out."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from inquitree_gym.errors import LogError
from inquitree_gym.files import MAX_MANIFEST, name_file, read_input, write_whole
from inquitree_gym.kinds import Kind, kind
from inquitree_gym.log import TaskRef, has_header, read_episode, read_header
from inquitree_gym.log.jsonl import lock
from inquitree_gym.runs.specs import EpisodeSpec
from inquitree_gym.runs.study import MAX_EPISODES, StudyConfig, check_file_names, faults, too_many

if TYPE_CHECKING:
    from inquitree_gym.protocols import Task

MANIFEST = "run.json"
EPISODES = "episodes"
LOCK = "run.lock"
"""Locked while a run is going on. The file is never removed: two processes could lock a file that is."""
RUN_FORMAT = "inquitree-run/2"


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Episodes of a study by the state of their logs."""

    complete: list[EpisodeSpec] = field(default_factory=list)
    torn: list[EpisodeSpec] = field(default_factory=list)
    """Started but not finished. A run resumes them."""
    missing: list[EpisodeSpec] = field(default_factory=list)
    damaged: dict[EpisodeSpec, str] = field(default_factory=dict)
    """Unreadable logs with the error. A run leaves them alone."""

    @property
    def remaining(self) -> list[EpisodeSpec]:
        """Episodes left to play. Torn ones come first, since they are nearest to their end."""
        return [*self.torn, *self.missing]


def run_status(folder: Path, specs: Iterable[EpisodeSpec]) -> RunStatus:
    """Sort episodes by the state of their logs in ``folder``, which may not exist yet."""
    status = RunStatus()
    for spec in specs:
        file = log_file(folder, spec)
        try:
            if not has_header(file):
                status.missing.append(spec)
            else:
                (status.torn if read_episode(file).footer is None else status.complete).append(spec)
        except LogError as error:
            status.damaged[spec] = str(error)
    return status


def log_file(folder: str | os.PathLike[str], spec: EpisodeSpec) -> Path:
    """Return the path of an episode's log."""
    return Path(folder) / EPISODES / spec.file_name


def is_locked(file: Path) -> bool:
    """Tell whether a log is being written. See `lock`."""
    try:
        with file.open("r+b") as stream:
            return not lock(stream)
    except FileNotFoundError:
        return False


class RunManifest(BaseModel):
    """Content of the manifest of a run."""

    model_config = ConfigDict(frozen=True)

    format: str = RUN_FORMAT
    studies: tuple[StudyConfig, ...] = Field(min_length=1)
    """Studies that were run into the folder, in order, their tasks and prompts named as in the folder. They differ only
    in the episodes that they ask for."""
    tasks: dict[str, TaskRef]
    """Version of each task by its name in the studies."""
    rules: dict[str, Any] = {}
    """Rules of the episodes under the latest command, defaults included."""
    versions: dict[str, Any] = {}
    """Release, log version, version of the local judge and digest of the shipped templates at the latest command."""

    @model_validator(mode="after")
    def _check_studies(self) -> RunManifest:
        if len({study.env for study in self.studies}) > 1:
            raise ValueError("studies: their kinds of environment differ; a run has one")
        if unknown := {name for study in self.studies for name in study.trees} - self.tasks.keys():
            raise ValueError(f"tasks: the version of {', '.join(sorted(unknown))} is missing")
        check_file_names(self.studies)
        _ = self.specs  # too many are refused before anything works with them
        return self

    @property
    def env(self) -> str:
        """Kind of environment."""
        return self.studies[0].env

    @property
    def limit(self) -> str:
        """Turn limit of the studies. See `KindSettings.limit`."""
        return str(self.studies[0].settings.limit)

    @cached_property
    def specs(self) -> tuple[EpisodeSpec, ...]:
        """Every episode that the folder was asked for, each once, study by study."""
        specs: dict[EpisodeSpec, None] = {}
        for study in self.studies:
            specs.update(dict.fromkeys(study.specs()))
            if len(specs) > MAX_EPISODES:
                raise too_many(len(specs))
        return tuple(specs)


def load_manifest(folder: str | os.PathLike[str]) -> RunManifest:
    """Return the manifest of a run folder. Raise `LogError` if it is missing, damaged or of another version."""
    file = Path(folder) / MANIFEST

    def no_run(message: str) -> LogError:
        return LogError(f"'{folder}' is no run folder: {message}")

    try:
        document = json.loads(read_input(file, limit=MAX_MANIFEST, error=no_run))
        version = document.get("format", RUN_FORMAT) if isinstance(document, dict) else RUN_FORMAT
        if version != RUN_FORMAT:
            raise LogError(
                f"'{file}' has the format {version!r}, and this release reads {RUN_FORMAT!r}; read the run with the "
                "release that wrote it, or play its study again into another folder"
            )
        return RunManifest.model_validate(document)
    except ValidationError as error:
        reason = "; ".join(faults(error))
    except (ValueError, RecursionError) as error:
        reason = str(error)
    raise no_run(f"cannot read {file.name} ({reason})")


def has_logs(folder: Path) -> bool:
    """Return whether a run folder holds the log of an episode, finished or not."""
    return any((folder / EPISODES).glob("*.jsonl"))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create and lock the folder of a run during the block. Raise `LogError` if it is in use or cannot be written."""
    with ExitStack() as stack:
        try:
            (folder / EPISODES).mkdir(parents=True, exist_ok=True)
            if not lock(stack.enter_context((folder / LOCK).open("ab"))):
                raise LogError(
                    f"another process is running in '{folder}'; wait until it is done, or choose another folder with "
                    "--out"
                )
        except OSError as error:
            raise cannot_write(folder, error) from error
        yield


def write_manifest(folder: Path, manifest: RunManifest) -> None:
    """Write the manifest of a run folder, unless the same one is there."""
    document = (json.dumps(manifest.model_dump(mode="json"), indent=2) + "\n").encode()
    file = folder / MANIFEST
    if not file.exists() or file.read_bytes() != document:
        write_whole(file, document)


def cannot_write(folder: Path, error: OSError) -> LogError:
    """Return the error for a run folder that cannot be written."""
    return LogError(f"cannot write to '{folder}': {error.strerror}; choose another folder with --out")


@contextmanager
def marker_file(folder: Path) -> Iterator[Path]:
    """Create a file during the block by which other machines recognise the folder. Raise `LogError` if that fails."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.NamedTemporaryFile(dir=folder, prefix=".marker-"))
        except OSError as error:
            raise cannot_write(folder, error) from error
        yield Path(file.name).resolve()


TASKS = "tasks"
"""Folder of the copies in a run folder."""
DIGITS = 12
"""Hexadecimal digits of a digest in names."""


def version_name(name: str, digest: str) -> str:
    """Return the name of one version of a task: ``bread@1f0c2d3e4a5b``."""
    return f"{name}@{digest[:DIGITS]}"


def keep_task(folder: Path, kind: Kind, task: Task) -> None:
    """Copy a task into a run folder, unless its copy is there. The folder has to be writable."""
    file = folder / TASKS / name_file(version_name(task.id, task.digest), ".json")
    if not file.exists():
        write_whole(file, kind.tasks.dump(task))


def kept_task(kind: Kind, folder: str | os.PathLike[str], task_id: str, digest: str) -> Any | None:
    """Return the version of a task that a run folder holds, by id and full digest. None if it holds no copy.

    Raises:
        TreeError: the copy is damaged.
        LogError: the copy is not the version that its name states.
    """
    name = name_file(version_name(task_id, digest), ".json")
    file = Path(folder) / TASKS / name
    if Path(name).name != name or not file.is_file():
        return None
    task = kind.tasks.load(file)
    if task.digest != digest:
        raise LogError(f"'{file}' was changed: its digest is {task.digest[:DIGITS]}; bring the original copy back")
    return task


def run_task(folder: str | os.PathLike[str], manifest: RunManifest, name: str) -> Any:
    """Return the task that a run calls ``name``, from the copy in its folder. See `kept_task` for the errors."""
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
