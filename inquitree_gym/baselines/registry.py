"""Agents by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from inquitree_gym.baselines.agent import Agent
from inquitree_gym.baselines.llm import LLMAgent, ScepticAgent
from inquitree_gym.baselines.oracle import OracleAgent, WorstCaseAgent
from inquitree_gym.baselines.random_agents import RandomAgent, RandomMenuAgent, RandomWordsAgent
from inquitree_gym.baselines.redoing import RedoUntilTrue
from inquitree_gym.baselines.retrieval import RetrievalAgent
from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.llm import ChatModel

_MAKERS: dict[str, Callable[[TreeVectors], Agent]] = {
    "random": lambda vectors: RandomAgent(vectors.tree),
    "random-menu": lambda vectors: RandomMenuAgent(vectors.tree),
    "random-words": lambda vectors: RandomWordsAgent(),
    "oracle": lambda vectors: OracleAgent(vectors.tree),
    "worst-case": lambda vectors: WorstCaseAgent(),
    "retrieval": RetrievalAgent,
    "random-redo": lambda vectors: RedoUntilTrue(RandomAgent(vectors.tree)),
    "retrieval-redo": lambda vectors: RedoUntilTrue(RetrievalAgent(vectors)),
}
_CHATTING: dict[str, type[LLMAgent]] = {"llm": LLMAgent, "sceptic": ScepticAgent}

BASELINE_NAMES = tuple(_MAKERS)
"""Names of the agents that need nothing but the tree."""
MODEL_AGENT_NAMES = tuple(_CHATTING)
"""Names of the agents that need a chat model."""
AGENT_NAMES = (*BASELINE_NAMES, *MODEL_AGENT_NAMES)
"""Names that `make_agent` knows. Replay and human agents take more than a tree: make them from their classes."""
CHAT_SETTINGS = tuple(field.name for field in fields(ChatModel) if field.name != "clock")
"""Settings of `make_agent` that go to `ChatModel`."""
AGENT_SETTINGS = ("chat", "context", "prompts")
"""Settings of `make_agent` that go to `LLMAgent`; ``chat`` takes the place of those of a `ChatModel`."""


def make_agent(name: str, vectors: TreeVectors, **settings: Any) -> Agent:
    """Return a fresh agent for the tree of ``vectors`` (``env.unwrapped.vectors`` after a reset).

    Args:
        name: one of `AGENT_NAMES`.
        vectors: of the tree that is played.
        settings: for one of `MODEL_AGENT_NAMES` ``model=...`` and whatever else `ChatModel` and `LLMAgent` take, or
            ``chat=...``; for others nothing.

    Raises:
        OptionError: no agent has that name; a setting is unknown or out of range; a model is missing, or not needed.
    """
    if name in _CHATTING:
        return _chatting(name, settings)
    if name not in _MAKERS:
        raise OptionError(f"no agent is called '{name}'{suggest(name, AGENT_NAMES)}; known: {', '.join(AGENT_NAMES)}")
    if settings:
        raise OptionError(f"the agent '{name}' takes no settings; leave out {', '.join(settings)}")
    return _MAKERS[name](vectors)


def _chatting(name: str, settings: Mapping[str, Any]) -> LLMAgent:
    known = (*CHAT_SETTINGS, *AGENT_SETTINGS)
    for setting in settings:
        if setting not in known:
            raise OptionError(
                f"unknown setting '{setting}'{suggest(setting, known)}; the agent '{name}' takes: {', '.join(known)}"
            )
    of_chat = {setting: value for setting, value in settings.items() if setting in CHAT_SETTINGS}
    of_agent = {setting: value for setting, value in settings.items() if setting in AGENT_SETTINGS}
    if ("model" in of_chat) == ("chat" in of_agent):
        raise OptionError(f"the agent '{name}' needs a model: give model='provider/name', or chat=, and not both")
    if "chat" not in of_agent:
        of_agent["chat"] = ChatModel(**of_chat)
    elif of_chat:
        raise OptionError(f"chat= has settings of its own; leave out {', '.join(of_chat)}")
    return _CHATTING[name](**of_agent)
