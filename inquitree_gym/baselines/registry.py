"""Agents by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import gymnasium as gym

from inquitree_gym.baselines.agent import Agent
from inquitree_gym.baselines.llm import LLMAgent, ScepticAgent
from inquitree_gym.baselines.oracle import OracleAgent, RedoUntilTrue, WorstCaseAgent
from inquitree_gym.baselines.own import CHAT, OWN_FORMS, POLICY, is_own, own_agent
from inquitree_gym.baselines.policy import RetrievalAgent
from inquitree_gym.baselines.random_agents import RandomAgent, RandomMenuAgent, RandomWordsAgent
from inquitree_gym.baselines.saved import saved_policy
from inquitree_gym.embeddings import TreeVectors, tree_vectors
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.envs.synthetic import SyntheticEnv
from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.llm import ChatModel
from inquitree_gym.trees import Tree

_BASELINES: dict[str, Callable[[InquiryEnv], Agent]] = {
    "random": lambda env: RandomAgent(_tree(env)),
    "random-menu": lambda env: RandomMenuAgent(_tree(env)),
    "random-words": lambda env: RandomWordsAgent(),
    "oracle": lambda env: OracleAgent(_tree(env), env.rules if env.last_transition is None else env.episode_rules),
    "worst-case": lambda env: WorstCaseAgent(),
    "retrieval": lambda env: RetrievalAgent(_vectors(env)),
    "random-redo": lambda env: RedoUntilTrue(RandomAgent(_tree(env))),
    "retrieval-redo": lambda env: RedoUntilTrue(RetrievalAgent(_vectors(env))),
}
_MODEL_AGENTS: dict[str, type[LLMAgent]] = {"llm": LLMAgent, "sceptic": ScepticAgent}

BASELINE_NAMES = tuple(_BASELINES)
"""Names of the agents without a chat model."""
MODEL_AGENT_NAMES = tuple(_MODEL_AGENTS)
"""Names of the agents with a chat model."""
AGENT_NAMES = (*BASELINE_NAMES, *MODEL_AGENT_NAMES)
"""Names for `make_agent`, beside those of agents of one's own. Replay and human agents need more than an environment:
use their classes."""
KNOWN_AGENTS = f"{', '.join(AGENT_NAMES)}; an agent of your own is {OWN_FORMS}"
"""Names of agents, for messages."""
CHAT_SETTINGS = tuple(field.name for field in fields(ChatModel) if field.name != "clock")
"""Settings of `make_agent` for `ChatModel`."""
AGENT_SETTINGS = ("chat", "context", "prompts", "belief")
"""Settings of `make_agent` for `LLMAgent`; ``chat`` replaces those for a `ChatModel`."""


def make_agent(name: str, env: gym.Env[Any, Any], **settings: Any) -> Agent:
    """Return a new agent for the tree that ``env`` plays.

    Args:
        name: one of `AGENT_NAMES`, or an agent of your own: ``module:factory`` or ``FILE.py:factory``, called as
            ``factory(env, **settings)``, or ``policy:FILE``, a model saved by Stable-Baselines3. The code is imported
            from installed packages or the file.
        env: an `InquiryEnv`, wrapped or not, before or after a reset. An environment that draws its tree at each reset
            has to be reset first; the agent then plays that tree.
        settings: for one of `MODEL_AGENT_NAMES` ``model=...`` and other settings of `ChatModel` and `LLMAgent`, or
            ``chat=...``; those of your own factory; none for other agents.

    Raises:
        AgentError: an agent of your own cannot be made; see `own_agent` and `saved_policy`.
        OptionError: the name or a setting is unknown, a value is out of range, a model is missing or not needed, or
            ``env`` is not an inquiry or has not drawn its tree yet.
    """
    inquiry = getattr(env, "unwrapped", None)
    if not isinstance(inquiry, InquiryEnv):
        raise OptionError(
            f"make_agent takes an inquiry environment, such as gym.make('InquiTree-paper12-v0'), not "
            f"{type(env).__name__}"
        )
    if name in _MODEL_AGENTS:
        return _make_model_agent(name, settings)
    if is_own(name) and not name.startswith(POLICY):
        return own_agent(name, inquiry, **settings)
    if name not in _BASELINES and not is_own(name):
        raise OptionError(f"unknown agent '{name}'{suggest(name, AGENT_NAMES)}; known: {KNOWN_AGENTS}")
    if settings:
        raise OptionError(f"the agent '{name}' takes no settings; leave out {', '.join(settings)}")
    return saved_policy(name, _vectors(inquiry), inquiry.rules) if is_own(name) else _BASELINES[name](inquiry)


def takes_model(name: str) -> bool:
    """Return whether the agent with this name is given a chat model."""
    return name in MODEL_AGENT_NAMES or (is_own(name) and name.startswith(CHAT))


def _make_model_agent(name: str, settings: Mapping[str, Any]) -> LLMAgent:
    known = (*CHAT_SETTINGS, *AGENT_SETTINGS)
    for setting in settings:
        if setting not in known:
            raise OptionError(
                f"unknown setting '{setting}'{suggest(setting, known)}; the agent '{name}' takes: {', '.join(known)}"
            )
    chat_settings = {setting: value for setting, value in settings.items() if setting in CHAT_SETTINGS}
    agent_settings = {setting: value for setting, value in settings.items() if setting in AGENT_SETTINGS}
    if ("model" in chat_settings) == ("chat" in agent_settings):
        raise OptionError(f"the agent '{name}' needs a model: give model='provider/name' or chat=, not both")
    if "chat" not in agent_settings:
        agent_settings["chat"] = ChatModel(**chat_settings)
    elif chat_settings:
        raise OptionError(f"chat= has its own settings; leave out {', '.join(chat_settings)}")
    return _MODEL_AGENTS[name](**agent_settings)


def _tree(env: InquiryEnv) -> Tree:
    if env.last_transition is not None:
        return env.tree
    if len(env.trees) > 1 or isinstance(env, SyntheticEnv):
        raise OptionError("the environment draws its tree at each reset; call env.reset() before make_agent()")
    return env.trees[0]


def _vectors(env: InquiryEnv) -> TreeVectors:
    return env.vectors if env.last_transition is not None else tree_vectors(_tree(env), env.embedder)
