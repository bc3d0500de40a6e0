"""Agents by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym

from inquitree_gym.baselines.agent import Agent
from inquitree_gym.baselines.llm import LLMAgent, ScepticAgent
from inquitree_gym.baselines.oracle import OracleAgent, RedoUntilTrue, WorstCaseAgent
from inquitree_gym.baselines.own import CHAT, OWN_FORMS, POLICY, is_own, own_agent
from inquitree_gym.baselines.policy import RetrievalAgent
from inquitree_gym.baselines.projecting import PROJECTING_NAMES, ProjectingBaseline
from inquitree_gym.baselines.projecting_llm import ProjectingLLMAgent
from inquitree_gym.baselines.random_agents import RandomAgent, RandomMenuAgent, RandomWordsAgent
from inquitree_gym.baselines.saved import saved_policy
from inquitree_gym.embeddings import TreeVectors, tree_vectors
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.envs.projection.env import ProjectionEnv
from inquitree_gym.envs.projection.synthetic import SyntheticProjectionEnv
from inquitree_gym.envs.synthetic import SyntheticEnv
from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.llm import ChatModel
from inquitree_gym.log import TaskKind
from inquitree_gym.trees import Tree

Maker = Callable[[Any], Agent]
"""Makes an agent for an environment without its wrappers."""


class _Agents(NamedTuple):
    """The agents of one kind of environment, by name."""

    baselines: Mapping[str, Maker]
    with_model: Mapping[str, type[LLMAgent]]
    settings: tuple[str, ...]
    """Settings of the agents with a model; ``chat`` replaces the settings of `ChatModel`."""


def _projecting(name: str, env: ProjectionEnv) -> Agent:
    if env.last_transition is not None:
        return ProjectingBaseline(name, env.task, env.episode_rules)
    if len(env.tasks) > 1 or isinstance(env, SyntheticProjectionEnv):
        raise OptionError("the environment draws its task at each reset; call env.reset() before make_agent()")
    return ProjectingBaseline(name, env.tasks[0], env.rules)


_INQUIRY: dict[str, Callable[[InquiryEnv], Agent]] = {
    "random": lambda env: RandomAgent(_tree(env)),
    "random-menu": lambda env: RandomMenuAgent(_tree(env)),
    "random-words": lambda env: RandomWordsAgent(),
    "oracle": lambda env: OracleAgent(_tree(env), env.rules if env.last_transition is None else env.episode_rules),
    "worst-case": lambda env: WorstCaseAgent(),
    "retrieval": lambda env: RetrievalAgent(_vectors(env)),
    "random-redo": lambda env: RedoUntilTrue(RandomAgent(_tree(env))),
    "retrieval-redo": lambda env: RedoUntilTrue(RetrievalAgent(_vectors(env))),
}
_AGENTS: dict[TaskKind, _Agents] = {
    "inquiry": _Agents(_INQUIRY, {"llm": LLMAgent, "sceptic": ScepticAgent}, ("chat", "context", "prompts", "belief")),
    "projection": _Agents(
        {name: partial(_projecting, name) for name in PROJECTING_NAMES},
        {"llm": ProjectingLLMAgent},
        ("chat", "context", "prompts", "memory", "reply"),
    ),
}

BASELINE_NAMES = tuple(_INQUIRY)
"""Names of the agents of inquiries without a chat model."""
MODEL_AGENT_NAMES = tuple(_AGENTS["inquiry"].with_model)
"""Names of the agents of inquiries with a chat model."""
AGENT_NAMES = (*BASELINE_NAMES, *MODEL_AGENT_NAMES)
"""Names that `make_agent` takes for inquiries, apart from agents of your own. Replay and human agents need more than an
environment: use their classes."""
CHAT_SETTINGS = tuple(field.name for field in fields(ChatModel) if field.name != "clock")
"""Settings of `make_agent` for `ChatModel`."""
PROJECTION_AGENT_NAMES = (*_AGENTS["projection"].baselines, *_AGENTS["projection"].with_model)
"""Names that `make_agent` takes for projections, apart from agents of your own."""


def agent_names(kind: TaskKind) -> tuple[str, ...]:
    """Return the names that `make_agent` takes for a kind of environment, apart from agents of your own."""
    return (*_AGENTS[kind].baselines, *_AGENTS[kind].with_model)


def model_agent_names(kind: TaskKind) -> tuple[str, ...]:
    """Return the names of the agents with a chat model for a kind of environment."""
    return tuple(_AGENTS[kind].with_model)


def agent_setting_names(kind: TaskKind) -> tuple[str, ...]:
    """Return the settings of the agents with a chat model for a kind of environment, except those of `ChatModel`."""
    return _AGENTS[kind].settings


def known_agents(kind: TaskKind) -> str:
    """Return the names of agents in a kind of environment, for messages."""
    return "; ".join(filter(None, (", ".join(agent_names(kind)), f"an agent of your own is {OWN_FORMS}")))


def make_agent(name: str, env: gym.Env[Any, Any], **settings: Any) -> Agent:
    """Return a new agent for the tree or the task that ``env`` plays.

    Args:
        name: one of `agent_names`, or an agent of your own: ``module:factory`` or ``FILE.py:factory``, called as
            ``factory(env, **settings)``, or for an inquiry ``policy:FILE``, a model saved by Stable-Baselines3. The
            code is imported from installed packages or the file.
        env: an `InquiryEnv` or a `ProjectionEnv`, wrapped or not, before or after a reset. An environment that draws
            its tree or task at each reset has to be reset first; the agent then plays that tree or task.
        settings: for one of `model_agent_names`, ``model=...`` and other settings of `ChatModel` and of the agent's
            class, or ``chat=...``; for an agent of your own, the arguments of its factory; none for other agents.

    Raises:
        AgentError: an agent of your own cannot be made; see `own_agent` and `saved_policy`.
        OptionError: the name or a setting is unknown, a value is out of range, a model is missing or not needed, or
            ``env`` is of another kind or has not drawn its tree or task yet.
    """
    inner: Any = getattr(env, "unwrapped", None)
    kind, agents = _kind_of(inner, env)
    if name in agents.with_model:
        return _make_model_agent(name, agents, settings)
    is_policy = is_own(name) and name.startswith(POLICY)
    if is_own(name) and not is_policy:
        return own_agent(name, inner, **settings)
    if name not in agents.baselines and not (is_policy and kind == "inquiry"):
        raise OptionError(_unknown(name, kind))
    if settings:
        raise OptionError(f"the agent '{name}' takes no settings; leave out {', '.join(settings)}")
    return saved_policy(name, _vectors(inner), inner.rules) if is_policy else agents.baselines[name](inner)


def _unknown(name: str, kind: TaskKind) -> str:
    """Return the message that no agent with this name plays a kind of environment."""
    others = [other for other in _AGENTS if name in agent_names(other)]
    near = f", which plays {others[0]} environments" if others else suggest(name, agent_names(kind))
    return f"unknown agent '{name}'{near}; known in {kind} environments: {known_agents(kind)}"


def _kind_of(inner: Any, env: Any) -> tuple[TaskKind, _Agents]:
    if isinstance(inner, InquiryEnv):
        return "inquiry", _AGENTS["inquiry"]
    if isinstance(inner, ProjectionEnv):
        return "projection", _AGENTS["projection"]
    raise OptionError(
        "make_agent takes an inquiry or a projection environment, such as gym.make('InquiTree-paper12-v0'), not "
        f"{type(env).__name__}"
    )


def takes_model(name: str) -> bool:
    """Return whether the agent with this name is given a chat model."""
    named = any(name in agents.with_model for agents in _AGENTS.values())
    return named or (is_own(name) and name.startswith(CHAT))


def _make_model_agent(name: str, agents: _Agents, settings: Mapping[str, Any]) -> LLMAgent:
    known = (*CHAT_SETTINGS, *agents.settings)
    for setting in settings:
        if setting not in known:
            raise OptionError(
                f"unknown setting '{setting}'{suggest(setting, known)}; the agent '{name}' takes: {', '.join(known)}"
            )
    chat_settings = {setting: value for setting, value in settings.items() if setting in CHAT_SETTINGS}
    agent_settings = {setting: value for setting, value in settings.items() if setting in agents.settings}
    if ("model" in chat_settings) == ("chat" in agent_settings):
        raise OptionError(f"the agent '{name}' needs a model: give model='provider/name' or chat=, not both")
    if "chat" not in agent_settings:
        agent_settings["chat"] = ChatModel(**chat_settings)
    elif chat_settings:
        raise OptionError(f"chat= has its own settings; leave out {', '.join(chat_settings)}")
    return agents.with_model[name](**agent_settings)


def _tree(env: InquiryEnv) -> Tree:
    if env.last_transition is not None:
        return env.tree
    if len(env.trees) > 1 or isinstance(env, SyntheticEnv):
        raise OptionError("the environment draws its tree at each reset; call env.reset() before make_agent()")
    return env.trees[0]


def _vectors(env: InquiryEnv) -> TreeVectors:
    return env.vectors if env.last_transition is not None else tree_vectors(_tree(env), env.embedder)
