"""Judge stored conclusions offline; judgements are stored beside them."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Protocol, TypeVar

from inquitree_gym.analysis.aggregate import grouped
from inquitree_gym.analysis.load import finished_episodes
from inquitree_gym.analysis.logs import AnyLogs, MissingEpisode, find_logs
from inquitree_gym.errors import LogError
from inquitree_gym.judges import AsyncJudge, Judgement, JudgementFile, judge_all, read_judgements
from inquitree_gym.judges.projections.judgement import ProjectionJudgement
from inquitree_gym.judges.records import JudgedFile, judgements_by_label, version_of
from inquitree_gym.llm import Usage
from inquitree_gym.scoring import EpisodeScore, score_episode
from inquitree_gym.scoring.statistics import Agreement, agreement, item_pairs
from inquitree_gym.scoring.trajectory import read_trajectory
from inquitree_gym.trees import Tree
from inquitree_gym.trees.disclosure import ProjectionTask


class StatedText(Protocol):
    """A text to judge."""

    @property
    def name(self) -> str:
        """Name for the progress."""

    @property
    def key(self) -> Any:
        """Key of its judgement in the file of judgements."""

    @property
    def about(self) -> Tree | ProjectionTask:
        """The tree or task that it is about."""

    @property
    def text(self) -> str:
        """The text itself."""


J = TypeVar("J", Judgement, ProjectionJudgement)


@dataclass(frozen=True, slots=True)
class StatedConclusion:
    """A conclusion to judge."""

    name: str
    """Name in the judgements; for an episode, the file name of its log."""
    tree: Tree
    text: str

    @property
    def key(self) -> str:
        """Its name."""
        return self.name

    @property
    def about(self) -> Tree:
        """Its tree."""
        return self.tree


@dataclass(frozen=True, slots=True)
class JudgingResult:
    """Outcome of one judge on some conclusions or projections."""

    judge: str
    version: int
    judged: int
    """Texts judged now."""
    found: int
    """Texts judged before, with every part scored."""
    unscored: int
    """Items of conclusions, or projections, that remain without a score."""
    usage: Usage
    """Usage of now; equal texts about a tree or task are judged once."""
    unread: int
    """Verdicts of now without a readable grade, or replies that could not be read."""


def run_conclusions(
    logs: AnyLogs, on_damaged: Callable[[MissingEpisode], None] | None = None
) -> list[StatedConclusion]:
    """Return the conclusions of the finished episodes of logs; see `finished_episodes` for ``on_damaged``.

    Raises:
        LogError: there is no log, a log is damaged, or there is no conclusion yet.
    """
    found = []
    for each in finished_episodes(logs, on_damaged=on_damaged):
        text = read_trajectory(each.episode, each.tree).conclusion
        if text is not None:
            found.append(StatedConclusion(each.entry.file.name, each.tree, text))
    if not found:
        raise LogError(f"'{find_logs(logs).path}' holds no conclusion to judge yet; run its study first")
    return found


async def judge_conclusions(
    folder: str | os.PathLike[str],
    conclusions: Sequence[StatedConclusion],
    judge: AsyncJudge,
    max_concurrency: int,
    progress: Callable[[str], None],
) -> JudgingResult:
    """Judge every conclusion that this judge has not fully scored yet, and store the judgements in ``folder``.

    Args:
        folder: the folder of the conclusions, such as a run.
        conclusions: see `run_conclusions` and `closed_book_conclusions`.
        judge: the judge.
        max_concurrency: conclusions judged at the same time.
        progress: called with the name of each conclusion that is judged or was judged before.

    Raises:
        LogError: judgements cannot be written.
        ServiceError: the judge's service answers no question at all; judgements made until then are stored.
    """
    with JudgementFile(folder, judge.name, judge.config) as file:
        return await judge_missing(conclusions, file, judge.judge, max_concurrency, progress)


async def judge_missing(
    stated: Sequence[StatedText],
    file: JudgedFile[Any, Any],
    ask: Callable[[Any, str], Coroutine[Any, Any, J]],
    max_concurrency: int,
    progress: Callable[[str], None],
) -> JudgingResult:
    """Judge every text that ``file`` does not hold with all scores, equal ones once, and store the judgements there.

    Args:
        stated: the texts.
        file: the judgements of the judge.
        ask: judges one text about a tree or task.
        max_concurrency: texts judged at the same time.
        progress: called with the name of each text that is judged or was judged before.

    Raises:
        LogError: judgements cannot be written.
        ServiceError: the judge's service answers no question at all; judgements made until then are stored.
    """
    missing = []
    for each in stated:
        if file.holds(each.key, each.about, each.text):
            progress(each.name)
        else:
            missing.append(each)
    groups = list(grouped(missing, lambda each: (each.about.digest, each.text)).values())

    def store(index: int, judgement: J) -> None:
        for number, each in enumerate(groups[index]):
            # Equal texts were judged once, so only the first one cost anything.
            counted = judgement if number == 0 else replace(judgement, usage=Usage(), unread=0, replies=())
            file.add(each.key, each.about, each.text, counted)
            progress(each.name)

    judgements = await judge_all(ask, [(group[0].about, group[0].text) for group in groups], max_concurrency, store)
    return JudgingResult(
        judge=file.judge,
        version=version_of(file.config),
        judged=len(missing),
        found=len(stated) - len(missing),
        unscored=sum(file.found[each.key].unscored for each in stated),
        usage=sum((judgement.usage for judgement in judgements), Usage()),
        unread=sum(judgement.unread for judgement in judgements),
    )


def judge_agreements(folder: str | os.PathLike[str]) -> dict[tuple[str, str], Agreement]:
    """Return the agreement of every two judges of a run, over the items that both have judged."""
    scores = {label: found.item_scores() for label, found in judgements_by_label(read_judgements(folder)).items()}
    return {(one, other): agreement(item_pairs(scores[one], scores[other])) for one, other in combinations(scores, 2)}


def recorded_scores(
    logs: AnyLogs, on_damaged: Callable[[MissingEpisode], None] | None = None
) -> dict[str, list[EpisodeScore]]:
    """Return the scores of the episodes of one folder by every judge with stored judgements, by the judge's label.

    See `finished_episodes` for ``on_damaged``.

    Raises:
        LogError: there is no log, or a log is damaged.
        JudgeError: a file of judgements is damaged.
    """
    logs = find_logs(logs)
    panel = judgements_by_label(read_judgements(logs.path))
    found: dict[str, list[EpisodeScore]] = {label: [] for label in panel}
    for each in finished_episodes(logs, on_damaged=on_damaged):
        for label, judgements in panel.items():
            judge = judgements.of(each.entry.file.name, each.tree)
            found[label] += [] if judge is None else [score_episode(each.episode, each.tree, judge)]
    return found
