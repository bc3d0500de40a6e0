"""Load the logs of projections and score them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from inquitree_gym.analysis.load import EpisodeCost, cost_of, no_finished_episode
from inquitree_gym.analysis.logs import AnyLogs, LoggedProjections, MissingEpisode, find_logs
from inquitree_gym.analysis.projection_judging import chosen_judgements, judged_turns
from inquitree_gym.judges.quality import judge_label
from inquitree_gym.judges.records import version_of
from inquitree_gym.runner.specs import EpisodeSpec
from inquitree_gym.scoring.episode import told_apart
from inquitree_gym.scoring.projection import ProjectionEpisodeScore, score_projections
from inquitree_gym.trees.disclosure import ProjectionTask

OF_PROJECTIONS = " of projections"
"""Kind of the episodes, for the error that there is none; see `no_finished_episode`."""


@dataclass(frozen=True, slots=True)
class ScoredProjections:
    """One finished episode of projections: its score, cost, task and log."""

    score: ProjectionEpisodeScore
    cost: EpisodeCost
    task: ProjectionTask
    file: Path


@dataclass(frozen=True, slots=True)
class ProjectionRun:
    """The scored episodes of one run of projections, or of the logs under one path."""

    folder: Path
    episodes: list[ScoredProjections]
    missing: list[MissingEpisode]

    @property
    def scores(self) -> list[ProjectionEpisodeScore]:
        """Scores of the finished episodes."""
        return [episode.score for episode in self.episodes]


def load_projections(
    logs: AnyLogs, progress: Callable[[EpisodeSpec], None] | None = None, judge: str | None = None
) -> ProjectionRun:
    """Read and score every finished episode of projections of a run folder, another folder of logs, or a single log.

    Args:
        logs: a path, or the logs that `find_logs` found there.
        progress: called after each episode.
        judge: name or label of a judge that `judge_projections` has asked; None for the judge of the reward.

    Raises:
        LogError: the path holds no log, or no finished episode of projections.
        JudgeError: a file of judgements is damaged, or the judge has not judged the logs.
        OptionError: the judge has judged the logs with several settings.
    """
    run = score_projection_logs(logs, progress, judge)
    if not run.episodes:
        raise no_finished_episode([run], OF_PROJECTIONS)
    return run


def score_projection_logs(
    logs: AnyLogs, progress: Callable[[EpisodeSpec], None] | None = None, judge: str | None = None
) -> ProjectionRun:
    """Read and score the finished episodes, if there are any; see `load_projections`."""
    logs = find_logs(logs)
    run = ProjectionRun(logs.path, [], list(logs.foreign))
    score = projection_scorer(judge)
    for entry in logs.entries:
        found = entry.read_projections()
        gone = found if isinstance(found, MissingEpisode) else found.missing
        if gone is not None:
            run.missing.append(gone)
        elif isinstance(found, LoggedProjections):
            cost = cost_of(found.episode)
            run.episodes.append(ScoredProjections(score(found), cost, found.task, found.entry.file))
        if progress is not None:
            progress(entry.spec)
    return run


def projection_scorer(judge: str | None) -> Callable[[LoggedProjections], ProjectionEpisodeScore]:
    """Return the function that scores episodes by the judge of their reward, or by another that has judged them.

    Args:
        judge: see `load_projections`; the returned function raises its errors.
    """
    stored = cache(partial(chosen_judgements, judge=judge or ""))

    def score(found: LoggedProjections) -> ProjectionEpisodeScore:
        if judge is None or judge in _rewarded_by(found):
            return score_projections(found.episode, found.task)
        chosen = stored(found.entry.home)
        scored = score_projections(found.episode, found.task, judged_turns(found, chosen))
        return replace(scored, judge=chosen.judge, judge_version=version_of(chosen.config))

    return score


def projection_agents_apart(runs: Sequence[ProjectionRun]) -> list[ProjectionRun]:
    """Return runs whose scores have a label for each configuration of an agent; see `told_apart`."""
    apart = iter(told_apart([score for run in runs for score in run.scores]))
    return [replace(run, episodes=[replace(each, score=next(apart)) for each in run.episodes]) for run in runs]


def _rewarded_by(found: LoggedProjections) -> tuple[str, str]:
    """Return the name and the label of the judge of the reward."""
    judge = found.episode.header.judge or {}
    name = str(judge.get("name", ""))
    return name, judge_label(name, version_of(judge))
