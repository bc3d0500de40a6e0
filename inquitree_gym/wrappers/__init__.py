"""Wrappers: rules, reward, the discrete view, chat messages and logging; each useful alone, in any sensible order."""

from inquitree_gym.wrappers.actions import MenuActions
from inquitree_gym.wrappers.logging import LogEpisodes
from inquitree_gym.wrappers.observations import EmbeddingObservation, Transcript
from inquitree_gym.wrappers.reward import RewardShaping, VectorRewardShaping
from inquitree_gym.wrappers.rules import FakeResults, TurnLimit

__all__ = [
    "EmbeddingObservation",
    "FakeResults",
    "LogEpisodes",
    "MenuActions",
    "RewardShaping",
    "Transcript",
    "TurnLimit",
    "VectorRewardShaping",
]
