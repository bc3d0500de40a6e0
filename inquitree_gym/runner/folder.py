"""Run folder: the manifest, the episode logs, and the lock that keeps other processes out."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from inquitree_gym.errors import LogError
from inquitree_gym.log import has_header, read_episode
from inquitree_gym.log.jsonl import lock
from inquitree_gym.runner.study import EpisodeSpec, StudyConfig

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


def read_manifest(folder: str | os.PathLike[str]) -> StudyConfig:
    """Return the study of a run folder.

    Raises:
        LogError: there is no readable manifest.
    """
    file = Path(folder) / MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        return StudyConfig.model_validate(manifest["study"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise LogError(f"'{folder}' is no run folder: cannot read {file.name} ({error})") from error


def check_manifest(folder: Path, study: StudyConfig) -> bool:
    """Return whether ``folder`` holds a manifest of ``study``.

    Raises:
        LogError: the folder holds episodes of another study, or the manifest cannot be read.
    """
    if not (folder / MANIFEST).exists():
        return False
    differences = read_manifest(folder).differences(study)
    if differences and any((folder / EPISODES).glob("*.jsonl")):
        raise LogError(
            f"cannot resume '{folder}': recorded settings differ ({', '.join(differences)}); "
            "choose another folder with --out"
        )
    return not differences  # a run that ended before its first episode leaves the folder to another study


@contextmanager
def locked(folder: Path, study: StudyConfig) -> Iterator[None]:
    """Create the folder for a run of ``study``, and keep other processes out of it during the block.

    Raises:
        LogError: another process holds the lock, the folder holds another study, or it cannot be written.
    """
    with ExitStack() as stack:
        try:
            (folder / EPISODES).mkdir(parents=True, exist_ok=True)
            if not lock(stack.enter_context((folder / LOCK).open("ab"))):
                raise LogError(
                    f"another process is running in '{folder}'; wait until it is done, or choose another folder with "
                    "--out"
                )
            if not check_manifest(folder, study):
                _write_manifest(folder, study)
        except OSError as error:
            raise _cannot_write(folder, error) from error
        yield


def _write_manifest(folder: Path, study: StudyConfig) -> None:
    document = json.dumps({"format": RUN_FORMAT, "study": study.model_dump(mode="json")}, indent=2) + "\n"
    part = (folder / MANIFEST).with_suffix(".part")
    part.write_text(document, encoding="utf-8")
    part.replace(folder / MANIFEST)


def _cannot_write(folder: Path, error: OSError) -> LogError:
    return LogError(f"cannot write to '{folder}': {error.strerror}; choose another folder with --out")


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
            raise _cannot_write(folder, error) from error
        yield Path(file.name).resolve()
