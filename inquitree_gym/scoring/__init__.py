"""Scores of episodes, from their logs and trees alone."""

from inquitree_gym.scoring.episode import EpisodeScore, score_episode
from inquitree_gym.scoring.statistics import Estimate, clustered_mean, paired_difference
from inquitree_gym.scoring.trajectory import Trajectory, read_trajectory

__all__ = [
    "EpisodeScore",
    "Estimate",
    "Trajectory",
    "clustered_mean",
    "paired_difference",
    "read_trajectory",
    "score_episode",
]
