"""Agents by name."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym

from inquitree_gym.baselines.agent import Agent, Ask, ModelAgent, asks_models, stated_by, unprivileged
from inquitree_gym.errors import AgentError, InquiTreeError, OptionError, suggest
from inquitree_gym.kinds import kind, kinds
from inquitree_gym.llm import ChatModel
from inquitree_gym.protocols import Play
from inquitree_gym.runs.specs import CHAT, CHAT_SETTINGS, OWN_FORMS, POLICY, is_own

_MEMBERS = ("needs_privileged", "config", "reset", "act", "recall")
MAX_MESSAGE = 300
"""Characters shown of the message of an error in an agent."""


def own_agent(name: str, env: Any, **settings: Any) -> Agent:
    """Import a factory, call it as ``factory(env, **settings)``, and return its agent.

    Raises:
        AgentError: the factory cannot be imported or raises, or returns no agent. The agent raises the same error for
            its own faults.
    """
    factory = _factory(name)
    with own_faults(name, "its factory"):
        agent = factory(env, **settings)
    if isinstance(agent, type) or (lacking := [each for each in _MEMBERS if not hasattr(agent, each)]):
        lacks = "" if isinstance(agent, type) else f" without {', '.join(lacking)}"
        raise AgentError(
            f"the agent '{name}': its factory returned {type(agent).__name__}{lacks}; return an agent, such as an "
            "instance of a subclass of BaselineAgent"
        )
    return _OwnModelAgent(name, agent) if asks_models(agent) else _OwnAgent(name, agent)


class _OwnAgent:
    """An agent of the user's own, whose errors name it."""

    def __init__(self, name: str, agent: Any) -> None:
        self._name = name
        self._agent: Any = agent

    @property
    def needs_privileged(self) -> bool:
        return bool(self._agent.needs_privileged)

    @property
    def config(self) -> dict[str, Any]:
        with own_faults(self._name, "config"):
            config: dict[str, Any] = json.loads(json.dumps(dict(self._agent.config)))
        if not isinstance(config.get("name"), str) or not config["name"]:
            raise AgentError(f"the agent '{self._name}': its config has no name; add one, as text")
        return config | ({"privileged": True} if self.needs_privileged else {})

    @property
    def stated(self) -> dict[str, float]:
        return stated_by(self._agent)

    def reset(self, seed: int) -> None:
        with own_faults(self._name, "reset"):
            self._agent.reset(seed)

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        with own_faults(self._name, "act"):
            action = self._agent.act(observation, info)
        return self._checked(action, "act")

    def recall(self, observation: str, info: Mapping[str, Any], action: str) -> None:
        with own_faults(self._name, "recall"):
            self._agent.recall(observation, info, action)

    def _checked(self, action: Any, place: str) -> str:
        if not isinstance(action, str):
            raise AgentError(
                f"the agent '{self._name}' returned {type(action).__name__} from {place}; an action is a string"
            )
        return action


class _OwnModelAgent(_OwnAgent):
    """An agent of the user's own that asks chat models."""

    _agent: ModelAgent

    async def decide(self, observation: str, info: Mapping[str, Any], ask: Ask | None = None) -> str:
        with own_faults(self._name, "decide"):
            action = await self._agent.decide(observation, info, ask)
        return self._checked(action, "decide")


def _factory(name: str) -> Callable[..., Any]:
    place, _, factory = name.removeprefix(CHAT).rpartition(":")
    with own_faults(name, "its import"):
        found: Any = _import_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
        for part in factory.split("."):
            found = getattr(found, part)
    if not callable(found):
        raise AgentError(f"the agent '{name}': {factory} is no factory but {type(found).__name__}; name a callable")
    made: Callable[..., Any] = found
    return made


def _import_file(path: Path) -> ModuleType:
    """Import a file once, under a name of its own."""
    file = path.expanduser().resolve()
    name = f"inquitree_own_{hashlib.sha256(str(file).encode()).hexdigest()[:16]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        with ExitStack() as undo:
            undo.callback(sys.modules.pop, name)
            spec.loader.exec_module(module)
            undo.pop_all()
    return sys.modules[name]


@contextmanager
def own_faults(name: str, place: str) -> Iterator[None]:
    """Turn the errors of foreign code during the block into `AgentError`. Those of this package stay as they are."""
    try:
        yield
    except InquiTreeError:
        raise
    except (Exception, SystemExit) as error:
        message = " ".join(f"{type(error).__name__}: {error}".split())[:MAX_MESSAGE]
        raise AgentError(f"the agent '{name}' failed in {place}: {message}") from error


def agent_names(env: str) -> tuple[str, ...]:
    """Return the names that `make_agent` takes for a kind of environment, apart from agents of your own."""
    play = kind(env).play
    return (*play.agents, *play.model_agents)


def known_agents(env: str) -> str:
    """Return the names of agents in a kind of environment, for messages."""
    return f"{', '.join(agent_names(env))}; an agent of your own is {OWN_FORMS}"


def make_agent(name: str, env: gym.Env[Any, Any], **settings: Any) -> Agent:
    """Return a new agent for the task that ``env`` plays.

    Args:
        name: one of `agent_names`, or an agent of your own: ``module:factory`` or ``FILE.py:factory``, called as
            ``factory(env, **settings)``, or where a kind of environment takes it ``policy:FILE``, a model saved by
            Stable-Baselines3. The code is imported from installed packages or the file.
        env: an environment in free text, wrapped or not, before or after a reset. An environment that draws its task at
            each reset has to be reset first. The agent then plays that task.
        settings: for an agent that asks a model, ``model=...`` and other settings of `ChatModel` and of the agent's
            class, or ``chat=...``. For an agent of your own, the arguments of its factory. None for other agents.

    Raises:
        AgentError: an agent of your own cannot be made. See `own_agent`.
        OptionError: the name or a setting is unknown, a value is out of range, a model is missing or not needed, or
            ``env`` is no environment in free text, has not drawn its task yet, or was made without the
            ``privileged=True`` that the agent needs.
    """
    agent = _make(name, env, settings)
    if agent.needs_privileged and not getattr(env.unwrapped, "privileged", False):
        raise unprivileged(name)
    return agent


def make_player(name: str, env: Any, **settings: Any) -> Agent:
    """Return a new agent for a bare environment, which from then on shows what the agent needs. See `make_agent`."""
    agent = _make(name, env, settings)
    env.privileged = agent.needs_privileged
    return agent


def _make(name: str, env: Any, settings: Mapping[str, Any]) -> Agent:
    inner: Any = getattr(env, "unwrapped", None)
    if not isinstance(getattr(inner, "kind", None), str) or not hasattr(inner, "records"):
        raise OptionError(
            "make_agent takes an environment in free text, such as gym.make('InquiTree-paper12-v0'), not "
            f"{type(env).__name__}"
        )
    play = kind(inner.kind).play
    if name in play.model_agents:
        return _make_model_agent(name, play.model_agents[name], settings)
    is_policy = is_own(name) and name.startswith(POLICY)
    if is_own(name) and not is_policy:
        return own_agent(name, inner, **settings)
    if name not in play.agents and not (is_policy and play.saved_policy):
        raise OptionError(_unknown(name, inner.kind))
    if settings:
        raise OptionError(f"the agent '{name}' takes no settings; leave out {', '.join(settings)}")
    return _make_baseline(name, play, inner)


def _make_baseline(name: str, play: Play[Any], env: Any) -> Agent:
    if name not in play.agents and play.saved_policy is not None:
        policy: Agent = play.saved_policy(name, env)
        return policy
    agent: Agent = play.agents[name](env)
    return agent


def _unknown(name: str, env: str) -> str:
    """Return the message that no agent with this name plays a kind of environment."""
    others = [other.name for other in kinds() if other.name != env and name in agent_names(other.name)]
    near = f", which plays {others[0]} environments" if others else suggest(name, agent_names(env))
    return f"unknown agent '{name}'{near}; known in {env} environments: {known_agents(env)}"


def _make_model_agent(name: str, agent: type[Any], settings: Mapping[str, Any]) -> Agent:
    own = tuple(signature(agent).parameters)
    known = (*CHAT_SETTINGS, *own)
    for setting in settings:
        if setting not in known:
            raise OptionError(
                f"unknown setting '{setting}'{suggest(setting, known)}; the agent '{name}' takes: {', '.join(known)}"
            )
    chat_settings = {setting: value for setting, value in settings.items() if setting in CHAT_SETTINGS}
    agent_settings = {setting: value for setting, value in settings.items() if setting in own}
    if ("model" in chat_settings) == ("chat" in agent_settings):
        raise OptionError(f"the agent '{name}' needs a model: give model='provider/name' or chat=, not both")
    if "chat" not in agent_settings:
        agent_settings["chat"] = ChatModel(**chat_settings)
    elif chat_settings:
        raise OptionError(f"chat= has its own settings; leave out {', '.join(chat_settings)}")
    made: Agent = agent(**agent_settings)
    return made
