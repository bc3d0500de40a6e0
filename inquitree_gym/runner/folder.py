"""The folder of a run: its manifest, its logs, and who may write to it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inquitree_gym.errors import LogError
from inquitree_gym.log.jsonl import lock
from inquitree_gym.runner.study import Cell, Study

MANIFEST = "run.json"
EPISODES = "episodes"
LOCK = "run.lock"
"""Locked as long as a run goes on. The file stays: one that is removed could be locked by two."""
RUN_FORMAT = "inquitree-run/1"


def log_file(folder: str | os.PathLike[str], cell: Cell) -> Path:
    """Return where the log of an episode lies."""
    return Path(folder) / EPISODES / cell.file_name


def read_manifest(folder: str | os.PathLike[str]) -> Study:
    """Return the study that a run folder was made from.

    Raises:
        LogError: there is no readable manifest.
    """
    file = Path(folder) / MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        return Study.model_validate(manifest["study"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LogError(f"'{folder}' is no run folder: cannot read {file.name} ({error})") from error


def see_same_study(folder: Path, study: Study) -> bool:
    """See that what was begun here is of a study with the same episodes; tell whether there is such a manifest.

    Raises:
        LogError: it is of another study, or the manifest cannot be read.
    """
    if not (folder / MANIFEST).exists():
        return False
    if read_manifest(folder).is_of(study):
        return True
    if any((folder / EPISODES).glob("*.jsonl")):
        raise LogError(f"'{folder}' holds the run of another study; choose another folder with --out")
    return False  # a run that ended before its first episode leaves the folder to others


@contextmanager
def claimed(folder: Path, study: Study) -> Iterator[None]:
    """Keep the folder to this process, as the run of ``study``, until the end of the block or of the process.

    Raises:
        LogError: another process runs into it, it holds the run of another study, or it cannot be written.
    """
    try:
        (folder / EPISODES).mkdir(parents=True, exist_ok=True)
        stream = (folder / LOCK).open("ab")
    except OSError as error:
        raise _unwritable(folder, error) from error
    with stream:
        try:
            free = lock(stream)
        except OSError as error:
            raise _unwritable(folder, error) from error
        if not free:
            raise LogError(
                f"another process runs into '{folder}'; wait until it is done, or choose another folder with --out"
            )
        if not see_same_study(folder, study):
            _write_manifest(folder, study)
        yield


def _write_manifest(folder: Path, study: Study) -> None:
    document = json.dumps({"format": RUN_FORMAT, "study": study.model_dump(mode="json")}, indent=2) + "\n"
    file = folder / MANIFEST
    part = file.with_suffix(".part")
    try:
        part.write_text(document, encoding="utf-8")
        part.replace(file)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError) -> LogError:
    return LogError(f"cannot write to '{folder}': {error.strerror}; choose another folder with --out")
