"""Episode logs with their tasks: from run folders, from any other folders, and from single files.

Everything that reads logs enters here. A run folder is a folder of logs whose manifest also tells which
logs are missing. Agents that a manifest or a log names are never imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from inquitree_gym.errors import LogError, TreeError, UnknownTreeError
from inquitree_gym.judging.stored import JUDGEMENTS
from inquitree_gym.kinds import kind
from inquitree_gym.log import Episode, Header, TaskRef, has_header, read_episode, read_header
from inquitree_gym.runs.folder import EPISODES, MANIFEST, kept_task, load_manifest, log_file
from inquitree_gym.runs.specs import EpisodeSpec, cell_of
from inquitree_gym.trees.catalogue import TREES_VARIABLE

LOG_SUFFIX = ".jsonl"
OTHER_TASK = "other task"
DAMAGED = "damaged"
NO_LOG = "no log"


@dataclass(frozen=True, slots=True)
class Missing:
    """An episode that cannot be scored."""

    name: str
    """Name of the log. See `LogEntry.name`."""
    status: str
    """``missing``, ``torn`` (no footer), ``failed`` (ends with a failure), ``damaged`` (unreadable, or no episode on
    its task), ``other task`` (its task, or that version of it, is not at hand) or ``no log``."""
    error: str
    """Message of the failure or of the reader. Empty without one."""
    kind: str = ""


class TaskFinder:
    """The tasks of the logs of one folder, by kind, id and digest."""

    def __init__(self, folder: Path) -> None:
        """Look among the copies of tasks in a folder of logs or of a run, then by id."""
        self._folder = folder
        self._loaded: dict[TaskRef, Any] = {}
        self._errors: dict[TaskRef, str] = {}

    def load(self, ref: TaskRef) -> Any:
        """Return the task with this id and digest. Raise `LogError` if it was not found."""
        if ref not in self._loaded and ref not in self._errors:
            try:
                copy = self._copy_beside(ref)
                self._loaded[ref] = self._by_id(ref) if copy is None else copy
            except LogError as error:
                self._errors[ref] = str(error)
        if ref in self._errors:
            raise LogError(self._errors[ref])
        return self._loaded[ref]

    def _by_id(self, ref: TaskRef) -> Any:
        tasks, installed = kind(ref.kind).tasks, ""
        try:
            task = tasks.load(ref.id)
        except UnknownTreeError:
            pass
        except TreeError as error:
            installed = f"; {str(error).splitlines()[0]}"
        else:
            if task.digest == ref.digest:
                return task
            installed = f"; the {tasks.noun} at hand has {task.digest[:12]}"
        raise LogError(
            f"was played on {ref.id} with digest {ref.digest[:12]}, which is not at hand{installed}; put that version "
            f"of it into a folder named by {TREES_VARIABLE}"
        )

    def _copy_beside(self, ref: TaskRef) -> Any | None:
        try:
            return kept_task(kind(ref.kind), self._folder, ref.id, ref.digest)
        except TreeError as error:
            raise LogError(f"was played on {ref.id}, whose copy is damaged: {str(error).splitlines()[0]}") from None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A log, or in a run a log that should exist."""

    name: str
    """File name, with the folders in between for a log in a subfolder."""
    file: Path
    home: Path
    """Folder whose judgements are about the log: its run, or the folder that holds it."""
    spec: EpisodeSpec
    """Agent, task, cell and seed, from the study of the run or else from the header."""
    tasks: TaskFinder
    limit: str = ""
    """Turn limit as the study names it. Empty without a study."""

    def read(self) -> LoggedEpisode | Missing:
        """Read the log, finished or not, and find its task."""
        try:
            episode = read_episode(self.file)
        except LogError as error:
            return self._unread(error)
        try:
            task = self.tasks.load(episode.header.task)
        except LogError as error:
            return self._missing(OTHER_TASK, error)
        try:
            kind(episode.header.task.kind).results.check(episode, task)
        except LogError as error:
            return self._missing(DAMAGED, f"'{self.file}': {error}")
        return LoggedEpisode(self, task, episode)

    def _unread(self, error: LogError) -> Missing:
        """Return the reason why a log cannot be read: it is damaged, or was never begun."""
        try:
            return self._missing(DAMAGED, error) if has_header(self.file) else self._missing("missing")
        except LogError as unopened:
            return self._missing(DAMAGED, unopened)

    def _missing(self, status: str, error: object = "") -> Missing:
        return Missing(self.name, status, str(error), self.spec.env)


@dataclass(frozen=True, slots=True)
class LoggedEpisode:
    """A readable log with its task."""

    entry: LogEntry
    task: Any
    episode: Episode[Any]

    @property
    def kind(self) -> str:
        """Kind of environment."""
        return self.episode.header.task.kind

    @property
    def missing(self) -> Missing | None:
        """The reason why an unfinished episode cannot be scored. None for a finished one."""
        if self.episode.footer is not None:
            return None
        failure = self.episode.failure
        return Missing(self.entry.name, self.episode.status, "" if failure is None else failure.error, self.kind)


@dataclass(frozen=True)
class Logs:
    """The logs under one path: of a run folder, of any other folder with its subfolders, or a single file."""

    path: Path
    entries: list[LogEntry] = field(default_factory=list)
    foreign: list[Missing] = field(default_factory=list)
    """Files that are no readable log."""

    @cached_property
    def kinds(self) -> set[str]:
        """Kinds of environment of the logs that have been started and can be read."""
        found: set[str] = set()
        for entry in self.entries:
            with suppress(LogError):
                found |= {read_header(entry.file).task.kind}
        return found

    def of_kind(self, name: str) -> Logs:
        """Return the logs of one kind of environment."""
        return replace(self, entries=[entry for entry in self.entries if entry.spec.env == name])

    @cached_property
    def homes(self) -> list[Logs]:
        """The logs by `LogEntry.home`, each with that folder as its path."""
        groups: dict[Path, list[LogEntry]] = {}
        for entry in self.entries:
            groups.setdefault(entry.home, []).append(entry)
        return [replace(self, path=home, entries=entries) for home, entries in groups.items()]


AnyLogs = str | os.PathLike[str] | Logs


def find_logs(path: AnyLogs) -> Logs:
    """Return the logs under a path. `Logs` are returned as they are.

    Subfolders are searched for ``*.jsonl`` files, except those of a run. A link to a folder is not followed.

    Raises:
        LogError: the path does not exist.
    """
    if isinstance(path, Logs):
        return path
    found = Logs(Path(path))
    if not found.path.exists():
        raise LogError(f"cannot read '{path}': it does not exist; give a run, another folder of logs, or a log")
    if found.path.is_file() and (run := _run_of(found.path)) is not None and _add_run(of_run := Logs(run), run):
        found.entries.extend(entry for entry in of_run.entries if entry.file.name == found.path.name)
        found.foreign.extend(of_run.foreign if not found.entries else ())
    elif found.path.is_dir():
        for folder, subfolders, files in os.walk(found.path):
            if MANIFEST in files and _add_run(found, Path(folder)):
                subfolders.clear()
                continue
            subfolders[:] = sorted(set(subfolders) - {JUDGEMENTS})
            _add_files(found, Path(folder), (name for name in sorted(files) if name.endswith(LOG_SUFFIX)))
    else:
        home = found.path.resolve().parent
        _add_file(found, found.path, home, TaskFinder(home))
    if not found.entries and not found.foreign:
        found.foreign.append(Missing(found.path.name, NO_LOG, f"'{found.path}' holds no episode log"))
    return found


def join_logs(found: Sequence[Logs]) -> Logs:
    """Return logs under several paths as one, named by their place below the nearest folder that holds all of them."""
    if len(found) == 1:
        return found[0]
    common = Path(os.path.commonpath([os.path.abspath(each.path) for each in found]))
    entries = {os.path.abspath(entry.file): entry for logs in found for entry in logs.entries}
    named = [replace(entry, name=_below(file, common)) for file, entry in entries.items()]
    return Logs(common, named, list(dict.fromkeys(each for logs in found for each in logs.foreign)))


def _below(file: str, folder: Path) -> str:
    """Return a path without the parts that would lead out of ``folder``, as through a link."""
    return "/".join(part for part in Path(os.path.relpath(file, folder)).parts if part != os.pardir)


def _add_run(found: Logs, folder: Path) -> bool:
    """Add the logs of a run folder and the missing ones. False if its manifest cannot be read."""
    try:
        manifest = load_manifest(folder)
    except LogError as error:
        found.foreign.append(Missing(_name(found, folder / MANIFEST), DAMAGED, str(error)))
        return False
    shelf, known = TaskFinder(folder), set()
    for spec in manifest.specs:
        file = log_file(folder, spec)
        known.add(file.name)
        name = file.name if folder == found.path else _name(found, file)
        found.entries.append(LogEntry(name, file, folder, spec, shelf, manifest.limit))
    for file in sorted((folder / EPISODES).glob(f"*{LOG_SUFFIX}")):
        if file.name not in known:
            _add_file(found, file, folder, shelf)
    return True


def _add_files(found: Logs, folder: Path, names: Iterator[str]) -> None:
    shelf = TaskFinder(folder)
    for name in names:
        _add_file(found, folder / name, folder, shelf)


def _add_file(found: Logs, file: Path, home: Path, shelf: TaskFinder) -> None:
    try:
        header = read_header(file)
    except LogError as error:
        found.foreign.append(Missing(_name(found, file), NO_LOG, str(error)))
    else:
        found.entries.append(LogEntry(_name(found, file), file, home, _spec_of(header), shelf))


def _name(found: Logs, file: Path) -> str:
    return file.name if file == found.path else file.relative_to(found.path).as_posix()


def _run_of(file: Path) -> Path | None:
    """Return the run folder of a log. None for a log outside of a run."""
    episodes = file.resolve().parent
    return episodes.parent if episodes.name == EPISODES and (episodes.parent / MANIFEST).is_file() else None


def _spec_of(header: Header) -> EpisodeSpec:
    agent, model = agent_and_model(header.agent)
    cell = cell_of(header.task.kind, header.rules)
    return EpisodeSpec(agent, header.task.id, cell, header.seed, model, header.task.kind)


def agent_label(config: Mapping[str, Any]) -> str:
    """Return an agent's logged name with its model. See `agent_and_model`."""
    return " ".join(filter(None, agent_and_model(config)))


def agent_and_model(config: Mapping[str, Any]) -> tuple[str, str]:
    """Return an agent's logged name, and its model: the study's ``label`` for it, or its name and reasoning effort.

    The model of an agent without one is empty.
    """
    model, effort = (str(config.get(name) or "") for name in ("model", "reasoning_effort"))
    if model and effort:
        model = f"{model} ({effort})"
    return str(config.get("name", "unknown")), str(config.get("label") or model)
