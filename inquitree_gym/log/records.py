"""Records of an episode log, one per line."""

from __future__ import annotations

import math
from operator import not_
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from inquitree_gym.errors import LogError
from inquitree_gym.log.jsonl import JsonlRecord
from inquitree_gym.trees.fields import CANARY

LOG_VERSION = 5
"""Version 1 had no `Reply`; a turn held the raw reply behind its action. Version 2 had no `EventRecord.other`, 3 had no
`Footer.judge` and no `Turn.belief`. Up to version 4 every episode was an inquiry, and its header named a ``tree``.
Rules that a header does not name have the values of `Rules.recorded`. All versions are read."""


OTHER_KIND = "name the kind of environment with --env, or leave the log out"
"""Remedy for a log of another kind of environment."""


def is_none(value: object) -> bool:
    """Return whether a value is None, so that it is not written."""
    return value is None


def nan_to_none(rating: Any) -> Any:
    """Return None for NaN, which JSON does not have, and any other value as it is."""
    return None if isinstance(rating, float) and math.isnan(rating) else rating


TaskKind = Literal["inquiry", "projection"]
"""Kind of environment: inquiries play a research tree, projections a disclosure."""


class TaskRef(JsonlRecord):
    """Identity of a task: a research tree for inquiries, a `ProjectionTask` for projections."""

    kind: TaskKind = "inquiry"
    id: str
    version: int
    digest: str


class EmbedderRef(JsonlRecord):
    """Identity of an embedder."""

    name: str
    digest: str


class Header(JsonlRecord):
    """First line: everything that determines an episode except the actions."""

    kind: Literal["header"] = "header"
    log_version: int = LOG_VERSION
    canary: str = CANARY
    versions: dict[str, str | None]
    """Versions of Python and of the packages that affect an episode; None for a package that is not installed."""
    task: TaskRef
    rules: dict[str, Any]
    """All rules; those of an inquiry have the threshold as a number."""
    seed: int
    """Seed of the episode, which determines the fake results of an inquiry."""
    embedder: EmbedderRef | None
    """Embedder that reads the actions; None if no embedder reads them, as in logs of projections."""
    judge: dict[str, Any] | None = Field(default=None, exclude_if=is_none)
    """Name, version and settings of the judge of projections, which sets the reward of every turn. None, and not
    written, for an inquiry, in which only the conclusion is judged; see `Footer.judge`."""
    reader: dict[str, Any] | None = None
    """Configuration of the reader that was asked about actions; None where the embedder read them."""
    prompts: str
    """SHA-256 of the templates."""
    agent: dict[str, Any]
    """Configuration of the agent; holds at least its name when played by `play`."""
    started: str
    """UTC time, ISO 8601."""

    @property
    def inquiry_embedder(self) -> EmbedderRef:
        """The embedder that reads the actions of an inquiry.

        Raises:
            LogError: this is the header of another kind of environment.
        """
        if self.embedder is None:
            raise LogError(f"the episode on {self.task.id} is not an inquiry read by an embedder; {OTHER_KIND}")
        return self.embedder


class ReadingRecord(JsonlRecord):
    """Interpretation of an action."""

    candidate: str | None
    """Id of the most similar candidate."""
    similarity: float
    decision: str
    margin: float | None
    top: tuple[tuple[str, float], ...]


class EventRecord(JsonlRecord):
    """Outcome of an action."""

    kind: str
    """Kind of the next observation: ``result``, ``subtopic_hint``, …"""
    state: str
    """Phase of the next action."""
    node: str | None
    """Id of the subtopic or study in the next observation."""
    fake: int
    """Result shown: 0 for the true one, i for the i-th fake."""
    accepted: bool
    forced: bool
    hint_level: int
    """Level of the hint in the next observation; 0 for none."""
    limit: bool
    """True if this action reached the turn limit."""
    reason: str
    """Reason for a rejected action; ``none`` otherwise."""
    decision: str
    """The decision as taken."""
    other: str | None = None
    """Id of the second of two candidates, ``node`` being the nearest; None unless the observation asks for one."""
    wording: int = Field(default=0, exclude_if=not_)
    """Wording of a true result: 0 as the tree has it, which is not written, i for its i-th rewording."""


Rating = Annotated[Annotated[float, Field(ge=-1, le=1)] | None, BeforeValidator(nan_to_none)]
"""Rating of two claims in [-1, 1]; None for a pair that was not rated. NaN is taken as None and written as null."""


class AlignmentRecord(JsonlRecord):
    """Claims of a projection, and their ratings against the M claims of the true outcome.

    All fields are empty if the judge could not find the claims.
    """

    analogous: tuple[str | None, ...]
    """Shape (M,): the projected claim that is analogous to each true claim; None for none."""
    extraneous: tuple[str, ...]
    """Shape (E,): extraneous claims, those that are analogous to no true claim."""
    pair_ratings: tuple[tuple[Rating, Rating], ...]
    """Shape (M, 2): ratings of the pairs in both orders; None if there is no analogous claim or no readable rating."""
    extra_ratings: tuple[tuple[tuple[Rating, Rating], ...], ...]
    """Shape (E, M, 2): ratings of each extraneous claim against every true claim."""
    f1: float | None = Field(ge=0, le=1)
    """F1 in [0, 1]; None for an unscored projection, whose reward is 0 and which reports count apart."""
    reasons: tuple[str, ...] = ()
    """Reasons of the pairs' ratings, one per true claim; empty if the judge gives none."""

    @model_validator(mode="after")
    def _has_a_rating_for_every_pair(self) -> Self:
        claims = len(self.analogous)
        rows = [len(self.pair_ratings) - claims, *(len(each) - claims for each in self.extra_ratings)]
        if any(rows) or len(self.extra_ratings) != len(self.extraneous):
            raise ValueError("the ratings do not have one entry for each claim")
        return self


class ProjectionRecord(AlignmentRecord):
    """Record of one turn of projections: the level, and the alignment of the projection."""

    kind: Literal["projection"] = "projection"
    level: str
    """Level of the disclosure that the action answered."""
    state: str
    """Phase of the next action: ``project``, or ``end``."""


class Reply(JsonlRecord):
    """Reply of a model, written before it is used."""

    kind: Literal["reply"] = "reply"
    turn: int
    """Turn whose action it is for."""
    role: str
    """Purpose: ``proposer`` for the agent's move, ``correction`` for the same after a malformed reply, ``sceptic`` for
    a second opinion, ``reader`` and ``judge`` for the environment's reading of the action and grades of the
    conclusion."""
    text: str
    """The raw reply."""
    finish_reason: str
    """The service's word: ``stop``, ``length``, …"""
    tokens: dict[str, int] | None = None
    """Tokens by kind as counted by the service; None if it did not count."""
    cost: float | None = None
    """US dollars; None if the price is unknown."""
    seconds: float
    """Time from the first request to the reply, waits included."""
    retries: int = 0
    """Failed requests before this reply."""
    cut: int = 0
    """Characters cut off the end."""
    cached: bool = False
    """True for a reply from a cache, which cost nothing."""
    fault: str = ""
    """Fault against the format of its role; empty for a valid reply."""


def _event_tag(event: Any) -> str:
    kind = event.get("kind") if isinstance(event, dict) else getattr(event, "kind", None)
    return "projection" if kind == "projection" else "inquiry"


AnyEvent = Annotated[
    Annotated[EventRecord, Tag("inquiry")] | Annotated[ProjectionRecord, Tag("projection")], Discriminator(_event_tag)
]


class Turn(JsonlRecord):
    """One action and its outcome."""

    kind: Literal["turn"] = "turn"
    turn: int
    """1 for the first action."""
    observation: str
    """Observation before the action."""
    action: str
    reading: ReadingRecord | None
    """Reading of the action; None for a projection, which is not matched with candidates."""
    event: AnyEvent
    reward: float
    terminated: bool
    truncated: bool
    tokens: dict[str, int] | None = None
    """Tokens by kind over the replies of the turn; None if there is none or none was counted."""
    cost: float | None = None
    """US dollars over these replies; None if there is none or a price is unknown."""
    belief: float | None = Field(default=None, ge=0, le=1)
    """Probability, as stated by the agent, that the result in the observation is fake; None without a statement."""
    agent_seconds: float | None = None
    env_seconds: float

    @property
    def inquiry_event(self) -> EventRecord:
        """The event of a turn of an inquiry.

        Raises:
            LogError: this is a turn of another kind of environment.
        """
        if not isinstance(self.event, EventRecord):
            raise LogError(f"turn {self.turn} is a {self.event.kind}, not a turn of an inquiry; {OTHER_KIND}")
        return self.event

    @property
    def inquiry_reading(self) -> ReadingRecord:
        """The reading of a turn of an inquiry; see `inquiry_event`."""
        if self.reading is None:
            raise LogError(f"turn {self.turn} has no reading, so it is no turn of an inquiry; {OTHER_KIND}")
        return self.reading

    @property
    def projection(self) -> ProjectionRecord:
        """The event of a turn of a projection; see `inquiry_event`."""
        if not isinstance(self.event, ProjectionRecord):
            raise LogError(f"turn {self.turn} is a turn of an inquiry, not a projection; {OTHER_KIND}")
        return self.event


class Failure(JsonlRecord):
    """Error that stopped the episode and is not the agent's fault; the episode can be resumed."""

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
    """Judge of the reward: its name, version and settings. None for an episode that did not conclude; see
    `Episode.judge`."""


Record = Header | Reply | Turn | Failure | Footer
