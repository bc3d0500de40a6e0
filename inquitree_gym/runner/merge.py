"""Merging of runs into one: every episode once, with its tree and its judgements."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from pathlib import Path
from typing import Any

from inquitree_gym.errors import LogError
from inquitree_gym.judges import JudgementFile, read_judgements
from inquitree_gym.judges.projections.records import ProjectionJudgementFile, read_projection_judgements
from inquitree_gym.log import read_episode, read_header
from inquitree_gym.runner.environment_kinds import KINDS
from inquitree_gym.runner.folder import EPISODES, RunStatus, load_manifest, log_file, new_folder, run_status
from inquitree_gym.runner.growth import RunPlan, differences, manifest_of, renamed, take_in, task_refs, united
from inquitree_gym.runner.specs import EpisodeSpec, tree_name
from inquitree_gym.runner.study import StudyConfig
from inquitree_gym.runner.templates import PROMPTS
from inquitree_gym.runner.trees import DIGITS, run_task
from inquitree_gym.trees import Tree
from inquitree_gym.trees.disclosure import ProjectionTask

MAX_NAMED = 5
"""Most contradicting episodes that are named."""


@dataclass(frozen=True, slots=True)
class MergeSummary:
    """Outcome of a merge."""

    episodes: int
    """Complete episodes of the new run."""
    unfinished: int
    """Torn episodes of the new run, which a run resumes."""
    doubles: int
    """Copies of episodes that were left out."""
    damaged: tuple[str, ...]
    """Logs that were left out because they cannot be read."""


@dataclass(frozen=True)
class _Source:
    """A run to be merged."""

    folder: Path
    study: StudyConfig
    trees: dict[str, Tree] | dict[str, ProjectionTask]
    prompts: str
    """Digest of the templates of the observations."""
    status: RunStatus

    @cached_property
    def instruments(self) -> dict[str, set[str]]:
        """Digests of the embedders and of the templates of the complete episodes."""
        headers = [read_header(log_file(self.folder, spec)) for spec in self.status.complete]
        return {
            "an embedder": {header.embedder.digest for header in headers if header.embedder is not None},
            "templates": {header.prompts for header in headers},
        }


def merge_runs(folders: Sequence[Path], out: Path) -> MergeSummary:
    """Merge runs into a new folder.

    An episode that several runs hold is taken once; a complete one goes before a torn one. Judgements come along.

    Args:
        folders: two or more run folders; they are not changed.
        out: the new folder.

    Raises:
        LogError: a folder is no run, the runs contradict each other, in a setting, a version of a tree or an episode,
            or ``out`` exists or cannot be written.
        OptionError: the union is too large, or two of its episodes would share their log.
    """
    sources = [_source(folder) for folder in dict.fromkeys(folder.resolve() for folder in folders)]
    if len(sources) < 2:
        raise LogError("a merge takes two runs or more; name different folders")
    for one, other in combinations(sources, 2):
        _check_agreement(one, other)
    study = reduce(united, (source.study for source in sources))
    kind = KINDS[study.env]
    trees: dict[str, Any] = {name: tree for source in reversed(sources) for name, tree in source.trees.items()}
    complete, doubles = _complete(sources)
    torn = _first(sources, (source.status.torn for source in sources), complete)
    with new_folder(out) as part:
        (part / EPISODES).mkdir()
        take_in(part, RunPlan(study, trees, manifest_of(study, task_refs(kind, trees), sources[0].prompts)))
        if (templates := sources[0].folder / PROMPTS).is_dir():
            shutil.copytree(templates, part / PROMPTS)
        for name, source in {**complete, **torn}.items():
            shutil.copyfile(source.folder / EPISODES / name, part / EPISODES / name)
        for source in sources:
            _copy_judgements(source.folder, part, complete.keys())
    damaged = {spec.file_name: None for source in sources for spec in source.status.damaged}
    lost = tuple(name for name in damaged if name not in complete and name not in torn)
    return MergeSummary(len(complete), len(torn), doubles, lost)


def _source(folder: Path) -> _Source:
    manifest = load_manifest(folder)
    kind = KINDS[manifest.study.env]
    trees = {tree_name(name): run_task(kind, folder, manifest, name) for name in manifest.study.trees}
    study = renamed(manifest.study, {name: tree_name(name) for name in manifest.study.trees})
    prompts = str(manifest.versions.get("prompts", ""))
    return _Source(folder, study, trees, prompts, run_status(folder, study.specs()))


def _check_agreement(one: _Source, other: _Source) -> None:
    """Raise `LogError` if two runs differ in a setting or in the version of a tree."""
    places = f"in '{one.folder}'", f"in '{other.folder}'"
    found = list(differences(one.study, other.study, places))
    for name in one.trees.keys() & other.trees.keys():
        digests = [source.trees[name].digest[:DIGITS] for source in (one, other)]
        if digests[0] != digests[1]:
            found.append(f"{name} has the digest {digests[0]} {places[0]} and {digests[1]} {places[1]}")
    for kind, ours in one.instruments.items():
        if ours.isdisjoint(theirs := other.instruments[kind]) and ours and theirs:
            found.append(f"{kind} with the digest {_listed(ours)} {places[0]} and {_listed(theirs)} {places[1]}")
    if found:
        raise LogError(f"these runs cannot be merged: {'; '.join(found)}; report them side by side instead")


def _listed(digests: Iterable[str]) -> str:
    return " and ".join(sorted(digest[:DIGITS] for digest in digests))


def _complete(sources: Sequence[_Source]) -> tuple[dict[str, _Source], int]:
    """Return the first run that has each complete episode, by the name of its log, and the number of copies.

    Raises:
        LogError: two runs hold different episodes of one agent, tree, fake level and seed.
    """
    found = _first(sources, (source.status.complete for source in sources))
    doubles, differing = 0, []
    for source in sources:
        for spec in source.status.complete:
            first = found[spec.file_name]
            if first is source:
                continue
            doubles += 1
            if _fingerprint(first, spec) != _fingerprint(source, spec):
                differing.append(f"{spec.file_name} of '{first.folder}' and '{source.folder}'")
    if differing:
        more = f" and {len(differing) - MAX_NAMED} more" if len(differing) > MAX_NAMED else ""
        raise LogError(
            f"these runs cannot be merged: different episodes of the same agent, tree, level and seed: "
            f"{', '.join(differing[:MAX_NAMED])}{more}; play one of the runs with another --first-seed"
        )
    return found, doubles


def _first(
    sources: Sequence[_Source], specs: Iterable[Iterable[EpisodeSpec]], without: Iterable[str] = ()
) -> dict[str, _Source]:
    found: dict[str, _Source] = {}
    for source, of_source in zip(sources, specs, strict=True):
        for spec in of_source:
            found.setdefault(spec.file_name, source)
    return {name: source for name, source in found.items() if name not in set(without)}


def _fingerprint(source: _Source, spec: EpisodeSpec) -> str:
    return read_episode(log_file(source.folder, spec)).fingerprint


def _copy_judgements(run: Path, out: Path, episodes: Iterable[str]) -> None:
    """Copy the judgements of some episodes that the new run lacks."""
    wanted = set(episodes)
    for each in read_judgements(run):
        with JudgementFile(out, each.judge, each.config) as file:
            file.take_over(record for record in each.by_episode.values() if record.episode in wanted)
    for projected in read_projection_judgements(run):
        with ProjectionJudgementFile(out, projected.judge, projected.config) as of_projections:
            of_projections.take_over(record for record in projected.by_turn.values() if record.episode in wanted)
