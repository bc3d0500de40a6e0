"""Judge the conclusions of runs, offline; what is judged stands beside the run."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from inquitree_gym.errors import LogError
from inquitree_gym.judges import (
    JudgementFile,
    Panelist,
    Ruling,
    Spent,
    labelled,
    read_judgements,
    rule_all,
)
from inquitree_gym.log import has_header, read_episode
from inquitree_gym.runner.folder import EPISODES, read_manifest
from inquitree_gym.scoring import EpisodeScore, score_episode
from inquitree_gym.scoring.statistics import Agreement, agreement, item_pairs
from inquitree_gym.scoring.trajectory import read_trajectory
from inquitree_gym.trees import Tree, load_tree


class Concluded(NamedTuple):
    """An episode with a conclusion to judge."""

    name: str
    """Of its log."""
    tree: Tree
    text: str


class JudgedRun(NamedTuple):
    """What one judge did on one run."""

    judge: str
    judged: int
    """Conclusions judged now."""
    found: int
    """Conclusions that had been judged before, with every item scored."""
    unscored: int
    """Items that stay without a score."""
    spent: Spent
    """What was asked now; equal conclusions are asked about once."""


def concluded(folder: str | os.PathLike[str]) -> list[Concluded]:
    """Return the whole episodes of a run that came to a conclusion.

    Raises:
        LogError: the folder is no run, a log is damaged, or nothing was concluded yet.
    """
    study = read_manifest(folder)
    trees = {name: load_tree(name) for name in study.trees}
    found = []
    for cell in study.specs():
        file = Path(folder) / EPISODES / cell.file_name
        episode = read_episode(file) if has_header(file) else None
        if episode is None or episode.footer is None:
            continue
        text = read_trajectory(episode, trees[cell.tree]).conclusion
        if text is not None:
            found.append(Concluded(cell.file_name, trees[cell.tree], text))
    if not found:
        raise LogError(f"'{folder}' holds no conclusion to judge yet; run its study first")
    return found


async def judge_run(
    folder: str | os.PathLike[str],
    panelist: Panelist,
    max_concurrency: int,
    progress: Callable[[str], None],
) -> JudgedRun:
    """Judge every conclusion of a run that this judge has not scored yet, and keep what it finds beside the run.

    Args:
        folder: of the run.
        panelist: the judge.
        max_concurrency: conclusions that are judged at the same time.
        progress: told each episode once it is judged, now or before.

    Raises:
        LogError: the folder is no run, or judgements cannot be written.
        ServiceError: the judge's service will answer no question; what was judged before is kept.
    """
    episodes = concluded(folder)
    with JudgementFile(folder, panelist.name, panelist.config) as kept:
        groups: dict[tuple[str, str], list[Concluded]] = defaultdict(list)
        for each in episodes:
            if kept.holds(each.name, each.tree, each.text):
                progress(each.name)
            else:
                groups[each.tree.digest, each.text].append(each)
        alike = list(groups.values())

        def keep(index: int, ruling: Ruling) -> None:
            for number, each in enumerate(alike[index]):
                # Equal conclusions were asked about once, so only the first one took anything.
                kept.add(each.name, each.tree, each.text, ruling if number == 0 else ruling._replace(spent=Spent()))
                progress(each.name)

        rulings = await rule_all(panelist, [(group[0].tree, group[0].text) for group in alike], max_concurrency, keep)
        judged = sum(map(len, alike))
        return JudgedRun(
            judge=panelist.name,
            judged=judged,
            found=len(episodes) - judged,
            unscored=sum(kept.found[each.name].unscored for each in episodes),
            spent=sum((ruling.spent for ruling in rulings), Spent()),
        )


def agreements(folder: str | os.PathLike[str]) -> dict[tuple[str, str], Agreement]:
    """Return how far every two judges of a run agree, over the items that both have judged."""
    scores = {label: found.item_scores() for label, found in labelled(read_judgements(folder)).items()}
    return {(one, other): agreement(item_pairs(scores[one], scores[other])) for one, other in combinations(scores, 2)}


def read_judged(folder: str | os.PathLike[str]) -> dict[str, list[EpisodeScore]]:
    """Score the episodes of a run by every judge that has judged it; by the judge's label.

    Raises:
        LogError: the folder is no run, or a log is damaged.
        JudgeError: a file of judgements is damaged.
    """
    study = read_manifest(folder)
    trees = {name: load_tree(name) for name in study.trees}
    panel = labelled(read_judgements(folder))
    found: dict[str, list[EpisodeScore]] = {label: [] for label in panel}
    for cell in study.specs():
        tree = trees[cell.tree]
        judges = {label: each.of(cell.file_name, tree) for label, each in panel.items()}
        if any(judge is not None for judge in judges.values()):
            episode = read_episode(Path(folder) / EPISODES / cell.file_name)
            for label, judge in judges.items():
                found[label] += [] if judge is None else [score_episode(episode, tree, judge)]
    return found
