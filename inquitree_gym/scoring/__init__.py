"""Judging episodes from their logs and trees alone."""

from inquitree_gym.scoring.episode import EpisodeScore, score_episode
from inquitree_gym.scoring.statistics import Estimate, clustered_mean, paired_difference
from inquitree_gym.scoring.trajectory import Path, read_path

__all__ = [
    "EpisodeScore",
    "Estimate",
    "Path",
    "clustered_mean",
    "paired_difference",
    "read_path",
    "score_episode",
]
