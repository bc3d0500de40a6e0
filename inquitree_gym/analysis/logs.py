"""Episode logs with their trees: from run folders, from any other folders, and from single files.

This is the one way in for everything that reads logs. A run folder is a folder of logs whose manifest also tells which
logs are missing. Agents that a manifest or a log names are never imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from inquitree_gym.errors import LogError, TreeError, UnknownTreeError
from inquitree_gym.judges.records import JUDGEMENTS
from inquitree_gym.log import Episode, Header, TaskKind, TaskRef, has_header, read_episode, read_header
from inquitree_gym.runner.environment_kinds import INQUIRIES, PROJECTIONS, EnvironmentKind, T
from inquitree_gym.runner.folder import EPISODES, MANIFEST, log_file, read_manifest
from inquitree_gym.runner.specs import EpisodeSpec
from inquitree_gym.runner.trees import kept_task
from inquitree_gym.scoring.episode import agent_and_model
from inquitree_gym.scoring.trajectory import check_log
from inquitree_gym.trees import Tree
from inquitree_gym.trees.disclosure import ProjectionTask

LOG_SUFFIX = ".jsonl"
OTHER_TREE = "other tree"
OTHER_ENV = "other kind"
NO_LOG = "no log"

Logged = TypeVar("Logged")


@dataclass(frozen=True, slots=True)
class MissingEpisode:
    """An episode that cannot be scored."""

    name: str
    """Name of the log; see `LogEntry.name`."""
    status: str
    """``missing``, ``torn`` (no footer), ``failed`` (ends with a failure), ``damaged`` (unreadable, or no episode on
    its tree; see `check_log`), ``other tree`` (its tree or task, or that version of it, is not at hand), ``other kind``
    (of another kind of environment) or ``no log``."""
    error: str
    """Message of the failure or of the reader; empty without one."""


class TreeShelf:
    """The trees and projection tasks that are available for the logs of one folder, by id and digest."""

    def __init__(self, run: Path | None = None, names: Sequence[str] = ()) -> None:
        """Look in the folder ``run``, which may hold copies of its trees, then among ``names``, then by id."""
        self._run = run
        self._names = names
        self._found: dict[TaskRef, Any] = {}
        self._errors: dict[TaskRef, str] = {}

    def find(self, kind: EnvironmentKind[T], wanted: TaskRef) -> T:
        """Return the tree or the projection task with this id and digest.

        Raises:
            LogError: there is none.
        """
        if wanted not in self._found and wanted not in self._errors:
            try:
                kept = self._kept(kind, wanted)
                self._found[wanted] = self._search(kind, wanted) if kept is None else kept
            except LogError as error:
                self._errors[wanted] = str(error)
        if wanted in self._errors:
            raise LogError(self._errors[wanted])
        found: T = self._found[wanted]
        return found

    def _search(self, kind: EnvironmentKind[T], wanted: TaskRef) -> T:
        at_hand = ""
        for name in self._places(wanted):
            try:
                found = kind.load(name)
            except UnknownTreeError:
                continue
            except TreeError as error:
                at_hand = at_hand or f"; {str(error).splitlines()[0]}"
                continue
            if found.digest == wanted.digest:
                return found
            if found.id == wanted.id:
                at_hand = f"; the {_NOUNS[wanted.kind]} at hand has {found.digest[:12]}"
        raise LogError(f"was played on {wanted.id} with digest {wanted.digest[:12]}, which is not at hand{at_hand}")

    def _kept(self, kind: EnvironmentKind[T], wanted: TaskRef) -> T | None:
        try:
            return None if self._run is None else kept_task(kind, self._run, wanted.id, wanted.digest)
        except TreeError as error:
            raise LogError(f"was played on {wanted.id}, whose copy is damaged: {str(error).splitlines()[0]}") from None

    def _places(self, wanted: TaskRef) -> Iterator[str]:
        yield from (name for name in self._names if name == wanted.id or Path(name).suffix)
        if wanted.id not in self._names:
            yield wanted.id


_NOUNS: dict[TaskKind, str] = {"inquiry": "tree", "projection": "task"}


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A log, or in a run a log that should exist."""

    name: str
    """File name; with the folders in between for a log in a subfolder."""
    file: Path
    home: Path
    """Folder whose judgements are about the log: its run, or the folder that holds it."""
    spec: EpisodeSpec
    """Agent, tree, fake level and seed, from the study of the run or else from the header."""
    trees: TreeShelf
    limit: str = ""
    """Turn limit as the study names it; empty without a study."""

    def read(self) -> LoggedEpisode | MissingEpisode:
        """Read the log of an inquiry, finished or not, and find its tree."""
        return self._read("inquiry", self._with_tree)

    def read_projections(self) -> LoggedProjections | MissingEpisode:
        """Read the log of an episode of projections, finished or not, and find its task."""
        return self._read("projection", self._with_task)

    def _read(self, kind: TaskKind, complete: Callable[[Episode], Logged]) -> Logged | MissingEpisode:
        try:
            if not has_header(self.file):
                return MissingEpisode(self.name, "missing", "")
            episode = read_episode(self.file)
        except LogError as error:
            return MissingEpisode(self.name, "damaged", str(error))
        if episode.header.task.kind != kind:
            told = f"'{self.file}' is a log of --env {episode.header.task.kind}, not {kind}"
            return MissingEpisode(self.name, OTHER_ENV, told)
        try:
            return complete(episode)
        except LogError as error:
            return MissingEpisode(self.name, OTHER_TREE, str(error))

    def _with_tree(self, episode: Episode) -> LoggedEpisode | MissingEpisode:
        tree = self.trees.find(INQUIRIES, episode.header.task)
        try:
            check_log(episode, tree)
        except LogError as error:
            return MissingEpisode(self.name, "damaged", f"'{self.file}': {error}")
        return LoggedEpisode(self, tree, episode)

    def _with_task(self, episode: Episode) -> LoggedProjections:
        return LoggedProjections(self, self.trees.find(PROJECTIONS, episode.header.task), episode)


@dataclass(frozen=True, slots=True)
class LoggedEpisode:
    """A readable log of an inquiry with its tree."""

    entry: LogEntry
    tree: Tree
    episode: Episode

    @property
    def missing(self) -> MissingEpisode | None:
        """The reason why an unfinished episode cannot be scored; None for a finished one."""
        return _unfinished(self.entry, self.episode)


@dataclass(frozen=True, slots=True)
class LoggedProjections:
    """A readable log of an episode of projections with its task."""

    entry: LogEntry
    task: ProjectionTask
    episode: Episode

    @property
    def missing(self) -> MissingEpisode | None:
        """See `LoggedEpisode.missing`."""
        return _unfinished(self.entry, self.episode)


def _unfinished(entry: LogEntry, episode: Episode) -> MissingEpisode | None:
    if episode.footer is not None:
        return None
    return MissingEpisode(entry.name, episode.status, "" if episode.failure is None else episode.failure.error)


@dataclass(frozen=True)
class Logs:
    """The logs under one path: of a run folder, of any other folder with its subfolders, or a single file."""

    path: Path
    entries: list[LogEntry] = field(default_factory=list)
    foreign: list[MissingEpisode] = field(default_factory=list)
    """Files that are no readable log."""

    @cached_property
    def kinds(self) -> set[TaskKind]:
        """Kinds of environment of the logs that have been started and can be read."""
        found: set[TaskKind] = set()
        for entry in self.entries:
            with suppress(LogError):
                found |= {read_header(entry.file).task.kind}
        return found

    @cached_property
    def homes(self) -> list[Logs]:
        """The logs by `LogEntry.home`, each with that folder as its path."""
        groups: dict[Path, list[LogEntry]] = {}
        for entry in self.entries:
            groups.setdefault(entry.home, []).append(entry)
        return [replace(self, path=home, entries=entries) for home, entries in groups.items()]


AnyLogs = str | os.PathLike[str] | Logs


def find_logs(path: AnyLogs) -> Logs:
    """Return the logs under a path; `Logs` are returned as they are.

    Subfolders are searched for ``*.jsonl`` files, except those of a run; a link to a folder is not followed.

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
        _add_file(found, found.path, found.path.resolve().parent, TreeShelf())
    if not found.entries and not found.foreign:
        found.foreign.append(MissingEpisode(found.path.name, NO_LOG, f"'{found.path}' holds no episode log"))
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
    """Add the logs of a run folder and the missing ones; False if its manifest cannot be read."""
    try:
        study = read_manifest(folder)
    except LogError as error:
        found.foreign.append(MissingEpisode(_name(found, folder / MANIFEST), "damaged", str(error)))
        return False
    shelf, known = TreeShelf(folder, study.trees), set()
    for spec in study.specs():
        file = log_file(folder, spec)
        known.add(file.name)
        name = file.name if folder == found.path else _name(found, file)
        found.entries.append(LogEntry(name, file, folder, spec, shelf, study.limit))
    for file in sorted((folder / EPISODES).glob(f"*{LOG_SUFFIX}")):
        if file.name not in known:
            _add_file(found, file, folder, shelf)
    return True


def _add_files(found: Logs, folder: Path, names: Iterator[str]) -> None:
    shelf = TreeShelf()
    for name in names:
        _add_file(found, folder / name, folder, shelf)


def _add_file(found: Logs, file: Path, home: Path, shelf: TreeShelf) -> None:
    try:
        header = read_header(file)
    except LogError as error:
        found.foreign.append(MissingEpisode(_name(found, file), NO_LOG, str(error)))
    else:
        found.entries.append(LogEntry(_name(found, file), file, home, _spec_of(header), shelf))


def _name(found: Logs, file: Path) -> str:
    return file.name if file == found.path else file.relative_to(found.path).as_posix()


def _run_of(file: Path) -> Path | None:
    """Return the run folder of a log; None for a log outside of a run."""
    episodes = file.resolve().parent
    return episodes.parent if episodes.name == EPISODES and (episodes.parent / MANIFEST).is_file() else None


def _spec_of(header: Header) -> EpisodeSpec:
    agent, model = agent_and_model(header.agent)
    level = header.rules.get("fake_level")
    played = level if isinstance(level, int) else 0
    return EpisodeSpec(agent, header.task.id, played, header.seed, model, header.task.kind)
