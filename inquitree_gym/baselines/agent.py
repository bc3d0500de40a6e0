"""What an agent is, and the texts of a tree as baselines use them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np

from inquitree_gym.envs.menu import numbered
from inquitree_gym.errors import OptionError
from inquitree_gym.llm import Chat, Completion, Message
from inquitree_gym.log import Reply
from inquitree_gym.trees import Tree


class Agent(Protocol):
    """Anything that plays: told a seed at the start of an episode, then asked for one action per turn."""

    @property
    def needs_privileged(self) -> bool:
        """Whether the agent reads what others must not see: ``info["privileged"]``."""

    @property
    def config(self) -> dict[str, Any]:
        """Name and settings, for the log; plain values."""

    def reset(self, seed: int) -> None:
        """Begin an episode; ``seed`` fixes whatever chance the agent uses."""

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""

    def recall(self, observation: str, info: Mapping[str, Any], action: str) -> None:
        """Take note of a turn played before the episode was torn, without paying for it again."""


class Request(NamedTuple):
    """What an agent asks of a chat model, and why."""

    role: str
    """See `Reply.role`."""
    chat: Chat
    messages: list[Message]
    seed: int
    fault: Callable[[str], str]
    """Says how a reply breaks the protocol; an empty string where it keeps it."""

    def to_reply(self, turn: int, completion: Completion) -> Reply:
        """Return the record of the reply, for a turn."""
        return Reply(
            turn=turn,
            role=self.role,
            text=completion.text,
            finish_reason=completion.finish_reason,
            tokens=completion.tokens or None,
            cost=completion.cost,
            seconds=completion.seconds,
            retries=completion.retries,
            cut=completion.cut,
            cached=completion.cached,
            fault=self.fault(completion.text),
        )


Ask = Callable[[Request], Awaitable[Reply]]
"""Given to an agent by whoever plays it: asks the model and logs its reply, or finds the reply in the log."""


class AskingAgent(Agent, Protocol):
    """An agent that asks chat models. It says what to ask; the one who plays it asks, and logs each reply at once.

    So that nothing is paid twice: where an episode was torn, `decide` is called for each of its turns once more, and
    what was asked before is answered from the log.
    """

    async def decide(self, observation: str, info: Mapping[str, Any], ask: Ask) -> str:
        """Return the next action; whatever is paid for goes through ``ask``, and nothing else decides but chance."""


def asks(agent: Agent) -> TypeGuard[AskingAgent]:
    """Tell whether an agent asks chat models."""
    return hasattr(agent, "decide")


class BaselineAgent:
    """Common ground of the baselines: a name, a generator of their own, and recall by acting once more."""

    name = "baseline"
    needs_privileged = False
    """Whether it reads ``info["privileged"]``."""

    def __init__(self) -> None:
        """Start with a generator that `reset` replaces."""
        self.rng = np.random.default_rng(0)

    @property
    def config(self) -> dict[str, Any]:
        """Name and settings, for the log."""
        return {"name": self.name}

    def reset(self, seed: int) -> None:
        """Begin an episode."""
        self.rng = np.random.default_rng(seed)

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action; each baseline has its own."""
        raise TypeError(f"{type(self).__name__} does not say how to act; override act()")

    def recall(self, observation: str, info: Mapping[str, Any], action: str) -> None:
        """Act once more, which brings the agent to where it was; the logged action is taken all the same."""
        self.act(observation, info)


class TreeTexts:
    """The texts that a tree can be played with, and where an observation stands among them."""

    def __init__(self, tree: Tree) -> None:
        """Take the canonical texts of ``tree``."""
        self.subtopics = tuple(subtopic.text for subtopic in tree.subtopics)
        self.studies = tuple(tuple(study.text for study in subtopic.studies) for subtopic in tree.subtopics)
        self.texts = (*self.subtopics, *(text for family in self.studies for text in family))
        self.items = len(tree.conclusions)

    def subtopic_shown(self, observation: str) -> int | None:
        """Return the subtopic whose text stands in ``observation``, the longest of several; None for none."""
        found = [i for i, text in enumerate(self.subtopics) if text in observation]
        return max(found, key=lambda i: len(self.subtopics[i]), default=None)

    def junk_conclusion(self, rng: np.random.Generator) -> str:
        """Return a numbered list of k random menu texts, k the number of conclusion items."""
        return numbered([self.texts[i] for i in rng.integers(len(self.texts), size=self.items)])


def privileged(info: Mapping[str, Any], who: str) -> Mapping[str, Any]:
    """Return ``info["privileged"]``.

    Raises:
        OptionError: the environment does not tell.
    """
    if "privileged" not in info:
        raise OptionError(f"the {who} agent needs an environment made with privileged=True")
    found: Mapping[str, Any] = info["privileged"]
    return found
