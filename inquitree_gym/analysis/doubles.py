"""Copies of one episode among results that are reported together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

from inquitree_gym.analysis.aggregate import grouped
from inquitree_gym.analysis.load import ScoredRun
from inquitree_gym.analysis.projections import ProjectionRun, ScoredProjections
from inquitree_gym.log import read_episode
from inquitree_gym.scoring import EpisodeScore


class FiledEpisode(Protocol):
    """Scored episode with its log."""

    @property
    def file(self) -> Path | None:
        """File of the log; None for an episode without one."""


Filed = TypeVar("Filed", bound=FiledEpisode)


def without_doubles(runs: Sequence[ScoredRun]) -> tuple[list[ScoredRun], int]:
    """Return the runs with the first copy of every episode only, and the number of copies left out.

    Two logs hold one episode if agent, tree, fake level, seed, limit and reading are the same, and so are their
    fingerprints. Only logs that agree in the former are read again.
    """
    copies = _copies_of((episode for run in runs for episode in run.episodes), lambda episode: _key(episode.score))
    if not copies:
        return list(runs), 0
    return [_without(run, copies) for run in runs], len(copies)


def without_double_projections(runs: Sequence[ProjectionRun]) -> tuple[list[ProjectionRun], int]:
    """Return the runs with the first copy of every episode only, and the number of copies left out.

    See `without_doubles`. Copies agree in agent, task, seed and rules.
    """
    copies = _copies_of((episode for run in runs for episode in run.episodes), _projection_key)
    kept = [replace(run, episodes=[each for each in run.episodes if id(each) not in copies]) for run in runs]
    return kept, len(copies)


def _copies_of(episodes: Iterable[Filed], key: Callable[[Filed], tuple[object, ...]]) -> set[int]:
    """Return the identities of the copies among episodes."""
    return {id(copy) for group in grouped(episodes, key).values() if len(group) > 1 for copy in _copies(group)}


def _projection_key(episode: ScoredProjections) -> tuple[object, ...]:
    score = episode.score
    return score.task, score.agent, score.seed, score.rules, json.dumps(dict(score.config), sort_keys=True, default=str)


def _key(score: EpisodeScore) -> tuple[object, ...]:
    config = json.dumps(dict(score.config), sort_keys=True, default=str)
    return score.tree, score.agent, score.fake_level, score.seed, score.limit, score.reading, config


def _copies(group: Sequence[Filed]) -> list[Filed]:
    """Return the episodes of a group whose fingerprint an earlier one has."""
    seen: set[str] = set()
    found = []
    for episode in group:
        if episode.file is None:
            continue
        fingerprint = read_episode(episode.file).fingerprint
        if fingerprint in seen:
            found.append(episode)
        seen.add(fingerprint)
    return found


def _without(run: ScoredRun, copies: set[int]) -> ScoredRun:
    kept = [episode for episode in run.episodes if id(episode) not in copies]
    left = {_key(episode.score) for episode in kept}
    judged = {label: [score for score in scores if _key(score) in left] for label, scores in run.judged.items()}
    return replace(run, episodes=kept, judged={label: scores for label, scores in judged.items() if scores})
