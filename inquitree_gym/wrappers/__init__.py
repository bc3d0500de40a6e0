"""Wrappers: rules, reward, the discrete view, chat messages and logging. Each useful alone, in any sensible order."""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy

if TYPE_CHECKING:
    from inquitree_gym.inquiry.actions import EmbeddingObservation, MenuActions
    from inquitree_gym.inquiry.shaping import FakeResults, RewardShaping, TurnLimit, VectorRewardShaping
    from inquitree_gym.wrappers.logging import LogEpisodes, Transcript

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

__getattr__, __dir__ = lazy(
    __name__,
    {
        "inquiry.actions": "MenuActions EmbeddingObservation",
        "inquiry.shaping": "FakeResults TurnLimit RewardShaping VectorRewardShaping",
        "wrappers.logging": "LogEpisodes Transcript",
    },
)
