"""Agents by name."""

from __future__ import annotations

from collections.abc import Callable

from inquitree_gym.baselines.agent import Agent
from inquitree_gym.baselines.chance import RandomAgent, RandomMenuAgent, RandomWordsAgent
from inquitree_gym.baselines.extremes import OracleAgent, WorstCaseAgent
from inquitree_gym.baselines.retrieval import RetrievalAgent
from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.errors import OptionError, suggest

_MAKERS: dict[str, Callable[[TreeVectors], Agent]] = {
    "random": lambda vectors: RandomAgent(vectors.tree),
    "random-menu": lambda vectors: RandomMenuAgent(vectors.tree),
    "random-words": lambda vectors: RandomWordsAgent(),
    "oracle": lambda vectors: OracleAgent(vectors.tree),
    "worst-case": lambda vectors: WorstCaseAgent(),
    "retrieval": RetrievalAgent,
}
AGENT_NAMES = tuple(_MAKERS)
"""Names that `make_agent` knows. Replay and human agents take more than a tree: make them from their classes."""


def make_agent(name: str, vectors: TreeVectors) -> Agent:
    """Return a fresh agent for the tree of ``vectors`` (``env.unwrapped.vectors`` after a reset).

    Raises:
        OptionError: no agent has that name.
    """
    if name not in _MAKERS:
        raise OptionError(f"no agent is called '{name}'{suggest(name, AGENT_NAMES)}; known: {', '.join(AGENT_NAMES)}")
    return _MAKERS[name](vectors)
