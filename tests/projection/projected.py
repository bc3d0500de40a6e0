"""Logs of projections and sheets of shipped papers, by agents that tell how many claims they get right."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inquitree_gym.baselines import BaselineAgent
from inquitree_gym.baselines.answers import answers
from inquitree_gym.judging.judgement import InProcessJudge, Judgement
from inquitree_gym.log import Episode, file_stem
from inquitree_gym.projection.env import ProjectionEnv
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.results.logs import find_logs
from inquitree_gym.results.offline_judging import judge_texts, stated_texts
from inquitree_gym.rollout import play
from inquitree_gym.trees.disclosure import ProjectionTask
from tests.projection.tasks import WORDS

PAPERS = ("paper1", "paper2", "paper5", "paper7", "paper10", "paper11")
"""Two papers of each domain."""
UNREADABLE = "The judge cannot read this."


class Teller(BaselineAgent):
    """Says some claims of the outcome, and the contraries of the others.

    ``right`` holds the share of claims that are right at each level; below 0 it says what no judge can read. It answers
    sheets in the same way, and is sure of all answers but the last one, which it leaves out.
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
        if info["state"] == "sheet":
            said = answers(observation, lambda item: next((each for each in item.options if each in lines[:-1]), None))
            return said.replace("\n", " 1\n") + " 1"
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


def fill_in(folder: Path, name: str, right: Mapping[str, float], papers: tuple[str, ...] = PAPERS) -> None:
    """Play and log one episode with sheets on each paper."""
    for task in map(load_task, papers):
        play(ProjectionEnv(task, form="claims"), Teller(name, task, right), 0, file=folder / f"{task.id}-{name}.jsonl")


def judge_again(folder: Path, judge: InProcessJudge[ProjectionTask]) -> list[int]:
    """Judge the logs of a folder. Return the texts that were judged, found and unscored."""
    logs = find_logs(folder)
    done = asyncio.run(judge_texts(folder, stated_texts(logs, "projection"), judge, 2, lambda name: None, "projection"))
    return [done.judged, done.found, done.unscored]
