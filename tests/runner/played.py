"""A study of one small tree by a model that plays by heart, and what it leaves in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inquitree_gym.inquiry.engine import Engine, Rules
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.runner import StudyConfig
from inquitree_gym.runner.check import make_study
from inquitree_gym.runs.folder import load_manifest, run_task
from inquitree_gym.trees import Tree, load_tree
from tests.servers import Service

TREE = load_tree("paper2")
TURNS = 3 * len(TREE.subtopics) + 2
"""Of an episode played by heart, its conclusion and exam among them."""


def small_study(*agents: str, **given: object) -> StudyConfig:
    """A study of one episode without a model, unless more is given."""
    return make_study(**{"agents": agents or ("oracle",), "trees": ("2",), "seeds": 1} | given)


def logs(folder: Path) -> dict[str, bytes]:
    """The logs of a run by file name, as bytes."""
    return {file.name: file.read_bytes() for file in (folder / "episodes").iterdir()}


def run_trees(folder: Path) -> dict[str, Tree]:
    """The trees of a run, from its folder."""
    manifest = load_manifest(folder)
    return {name: run_task(folder, manifest, name) for name in manifest.tasks}


def sent_seed(seed: int) -> int:
    """The seed in the requests of an agent that plays `TREE`."""
    return Engine(TREE, Rules(threshold=0.5)).agent_seed(seed) % 2**31


def study_of(service: Service, *agents: str, seeds: int = 2, **settings: Any) -> StudyConfig:
    model = {"model": "gpt-4o-mini", "base_url": service.address, "retries": 0, **settings}
    return make_study(agents=agents or ("llm",), models=[model], trees=("2",), seeds=seeds)


def episodes(folder: Path) -> dict[str, Episode]:
    return {file.name: read_episode(file) for file in sorted((folder / "episodes").iterdir())}


def fingerprints(folder: Path) -> dict[str, str]:
    return {name: episode.fingerprint for name, episode in episodes(folder).items()}
