"""Run folder: the manifest, the episode logs, and the lock that keeps other processes out."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from inquitree_gym.errors import LogError
from inquitree_gym.log import TaskRef, has_header, read_episode
from inquitree_gym.log.jsonl import lock
from inquitree_gym.runner.specs import EpisodeSpec
from inquitree_gym.runner.study import StudyConfig

MANIFEST = "run.json"
EPISODES = "episodes"
LOCK = "run.lock"
"""Locked while a run is going on. The file is never removed: two processes could lock a file that is."""
RUN_FORMAT = "inquitree-run/1"


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Episodes of a study by the state of their logs."""

    complete: list[EpisodeSpec] = field(default_factory=list)
    torn: list[EpisodeSpec] = field(default_factory=list)
    """Started but not finished; a run resumes them."""
    missing: list[EpisodeSpec] = field(default_factory=list)
    damaged: dict[EpisodeSpec, str] = field(default_factory=dict)
    """Unreadable logs with the error; a run leaves them alone."""

    @property
    def remaining(self) -> list[EpisodeSpec]:
        """Episodes left to play; torn ones come first, since they are nearest to their end."""
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


class RunManifest(BaseModel):
    """Content of the manifest of a run."""

    model_config = ConfigDict(frozen=True)

    format: str = RUN_FORMAT
    study: StudyConfig
    """Everything that the folder was asked for so far."""
    trees: dict[str, TaskRef] = {}
    """Version of each tree by its name in the study; empty in a run of a release that kept no copies."""
    rules: dict[str, Any] = {}
    """Rules of the episodes under the latest command, defaults included."""
    versions: dict[str, Any] = {}
    """Release, log version, version of the local judge and digest of the shipped templates at the latest command."""


def load_manifest(folder: str | os.PathLike[str]) -> RunManifest:
    """Return the manifest of a run folder.

    Raises:
        LogError: there is no readable manifest.
    """
    file = Path(folder) / MANIFEST
    try:
        return RunManifest.model_validate(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        raise LogError(f"'{folder}' is no run folder: cannot read {file.name} ({error})") from error


def read_manifest(folder: str | os.PathLike[str]) -> StudyConfig:
    """Return the study of a run folder; see `load_manifest`."""
    return load_manifest(folder).study


def has_logs(folder: Path) -> bool:
    """Return whether a run folder holds the log of an episode, finished or not."""
    return any((folder / EPISODES).glob("*.jsonl"))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create the folder of a run, and keep other processes out of it during the block.

    Raises:
        LogError: another process holds the lock, or the folder cannot be written.
    """
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
    document = json.dumps(manifest.model_dump(mode="json"), indent=2) + "\n"
    file = folder / MANIFEST
    if not file.exists() or file.read_text(encoding="utf-8") != document:
        write_whole(file, document)


def write_whole(file: Path, text: str) -> None:
    """Write a file that other processes see whole or not at all."""
    part = file.with_name(f"{file.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(file)


def cannot_write(folder: Path, error: OSError) -> LogError:
    """Return the error for a run folder that cannot be written."""
    return LogError(f"cannot write to '{folder}': {error.strerror}; choose another folder with --out")


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder to fill, which gets its name only when the block ends without an error.

    Raises:
        LogError: something of that name exists, but for an empty folder, or the folder cannot be written.
    """
    part = folder.with_name(f".{folder.name}-{os.getpid()}.part")
    try:
        if folder.is_symlink() or (folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))):
            raise LogError(f"'{folder}' exists already; nothing is overwritten: choose another folder with --out")
        part.mkdir(parents=True)
        yield part
        part.replace(folder)
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def marker_file(folder: Path) -> Iterator[Path]:
    """Create a file during the block by which other machines recognise the folder.

    Raises:
        LogError: the folder cannot be written.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.NamedTemporaryFile(dir=folder, prefix=".marker-"))
        except OSError as error:
            raise cannot_write(folder, error) from error
        yield Path(file.name).resolve()
