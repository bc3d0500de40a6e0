"""InquiTree research trees as Gymnasium environments. Importing this registers them.

>>> import gymnasium as gym
>>> import inquitree_gym
>>> env = gym.make("InquiTree-paper12-v0")
"""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy
from inquitree_gym.kinds import register_kinds

if TYPE_CHECKING:
    from inquitree_gym.baselines import Agent, make_agent
    from inquitree_gym.embeddings import Embedder, load_embedder
    from inquitree_gym.envs.spaces import FreeText
    from inquitree_gym.errors import InquiTreeError
    from inquitree_gym.inquiry.engine import Rules
    from inquitree_gym.inquiry.env import InquiryEnv
    from inquitree_gym.inquiry.judging import judge
    from inquitree_gym.inquiry.matching import Match, match
    from inquitree_gym.inquiry.results import EpisodeScore
    from inquitree_gym.log import Episode, read_episode
    from inquitree_gym.rollout import aplay, play
    from inquitree_gym.trees import Tree, load_tree

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Embedder",
    "Episode",
    "EpisodeScore",
    "FreeText",
    "InquiTreeError",
    "InquiryEnv",
    "Match",
    "Rules",
    "Tree",
    "aplay",
    "judge",
    "load_embedder",
    "load_tree",
    "make_agent",
    "match",
    "play",
    "read_episode",
    "score_episode",
]


def __dir__() -> list[str]:
    """Return the public names, which are imported on use."""
    return [*__all__, "__version__"]


__getattr__ = lazy(
    __name__,
    {
        "baselines": "Agent make_agent",
        "embeddings": "Embedder load_embedder",
        "inquiry.judging": "judge",
        "log": "Episode read_episode",
        "inquiry.results": "EpisodeScore",
        "results.score": "score_episode",
        "envs.spaces": "FreeText",
        "errors": "InquiTreeError",
        "inquiry.env": "InquiryEnv",
        "inquiry.engine": "Rules",
        "inquiry.matching": "Match match",
        "trees": "Tree load_tree",
        "rollout": "aplay play",
    },
)

register_kinds()
