"""Copies of one episode among results that are reported together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from inquitree_gym.analysis.aggregate import grouped
from inquitree_gym.analysis.load import ScoredEpisode, ScoredRun
from inquitree_gym.log import read_episode
from inquitree_gym.scoring import EpisodeScore


def without_doubles(runs: Sequence[ScoredRun]) -> tuple[list[ScoredRun], int]:
    """Return the runs with the first copy of every episode only, and the number of copies left out.

    Two logs hold one episode if agent, tree, fake level, seed, limit and reading are the same, and so are their
    fingerprints. Only logs that agree in the former are read again.
    """
    by_key = grouped((episode for run in runs for episode in run.episodes), lambda episode: _key(episode.score))
    copies = {id(copy) for group in by_key.values() if len(group) > 1 for copy in _copies(group)}
    if not copies:
        return list(runs), 0
    return [_without(run, copies) for run in runs], len(copies)


def _key(score: EpisodeScore) -> tuple[object, ...]:
    config = json.dumps(dict(score.config), sort_keys=True, default=str)
    return score.tree, score.agent, score.fake_level, score.seed, score.limit, score.reading, config


def _copies(group: Sequence[ScoredEpisode]) -> list[ScoredEpisode]:
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
