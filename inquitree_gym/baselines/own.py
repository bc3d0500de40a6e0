"""Agents that the package does not know: factories in modules and files, by name.

Code is imported when an agent is made, and at no other time: to read a study, a run or a log imports nothing.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from inquitree_gym.baselines.agent import Agent, Ask, ModelAgent, asks_models, stated_belief
from inquitree_gym.errors import AgentError, InquiTreeError
from inquitree_gym.log import file_stem

CHAT, POLICY = "chat:", "policy:"
"""Prefixes of a factory that is given a chat model, and of the file of a saved policy."""
OWN_FORMS = "module:factory, FILE.py:factory or policy:FILE, and chat:… for a factory that takes a model"
_FORM = re.compile(
    r"(chat:)?([^\x00-\x1f\x7f]{1,200}\.py|[^\W\d]\w*(\.\w+)*):[^\W\d][\w.]*|policy:[^\x00-\x1f\x7f]{1,200}"
)
_MEMBERS = ("needs_privileged", "config", "reset", "act", "recall")
MAX_MESSAGE = 300
"""Characters shown of the message of an error in an agent."""


def is_own(name: str) -> bool:
    """Return whether a name has the form of an agent of one's own; see `OWN_FORMS`."""
    return _FORM.fullmatch(name) is not None


def file_part(name: str) -> str:
    """Return the name of an agent of one's own as part of a file name, unique by eight digits of a hash.

    >>> file_part("my/agents.py:Curious")
    'agents.py-Curious-bcb7d9fe'
    """
    place, _, rest = name.rpartition(":")
    shown = f"{place} {Path(rest).stem}" if name.startswith(POLICY) else f"{Path(place).name} {rest}"
    return f"{file_stem(shown)}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def own_agent(name: str, env: Any, **settings: Any) -> Agent:
    """Import a factory, call it as ``factory(env, **settings)``, and return its agent.

    Raises:
        AgentError: the factory cannot be imported or raises, or returns no agent; the agent raises the same error for
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
    def belief(self) -> float | None:
        return stated_belief(self._agent)

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
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


@contextmanager
def own_faults(name: str, place: str) -> Iterator[None]:
    """Turn the errors of foreign code during the block into `AgentError`; those of this package stay as they are."""
    try:
        yield
    except InquiTreeError:
        raise
    except (Exception, SystemExit) as error:
        message = " ".join(f"{type(error).__name__}: {error}".split())[:MAX_MESSAGE]
        raise AgentError(f"the agent '{name}' failed in {place}: {message}") from error
