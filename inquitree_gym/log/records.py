"""Records of an episode log, one per line."""

from __future__ import annotations

import math
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import Field, SerializeAsAny, ValidationInfo, field_validator

from inquitree_gym.log.jsonl import JsonlRecord
from inquitree_gym.trees.fields import CANARY

LOG_VERSION: Literal[1] = 1
JUDGE_ROLE = "judge"
"""Role of a judge's replies, and the folder of its cached replies. See `Reply.role`."""
READER_ROLE = "reader"
"""Role of the replies of a model that reads the actions for an environment. See `Reply.role`."""
SIMILARITY_TOLERANCE = 1e-5
"""Largest difference of one similarity computed alone, in a batch, or on another machine."""


def is_none(value: object) -> bool:
    """Return whether a value is None, so that it is not written."""
    return value is None


def nan_to_none(value: Any) -> Any:
    """Return None for NaN, which JSON does not have, and any other value as it is."""
    return None if isinstance(value, float) and math.isnan(value) else value


class TaskRef(JsonlRecord):
    """Identity of a task."""

    kind: str
    """Kind of environment that it is played in. See `inquitree_gym.kinds`."""
    id: str
    version: int
    digest: str


class Setup(JsonlRecord):
    """Base class of what one kind of environment adds to the header, besides task, rules and seed."""

    judge: dict[str, Any] | None = Field(default=None, exclude_if=is_none)
    """Name, version and settings of the judge, where it sets the reward of every turn. None, and not written, where
    only the end of an episode is judged. See `Footer.judge`."""


class TurnEvent(JsonlRecord):
    """Base class of the outcome of one action, of which each kind of environment has its own."""

    kind: str
    """Kind of the next observation."""
    state: str
    """State in which the next action is read."""

    @property
    def unscored(self) -> bool:
        """True if the judge could not score the action. Its reward of 0 is then no grade."""
        return False

    def matches(self, other: Self) -> bool:
        """Tell whether a replayed event agrees. Numbers that depend on the machine may differ a little."""
        return self == other


E = TypeVar("E", bound=TurnEvent)


class Header(JsonlRecord):
    """First line: everything that determines an episode except the actions."""

    kind: Literal["header"] = "header"
    log_version: Literal[1] = LOG_VERSION
    canary: str = CANARY
    versions: dict[str, str | None]
    """Versions of Python and of the packages that affect an episode. None for a package that is not installed."""
    task: TaskRef
    rules: dict[str, Any]
    """All rules by name."""
    seed: int
    """Seed of the episode."""
    setup: Any
    """`Setup` of the kind of environment."""
    prompts: str
    """SHA-256 of the templates."""
    agent: dict[str, Any]
    """Configuration of the agent. Holds at least its name when played by `play`."""
    started: str
    """UTC time, ISO 8601."""

    @field_validator("setup", mode="before")
    @classmethod
    def _parse_setup(cls, setup: Any, info: ValidationInfo) -> Any:
        """Return the setup. A document is parsed with the model that the reader of the file found."""
        if isinstance(setup, Setup):
            return setup
        model: type[Setup] = Setup if info.context is None else info.context.setup
        return model.model_validate(setup)


class Reply(JsonlRecord):
    """Reply of a model, written before it is used."""

    kind: Literal["reply"] = "reply"
    turn: int
    """Turn whose action it is for."""
    role: str
    """Purpose: ``proposer`` for the agent's move, ``correction`` for the same after a malformed reply, ``sceptic`` for
    a second opinion, ``reader`` and ``judge`` for the environment's reading of the action and its grades."""
    text: str
    """The raw reply."""
    finish_reason: str
    """The service's word: ``stop``, ``length``, …"""
    tokens: dict[str, int] | None = None
    """Tokens by kind as counted by the service. None if it did not count."""
    cost: float | None = None
    """US dollars. None if the price is unknown."""
    seconds: float
    """Time from the first request to the reply, waits included."""
    retries: int = 0
    """Failed requests before this reply."""
    cut: int = 0
    """Characters cut off the end."""
    cached: bool = False
    """True for a reply from a cache, which cost nothing."""
    fault: str = ""
    """Fault against the format of its role. Empty for a valid reply."""


Probability = Annotated[float, Field(ge=0, le=1)]


class Turn(JsonlRecord, Generic[E]):
    """One action and its outcome."""

    kind: Literal["turn"] = "turn"
    turn: int
    """1 for the first action."""
    observation: str
    """Observation before the action."""
    action: str
    event: SerializeAsAny[E]
    """Outcome, in the form of the kind of environment."""
    reward: float
    terminated: bool
    truncated: bool
    tokens: dict[str, int] | None = None
    """Tokens by kind over the replies of the turn. None if there is none or none was counted."""
    cost: float | None = None
    """US dollars over these replies. None if there is none or a price is unknown."""
    stated: dict[str, Probability] = Field(default={})
    """Probabilities that the agent stated with its action, by name. See `stated_by`."""
    agent_seconds: float | None = None
    env_seconds: float

    @field_validator("event", mode="before")
    @classmethod
    def _parse_event(cls, event: Any, info: ValidationInfo) -> Any:
        """Return the event. A document is parsed with the model that the reader of the file found."""
        if isinstance(event, TurnEvent) or info.context is None:
            return event
        model: type[TurnEvent] = info.context.event
        return model.model_validate(event)


class Failure(JsonlRecord):
    """Error that stopped the episode and is not the agent's fault. The episode can be resumed."""

    kind: Literal["failure"] = "failure"
    error: str
    when: str


class Footer(JsonlRecord):
    """Last line of a complete episode."""

    kind: Literal["footer"] = "footer"
    status: Literal["concluded", "truncated", "abandoned"]
    observation: str
    """Observation after the last action."""
    turns: int
    episode_return: float
    """Sum of rewards, undiscounted."""
    seconds: float
    judge: dict[str, Any] | None = None
    """Judge of the reward: its name, version and settings. None for an episode that did not conclude."""


Record = Header | Reply | Turn[Any] | Failure | Footer
