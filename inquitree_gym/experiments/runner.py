"""Run a study into a folder: ``run.json`` and one log per episode. Running it again does only what is missing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from inquitree_gym.baselines import make_agent
from inquitree_gym.embeddings import load_embedder, tree_vectors
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.errors import LogError
from inquitree_gym.experiments.study import Cell, Study
from inquitree_gym.log import is_begun, read_episode
from inquitree_gym.rollout import play
from inquitree_gym.trees import load_tree

MANIFEST = "run.json"
EPISODES = "episodes"
RUN_FORMAT = "inquitree-run/1"

Progress = Callable[[Cell, bool], None]
"""Told each cell once it is there, and whether it was played now."""


class RunSummary(NamedTuple):
    """What a run did."""

    played: int
    found: int
    """Episodes that were there already."""


def run_study(study: Study, folder: str | os.PathLike[str], progress: Progress | None = None) -> RunSummary:
    """Play every episode of ``study`` that ``folder`` does not hold yet; a torn one is resumed.

    Raises:
        LogError: the folder holds another study, or cannot be written; run again to go on from there.
    """
    folder = Path(folder)
    _claim(folder, study)
    envs: dict[tuple[str, bool], InquiryEnv] = {}
    played = found = 0
    for cell in study.cells():
        file = folder / EPISODES / cell.file_name
        begun = is_begun(file)
        if not begun:
            file.unlink(missing_ok=True)  # torn within its header, so nothing was played
        there = begun and read_episode(file).footer is not None
        if there:
            found += 1
        else:
            _play_cell(study, cell, file, envs)
            played += 1
        if progress is not None:
            progress(cell, not there)
    return RunSummary(played, found)


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


def _claim(folder: Path, study: Study) -> None:
    """Write the manifest, or see that the one there is of the same study."""
    document = json.dumps({"format": RUN_FORMAT, "study": study.model_dump(mode="json")}, indent=2) + "\n"
    file = folder / MANIFEST
    if file.exists():
        if read_manifest(folder) != study:
            raise LogError(f"'{folder}' holds the run of another study; choose another folder with --out")
        return
    try:
        (folder / EPISODES).mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(document, encoding="utf-8")
        part.replace(file)
    except OSError as error:
        raise LogError(f"cannot write to '{folder}': {error.strerror}; choose another folder with --out") from error


def _play_cell(study: Study, cell: Cell, file: Path, envs: dict[tuple[str, bool], InquiryEnv]) -> None:
    tree = load_tree(cell.tree)
    agent = make_agent(cell.agent, tree_vectors(tree, load_embedder(study.embedder)))
    env = _env(study, cell.tree, agent.needs_privileged, envs)
    play(env, agent, cell.seed, file=file, options=study.options(cell, tree))


def _env(study: Study, tree: str, privileged: bool, envs: dict[tuple[str, bool], InquiryEnv]) -> InquiryEnv:
    if (tree, privileged) not in envs:
        embedder = load_embedder(study.embedder)
        rules: dict[str, Any] = {} if study.threshold is None else {"threshold": study.threshold}
        envs[tree, privileged] = InquiryEnv(tree, embedder=embedder, privileged=privileged, **rules)
    return envs[tree, privileged]
