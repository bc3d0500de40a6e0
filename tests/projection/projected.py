"""Logs of projections of shipped papers, by agents that tell how many claims they get right."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inquitree_gym.baselines import BaselineAgent
from inquitree_gym.judging.judgement import Judgement
from inquitree_gym.log import Episode, file_stem
from inquitree_gym.projection.env import ProjectionEnv
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.rollout import play
from inquitree_gym.trees.disclosure import ProjectionTask
from tests.projection.tasks import WORDS

PAPERS = ("paper1", "paper2", "paper5", "paper7", "paper10", "paper11")
"""Two papers of each domain."""
UNREADABLE = "The judge cannot read this."


class Teller(BaselineAgent):
    """Says some claims of the outcome, and the contraries of the others.

    ``right`` holds the share of claims that are right at each level; below 0 it says what no judge can read.
    """

    def __init__(self, name: str, task: ProjectionTask, right: Mapping[str, float], **config: Any) -> None:
        super().__init__()
        self.name, self.task, self.right, self._config = name, task, right, config

    @property
    def config(self) -> dict[str, Any]:
        return {"name": self.name, **self._config}

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        claims = self.task.claims
        wanted = self.right[info["level"]]
        if wanted < 0:
            return UNREADABLE
        right = round(wanted * len(claims))
        lines = [claim.text if i < right else claim.contraries[0] for i, claim in enumerate(claims)]
        return "\n".join(lines)


class PartialJudge:
    """Judge like `WORDS`, which cannot align `UNREADABLE`."""

    name, config = "partial", {"name": "partial", "version": 3}

    async def judge(self, task: ProjectionTask, projection: str) -> Judgement:
        if projection == UNREADABLE:
            return Judgement(None, why="unreadable")
        return Judgement(WORDS.for_task(task).judge(projection))


def tell(folder: Path, name: str, right: Mapping[str, float], papers: tuple[str, ...] = PAPERS, **config: Any) -> None:
    """Play and log one episode on each paper."""
    for paper in papers:
        task = load_task(paper)
        stem = file_stem("-".join((paper, name, *map(str, config.values()))))
        tell_one(folder / f"{stem}.jsonl", name, right, task, **config)


def tell_one(file: Path, name: str, right: Mapping[str, float], task: ProjectionTask, **config: Any) -> Episode:
    """Play and log one episode."""
    env = ProjectionEnv(task, form="claims", judge=PartialJudge())
    return play(env, Teller(name, task, right, **config), 0, file=file)
