"""Agent protocols, and the base classes of the baselines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np

from inquitree_gym.envs.menu import CONCLUDE, EXPLORE, numbered
from inquitree_gym.errors import OptionError
from inquitree_gym.llm import Chat, Completion, Message
from inquitree_gym.llm.chat import complete_with_text
from inquitree_gym.log import Reply
from inquitree_gym.trees import Tree

USED_UP = "its tokens were used up before any text"
"""Fault of a reply without text that ended at the limit of its tokens; it is no move, and is asked for again."""


class Agent(Protocol):
    """Anything that plays: reset with a seed at the start of an episode, then asked for one action per turn."""

    @property
    def needs_privileged(self) -> bool:
        """True if the agent reads ``info["privileged"]``."""

    @property
    def config(self) -> dict[str, Any]:
        """Name and settings for the log, as plain values."""

    def reset(self, seed: int) -> None:
        """Start an episode; ``seed`` determines all random choices of the agent."""

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""

    def recall(self, observation: str, info: Mapping[str, Any], action: str) -> None:
        """Restore the state after a logged turn of a resumed episode, without paying for it again."""


class Ask(Protocol):
    """Function passed to `ModelAgent.decide`: puts a request to a chat model and logs the reply before returning it."""

    async def __call__(
        self, chat: Chat, messages: list[Message], *, role: str, seed: int, check: Callable[[str], str]
    ) -> Reply:
        """Return the reply, from the log if the episode is resumed and the log has it.

        Args:
            chat: the model.
            messages: the request.
            role: see `Reply.role`.
            seed: see `Chat.complete`.
            check: returns the fault in a reply, or an empty string for a valid one.
        """


class ModelAgent(Agent, Protocol):
    """An agent that asks chat models.

    No reply is paid for twice: when a torn episode is resumed, `decide` is called again for each of its turns, and
    ``ask`` returns the logged replies. So the action may depend on nothing but the arguments, the replies and the seed.
    """

    async def decide(self, observation: str, info: Mapping[str, Any], ask: Ask | None = None) -> str:
        """Return the next action; every request goes through ``ask``, if it is given."""


def asks_models(agent: Agent) -> TypeGuard[ModelAgent]:
    """Tell whether an agent asks chat models."""
    return hasattr(agent, "decide")


def stated_belief(agent: Agent) -> float | None:
    """Return an agent's ``belief``, the stated probability that the latest result is fake; None without a statement."""
    belief: float | None = getattr(agent, "belief", None)
    return belief


async def ask_for_reply(
    chat: Chat,
    messages: list[Message],
    *,
    turn: int,
    role: str,
    seed: int,
    check: Callable[[str], str],
    keep: Callable[[Reply], object],
) -> Reply:
    """Return a reply with text; ``keep`` gets every reply, also those without. See `Ask` and `complete_with_text`."""
    replies: list[Reply] = []

    def record(completion: Completion) -> None:
        replies.append(reply_record(turn, role, completion, check))
        keep(replies[-1])

    await complete_with_text(chat, messages, seed=seed, keep=record)
    return replies[-1]


def reply_record(turn: int, role: str, completion: Completion, check: Callable[[str], str]) -> Reply:
    """Return the log record of a completion."""
    return Reply(
        turn=turn,
        role=role,
        text=completion.text,
        finish_reason=completion.finish_reason,
        tokens=completion.tokens or None,
        cost=completion.cost,
        seconds=completion.seconds,
        retries=completion.retries,
        cut=completion.cut,
        cached=completion.cached,
        fault=USED_UP if completion.used_up else check(completion.text),
    )


class BaselineAgent:
    """Base class of the baselines: a name, a random generator, and recall by acting again."""

    name = "baseline"
    needs_privileged = False
    """True if the agent reads ``info["privileged"]``."""

    def __init__(self) -> None:
        """Create the generator, which `reset` replaces."""
        self.rng = np.random.default_rng(0)

    @property
    def config(self) -> dict[str, Any]:
        """Name and settings for the log."""
        return {"name": self.name}

    def reset(self, seed: int) -> None:
        """Start an episode."""
        self.rng = np.random.default_rng(seed)

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action; subclasses override it."""
        raise TypeError(f"{type(self).__name__} has no act(); override it")

    def recall(self, observation: str, info: Mapping[str, Any], action: str) -> None:
        """Act again, which restores the agent's state; the logged action is taken in any case."""
        self.act(observation, info)


class TraversalAgent(BaselineAgent, ABC):
    """Base class of agents that enter every subtopic once, run one study in each, and conclude."""

    def __init__(self, tree: Tree) -> None:
        """Learn the menu texts of ``tree``."""
        super().__init__()
        self.subtopics = [subtopic.text for subtopic in tree.subtopics]
        self.studies = [[study.text for study in subtopic.studies] for subtopic in tree.subtopics]
        self._entered: set[int] = set()
        self._current = 0

    def reset(self, seed: int) -> None:
        """Start an episode."""
        super().reset(seed)
        self._entered = set()

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        match info["state"]:
            case "topic":
                remaining = [text for i, text in enumerate(self.subtopics) if i not in self._entered]
                return self.choose(observation, remaining or self.subtopics)
            case "subtopic":
                if (shown := longest_match(self.subtopics, observation)) >= 0:
                    self._entered.add(shown)
                    self._current = shown
                return self.choose(observation, self.studies[self._current])
            case "result":
                self.read_result(observation)
                return EXPLORE if len(self._entered) < len(self.subtopics) else CONCLUDE
            case "conclusion":
                return self.conclude()
        return ""

    @abstractmethod
    def choose(self, observation: str, texts: Sequence[str]) -> str:
        """Return one of the menu ``texts``."""

    @abstractmethod
    def conclude(self) -> str:
        """Return the conclusion."""

    def read_result(self, observation: str) -> None:
        """Take note of a result; by default nothing."""


def menu_texts(tree: Tree) -> list[str]:
    """Return the canonical texts of all subtopics, then of all studies."""
    return [node.text for node in (*tree.subtopics, *tree.studies)]


def random_conclusion(tree: Tree, rng: np.random.Generator) -> str:
    """Return a numbered list of k random menu texts, k the number of conclusion items."""
    texts = menu_texts(tree)
    return numbered([texts[i] for i in rng.integers(len(texts), size=len(tree.conclusions))])


def longest_match(texts: Sequence[str], observation: str) -> int:
    """Return the index of the longest of ``texts`` that ``observation`` contains; -1 if it contains none."""
    found = [i for i, text in enumerate(texts) if text in observation]
    return max(found, key=lambda i: len(texts[i]), default=-1)


def privileged(info: Mapping[str, Any], agent: str) -> Mapping[str, Any]:
    """Return ``info["privileged"]``.

    Raises:
        OptionError: the environment was made without ``privileged=True``.
    """
    if "privileged" not in info:
        raise OptionError(f"the {agent} agent needs an environment made with privileged=True")
    found: Mapping[str, Any] = info["privileged"]
    return found
