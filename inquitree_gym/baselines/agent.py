"""What an agent is, and the menu that baselines choose from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from inquitree_gym.errors import OptionError
from inquitree_gym.trees import Tree

REDO, EXPLORE, CONCLUDE = "redo the study", "explore new subtopic", "draw conclusion"


class Call(NamedTuple):
    """What stands behind an action, where a service was asked."""

    reply: str
    """The raw reply."""
    tokens: dict[str, int] | None = None
    cost: float | None = None
    """US dollars; None where the price is unknown."""


class Agent(Protocol):
    """Anything that plays: told a seed at the start of an episode, then asked for one action per turn."""

    @property
    def needs_privileged(self) -> bool:
        """Whether the agent reads what others must not see: ``info["privileged"]``."""

    @property
    def config(self) -> dict[str, Any]:
        """Name and settings, for the log; plain values."""

    @property
    def last_call(self) -> Call | None:
        """What stood behind the last action; None where no service was asked."""

    def reset(self, seed: int) -> None:
        """Begin an episode; ``seed`` fixes whatever chance the agent uses."""

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""

    def recall(self, observation: str, info: Mapping[str, Any], action: str) -> None:
        """Take note of a turn played before the episode was torn, without paying for it again."""


class BaselineAgent:
    """Common ground of the baselines: a name, a generator of their own, and recall by acting once more."""

    name = "baseline"
    needs_privileged = False
    """Whether it reads ``info["privileged"]``."""
    last_call: Call | None = None

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


class Menu:
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


def numbered(claims: Sequence[str]) -> str:
    """Return a numbered list, one claim per line."""
    return "\n".join(f"{number}. {claim}" for number, claim in enumerate(claims, 1))


def privileged(info: Mapping[str, Any], who: str) -> Mapping[str, Any]:
    """Return ``info["privileged"]``.

    Raises:
        OptionError: the environment does not tell.
    """
    if "privileged" not in info:
        raise OptionError(f"the {who} agent needs an environment made with privileged=True")
    found: Mapping[str, Any] = info["privileged"]
    return found
