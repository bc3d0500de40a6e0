"""Wrappers: rules, reward, chat messages and logging, each useful alone and in any sensible order."""

from inquitree_gym.wrappers.logging import LogEpisodes
from inquitree_gym.wrappers.reward import RewardShaping
from inquitree_gym.wrappers.rules import FakeResults, TurnLimit
from inquitree_gym.wrappers.transcript import Transcript

__all__ = ["FakeResults", "LogEpisodes", "RewardShaping", "Transcript", "TurnLimit"]
