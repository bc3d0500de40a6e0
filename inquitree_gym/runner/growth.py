"""Growth of a run: the studies that can share a folder, their union, and the episodes that a study adds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inquitree_gym import __version__
from inquitree_gym.embeddings import load_embedder
from inquitree_gym.errors import LogError
from inquitree_gym.log import TaskRef
from inquitree_gym.log.records import LOG_VERSION
from inquitree_gym.prompts import Prompts
from inquitree_gym.runner.environment_kinds import KINDS, OWN_SETTINGS, EnvironmentKind, T
from inquitree_gym.runner.folder import MANIFEST, RunManifest, cannot_write, has_logs, load_manifest, write_manifest
from inquitree_gym.runner.grids import hull, joined
from inquitree_gym.runner.models import ModelSettings
from inquitree_gym.runner.specs import EpisodeSpec, tree_name
from inquitree_gym.runner.study import StudyConfig, validated
from inquitree_gym.runner.templates import keep_templates, named_by_digest, own_templates
from inquitree_gym.runner.trees import DIGITS, keep_task, logged_digests, version_name
from inquitree_gym.trees import Tree
from inquitree_gym.trees.disclosure import ProjectionTask

GROWING = frozenset({"agents", "models", "trees", "fake_levels", "first_seed", "seeds", "grids"})
"""Settings of a study that may differ between the commands of a run: they say which episodes it has."""
MAX_SHOWN = 10
"""Most values of one kind that are named as added."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A study named as in a run folder, and what it adds to the run."""

    study: StudyConfig
    """The study, its trees and its prompts named as in the folder."""
    trees: Mapping[str, Tree] | Mapping[str, ProjectionTask]
    """Trees, or projection tasks, of the study by name."""
    manifest: RunManifest
    """Everything that the folder was asked for so far, this study included."""
    templates: Mapping[str, str] = field(default_factory=dict)
    """Templates that the package does not ship, by name."""
    added: str = ""
    """Episodes that the study adds to a folder with earlier episodes, in words; empty for none."""


def plan_run(folder: Path, study: StudyConfig, as_new_version: bool = False) -> RunPlan:
    """Return how a study is added to ``folder``; nothing is written.

    A folder without episodes takes any study. Otherwise the study may ask for further episodes, under the same settings
    and of the same versions of trees.

    Args:
        folder: of the run; it may not exist yet.
        study: the study.
        as_new_version: true to play a tree that was changed since as a further tree of the run.

    Raises:
        LogError: the settings contradict those of the folder, a tree was changed, or the manifest cannot be read.
        OptionError: the union of both studies is too large, two of its episodes would share their log, or a template is
            invalid.
        TreeError: a tree cannot be loaded.
    """
    kind = KINDS[study.env]
    trees = {tree_name(name): kind.load(name) for name in study.trees}
    templates, prompts = own_templates(study), Prompts(study.prompts_name, kind.templates).digest
    study = renamed(named_by_digest(study, templates), {name: tree_name(name) for name in study.trees})
    if not ((folder / MANIFEST).exists() and has_logs(folder)):
        return RunPlan(study, trees, manifest_of(study, task_refs(kind, trees), prompts), templates)
    there = load_manifest(folder)
    if there.study.env != study.env:  # first, since trees and tasks of the same name have different digests
        raise _contradiction(folder, [f"env is {there.study.env} there and {study.env} here"])
    known = {name: tree_name(name) for name in there.study.trees if tree_name(name) in trees}
    before = renamed(there.study, known)
    names = _names_in(folder, there, trees, as_new_version)
    study, trees = renamed(study, names), {names[name]: tree for name, tree in trees.items()}
    if found := list(differences(before, study)):
        raise _contradiction(folder, found)
    manifest = manifest_of(united(before, study), {**there.trees, **task_refs(kind, trees)}, prompts)
    return RunPlan(study, trees, manifest, templates, addition(before, study))


def _contradiction(folder: Path, found: Sequence[str]) -> LogError:
    return LogError(
        f"cannot add to '{folder}': {'; '.join(found)}; a run has one setting of each, so choose another folder "
        "with --out"
    )


def take_in(folder: Path, plan: RunPlan) -> None:
    """Write the trees, the templates and the manifest of a plan into its folder.

    Raises:
        LogError: the folder cannot be written.
    """
    try:
        for task in plan.trees.values():
            keep_task(folder, task)
        keep_templates(folder, plan.study, plan.templates)
        write_manifest(folder, plan.manifest)
    except OSError as error:
        raise cannot_write(folder, error) from error


def differences(there: StudyConfig, here: StudyConfig, places: tuple[str, str] = ("there", "here")) -> Iterator[str]:
    """Yield the contradictions between two studies in words: every setting that decides how an episode is played.

    Models are compared by label. Settings that do not affect replies may differ. ``places`` says where the studies are.
    """
    for name in type(here).model_fields:
        if name in (*GROWING, "rules", "prompts", "threshold"):
            continue
        yield from _compared(name, _fixed(getattr(there, name)), _fixed(getattr(here, name)), places)
    if there.env == here.env:
        kind = KINDS[here.env]
        yield from _compared("rules", kind.all_rules(there.rules), kind.all_rules(here.rules), places)
    yield from _compared("prompts", there.prompts_name, here.prompts_name, places)
    if there.threshold != here.threshold:
        yield from _compared("threshold", _threshold(there), _threshold(here), places)
    models = {model.label: model for model in there.models}
    for model in here.models:
        if model.label in models:
            name = f"model '{model.label}', setting"
            yield from _compared(name, models[model.label].fixed_settings, model.fixed_settings, places)


def united(there: StudyConfig, here: StudyConfig) -> StudyConfig:
    """Return a study of the episodes of two that do not contradict each other.

    Raises:
        OptionError: it is too large, or two episodes would share their log.
    """
    grids = joined((*there.parts, *here.parts))
    whole = hull(grids)
    models = {model.label: model for model in (*there.models, *here.models)}
    axes = {
        "agents": tuple(dict.fromkeys(agent for agent, _ in whole.players)),
        "models": tuple(models.values()),
        "trees": whole.trees,
        "fake_levels": whole.fake_levels,
        "first_seed": whole.first_seed,
        "seeds": whole.seeds,
    }
    study = validated(here.model_dump() | axes | {"grids": grids})
    one = study.model_copy(update={"grids": ()})
    return one if len(grids) == 1 and grids[0].covers(one.parts[0]) else study


def addition(there: StudyConfig, here: StudyConfig) -> str:
    """Return the episodes of a study that another lacks, in words; empty for none."""
    old = set(there.specs())
    new = [spec for spec in here.specs() if spec not in old]
    if not new:
        return ""
    kinds = {"agents": "player", "trees": "tree", "fake levels": "fake_level", "seeds": "seed"}
    shown = [f"{len(new)} episode{'s' * (len(new) != 1)}"]
    for kind, attribute in kinds.items():
        before = {getattr(spec, attribute) for spec in old}
        values = list(dict.fromkeys(str(v) for spec in new if (v := getattr(spec, attribute)) not in before))
        if values:
            more = ", …" if len(values) > MAX_SHOWN else ""
            shown.append(f"{kind} {', '.join(values[:MAX_SHOWN])}{more}")
    return "; ".join(shown)


def _names_in(
    folder: Path, there: RunManifest, trees: Mapping[str, Tree] | Mapping[str, ProjectionTask], as_new_version: bool
) -> dict[str, str]:
    """Return the name of each tree in the folder, by its own name; a version that the folder has keeps its name.

    Raises:
        LogError: a tree was changed and may not be played as a new version.
    """
    names, changed = {}, []
    known = {ref.digest: name for name, ref in there.trees.items()}
    for name, tree in trees.items():
        played = logged_digests(folder, _of_tree(there.study, name)) if tree.digest not in known else set()
        if tree.digest in known or not played or tree.digest in played:
            names[name] = known.get(tree.digest, name)
        elif as_new_version:
            names[name] = version_name(name, tree.digest)
        else:
            digests = " and ".join(sorted(digest[:DIGITS] for digest in played))
            changed.append(f"{name} has the digest {digests} there and {tree.digest[:DIGITS]} here")
    if changed:
        raise LogError(
            f"cannot add to '{folder}': {'; '.join(changed)}; bring back the tree that was played, play the changed "
            "one beside it with --as-new-version, or choose another folder with --out"
        )
    return names


def _of_tree(study: StudyConfig, name: str) -> Iterator[EpisodeSpec]:
    return (spec for spec in study.specs() if tree_name(spec.tree) == name)


def renamed(study: StudyConfig, names: Mapping[str, str]) -> StudyConfig:
    """Return a study with other names for its trees; those that ``names`` does not have stay."""

    def rename(trees: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names.get(name, name) for name in trees)

    grids = tuple(grid.model_copy(update={"trees": rename(grid.trees)}) for grid in study.grids)
    return study.model_copy(update={"trees": rename(study.trees), "grids": grids})


def task_refs(kind: EnvironmentKind[T], tasks: Mapping[str, T]) -> dict[str, TaskRef]:
    """Return kind, id, version and digest of tasks by the same names."""
    return {name: kind.ref(task) for name, task in tasks.items()}


def manifest_of(study: StudyConfig, trees: Mapping[str, TaskRef], prompts: str) -> RunManifest:
    """Return the manifest of a study with the rules and versions of this release.

    Args:
        study: the study, its trees and its prompts named as in the folder.
        trees: version of each tree by name.
        prompts: digest of the templates of the observations.
    """
    kind = KINDS[study.env]
    rules = {name: value for name, value in kind.all_rules(study.rules).items() if name not in OWN_SETTINGS}
    versions = {"inquitree-gym": __version__, "log": LOG_VERSION, "judge": kind.judge_version, "prompts": prompts}
    return RunManifest(study=study, trees=dict(trees), versions=versions, rules=rules)


def _fixed(value: Any) -> Any:
    """Return those settings of a model that decide how an episode is played; any other value as it is."""
    return value.fixed_settings if isinstance(value, ModelSettings) else value


def _threshold(study: StudyConfig) -> float | None:
    return load_embedder(study.embedder).threshold if study.threshold is None else study.threshold


def _compared(name: str, there: Any, here: Any, places: tuple[str, str]) -> Iterator[str]:
    if isinstance(there, dict) and isinstance(here, dict):
        for key in {**there, **here}:
            yield from _compared(f"{name} {key}", there.get(key), here.get(key), places)
    elif there != here:
        yield f"{name} is {_shown(there)} {places[0]} and {_shown(here)} {places[1]}"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("model", value)
    return value if isinstance(value, str) else "not set" if value is None else json.dumps(value, default=str)
