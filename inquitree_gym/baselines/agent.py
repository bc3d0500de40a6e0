"""Agent protocols, and the base classes of the baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np

from inquitree_gym.errors import AgentError, LogError, OptionError
from inquitree_gym.llm import Chat, Completion, Message
from inquitree_gym.llm.chat import complete_with_text, is_amount
from inquitree_gym.log import Reply

USED_UP = "its tokens were used up before any text"
CUT_OFF = "its tokens were used up before its move was finished"
TOO_LONG = "the request was too long"
NO_REPLIES = (USED_UP, CUT_OFF, TOO_LONG)
"""Faults of replies that are never played or corrected: the request is repeated, or the episode fails."""
_WITHHELD = {"filtered": "it was filtered", "refused": "it is a refusal"}


class Agent(Protocol):
    """Anything that plays: reset with a seed at the start of an episode, then asked for one action per turn."""

    @property
    def needs_privileged(self) -> bool:
        """True if the agent reads ``info["privileged"]``."""

    @property
    def config(self) -> dict[str, Any]:
        """Name and settings for the log, as plain values."""

    def reset(self, seed: int) -> None:
        """Start an episode. ``seed`` determines all random choices of the agent."""

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""

    def recall(self, observation: str, info: Mapping[str, Any], action: str) -> None:
        """Restore the state after a logged turn of a resumed episode, without paying for it again."""


class Ask(Protocol):
    """Function passed to `ModelAgent.decide`: puts a request to a chat model and logs the reply before returning it."""

    async def __call__(
        self,
        chat: Chat,
        messages: list[Message],
        *,
        role: str,
        seed: int,
        check: Callable[[str], str],
        finished: Callable[[str], bool] | None = None,
    ) -> Reply:
        """Return the reply, from the log if the episode is resumed and the log has it.

        Args:
            chat: the model.
            messages: the request.
            role: see `Reply.role`.
            seed: see `Chat.complete`.
            check: returns the fault in a reply, or an empty string for a valid one.
            finished: tells whether a reply that was cut off can be used. None if it can with any text.
        """


class ModelAgent(Agent, Protocol):
    """An agent that asks chat models.

    No reply is paid for twice: when a torn episode is resumed, `decide` is called again for each of its turns, and
    ``ask`` returns the logged replies. So the action may depend on nothing but the arguments, the replies and the seed.
    """

    async def decide(self, observation: str, info: Mapping[str, Any], ask: Ask | None = None) -> str:
        """Return the next action. Every request goes through ``ask``, if it is given."""


def asks_models(agent: Agent) -> TypeGuard[ModelAgent]:
    """Tell whether an agent asks chat models."""
    return hasattr(agent, "decide")


def stated_by(agent: Agent) -> dict[str, float]:
    """Return the probabilities that an agent stated with its last action, by name.

    They are its ``stated``, and its ``belief``: the probability that the latest result is fake. An agent may lack both.
    Raise `AgentError` before the action is taken if one is no number in [0, 1].
    """
    stated: dict[str, float] = dict(getattr(agent, "stated", {}))
    belief: float | None = getattr(agent, "belief", None)
    stated = stated if belief is None else {**stated, "belief": belief}
    for name, value in stated.items():
        if not (is_amount(value) and value <= 1):
            raise AgentError(f"the probability '{name:.80}' must be in [0, 1], got {value!r:.80}. Mend the agent.")
    return stated


async def ask_for_reply(
    chat: Chat,
    messages: list[Message],
    *,
    turn: int,
    role: str,
    check: Callable[[str], str],
    keep: Callable[[Reply], object],
    **request: Any,
) -> Reply:
    """Return a whole reply. ``keep`` gets every reply, also torn ones. See `Ask` and `complete_with_text`."""
    replies: list[Reply] = []

    def record(completion: Completion) -> None:
        replies.append(reply_record(turn, role, completion, check, request.get("finished")))
        keep(replies[-1])

    await complete_with_text(chat, messages, keep=record, **request)
    return replies[-1]


def reply_record(
    turn: int,
    role: str,
    completion: Completion,
    check: Callable[[str], str],
    finished: Callable[[str], bool] | None = None,
) -> Reply:
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
        fault=_fault(completion, check, finished),
    )


def _fault(completion: Completion, check: Callable[[str], str], finished: Callable[[str], bool] | None) -> str:
    if completion.end == "context":
        return TOO_LONG
    if completion.is_torn(finished):
        return USED_UP if completion.used_up else CUT_OFF
    return check(completion.text) or _WITHHELD.get(completion.end, "")


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
        """Return the next action. Subclasses override it."""
        raise TypeError(f"{type(self).__name__} has no act(); override it")

    def recall(self, observation: str, info: Mapping[str, Any], action: str) -> None:
        """Act again, which restores the agent's state. The logged action is taken in any case."""
        self.act(observation, info)


def privileged(info: Mapping[str, Any], agent: str) -> Mapping[str, Any]:
    """Return ``info["privileged"]``.

    Raises:
        OptionError: the environment was made without ``privileged=True``.
    """
    if "privileged" not in info:
        raise unprivileged(agent)
    found: Mapping[str, Any] = info["privileged"]
    return found


def unprivileged(agent: str) -> OptionError:
    """Return the error that an environment hides what an agent needs."""
    return OptionError(f"the {agent} agent needs an environment made with privileged=True")


class ReplayAgent(BaselineAgent):
    """Repeats the actions of an earlier episode."""

    name = "replay"

    def __init__(self, actions: Sequence[str]) -> None:
        super().__init__()
        self._actions = tuple(actions)
        self._taken = 0

    def reset(self, seed: int) -> None:
        """Start again with the first action."""
        super().reset(seed)
        self._taken = 0

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action.

        Raises:
            LogError: no action is left.
        """
        if self._taken == len(self._actions):
            raise LogError(
                f"the episode continues after its {self._taken} logged actions; it was torn, or played with other rules"
            )
        self._taken += 1
        return self._actions[self._taken - 1]


class HumanAgent(BaselineAgent):
    """Asks a person."""

    name = "human"

    def __init__(self, ask: Callable[[str, Mapping[str, Any]], str]) -> None:
        super().__init__()
        self._ask = ask

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the person's answer."""
        return self._ask(observation, info)

    def recall(self, observation: str, info: Mapping[str, Any], action: str) -> None:
        """Do nothing: the person need not answer again."""
