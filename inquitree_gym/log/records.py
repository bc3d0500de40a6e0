"""What stands in an episode log, line by line."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from inquitree_gym.trees.schema import CANARY

LOG_VERSION = 2
"""1 had no `Reply`: a turn held the raw reply behind its action. Both are read."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TreeRef(_Record):
    """Which tree was played."""

    id: str
    version: int
    digest: str


class EmbedderRef(_Record):
    """Which embedder read the actions."""

    name: str
    digest: str


class Header(_Record):
    """Everything that fixes an episode, but for the actions."""

    kind: Literal["header"] = "header"
    log_version: int = LOG_VERSION
    canary: str = CANARY
    versions: dict[str, str]
    """Versions of the packages that decide what happens."""
    tree: TreeRef
    rules: dict[str, Any]
    """All rules, τ as a number."""
    seed: int
    """Seed of the episode, which keys its fake results."""
    embedder: EmbedderRef
    prompts: str
    """SHA-256 of the templates."""
    agent: dict[str, Any]
    """Configuration of the agent; holds at least its name when played by `play`."""
    started: str
    """UTC time, ISO 8601."""


class Reading(_Record):
    """What the action was understood as."""

    candidate: str | None
    """Id of the most similar candidate."""
    similarity: float
    decision: str
    margin: float | None
    top: tuple[tuple[str, float], ...]


class Event(_Record):
    """What the action led to."""

    kind: str
    """What is shown next: ``result``, ``subtopic_hint``, …"""
    state: str
    """The phase that the next action is taken in."""
    node: str | None
    """Id of the subtopic or study that is shown."""
    fake: int
    """For a result: 0 the true one, i the i-th fake."""
    accepted: bool
    forced: bool
    hint_level: int
    """Level of the hint shown next; 0 for none."""
    limit: bool
    """Whether the turn limit struck with this action."""
    reason: str
    """Why the action was not accepted."""
    decision: str
    """The decision as taken."""


class Reply(_Record):
    """What a service answered, on disk before anything comes of it."""

    kind: Literal["reply"] = "reply"
    turn: int
    """The turn that it is for."""
    role: str
    """What it was asked for: ``proposer`` the agent's move, ``correction`` the same after a malformed reply,
    ``sceptic`` a second opinion."""
    text: str
    """The raw reply."""
    finish_reason: str
    """Why it ended, in the service's word."""
    tokens: dict[str, int] | None = None
    """Tokens by kind, as the service counted them."""
    cost: float | None = None
    """US dollars; None where the price is unknown."""
    seconds: float
    """From the first request to the answer, waits included."""
    retries: int = 0
    """Requests that failed before."""
    cut: int = 0
    """Characters that were cut off because there were too many."""
    cached: bool = False
    """Whether it came from a cache of replies and was not paid for now."""
    fault: str = ""
    """How it breaks the agent's protocol; empty where it keeps it."""


class Turn(_Record):
    """One action and what came of it."""

    kind: Literal["turn"] = "turn"
    turn: int
    """1 for the first action."""
    observation: str
    """What the agent read before it acted."""
    action: str
    reading: Reading
    event: Event
    reward: float
    terminated: bool
    truncated: bool
    tokens: dict[str, int] | None = None
    """Tokens by kind, summed over the replies behind the action; None where no service was asked, or did not count."""
    cost: float | None = None
    """US dollars, summed likewise; None where nothing was asked, or the price of one of them is unknown."""
    agent_seconds: float | None = None
    env_seconds: float


class Failure(_Record):
    """The episode stopped for a reason that is not the agent's doing; it can be resumed."""

    kind: Literal["failure"] = "failure"
    error: str
    when: str


class Footer(_Record):
    """The episode ended."""

    kind: Literal["footer"] = "footer"
    status: Literal["concluded", "truncated", "abandoned"]
    observation: str
    """What stood after the last action."""
    turns: int
    episode_return: float
    """Sum of rewards, undiscounted."""
    seconds: float


Record = Header | Reply | Turn | Failure | Footer
_CIRCUMSTANCES = {
    "log_version", "started", "agent_seconds", "env_seconds", "seconds", "versions", "agent", "tokens", "cost",
}  # fmt: skip
"""What does not decide what happens: clocks, versions, and what stands behind the actions."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One episode as logged."""

    header: Header
    turns: tuple[Turn, ...]
    footer: Footer | None = None
    failure: Failure | None = None
    """The failure that a torn episode ended with, if one was recorded."""
    replies: tuple[Reply, ...] = ()
    """Every reply of a service, in order; those of a turn that was not played any more stand last."""

    @property
    def status(self) -> str:
        """``concluded``, ``truncated``, ``abandoned``; without a footer ``failed`` or ``torn``."""
        if self.footer is not None:
            return self.footer.status
        return "torn" if self.failure is None else "failed"

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions in order."""
        return tuple(turn.action for turn in self.turns)

    def replies_to(self, turn: int) -> tuple[Reply, ...]:
        """Return the replies behind the action of a turn, 1 for the first."""
        return tuple(reply for reply in self.replies if reply.turn == turn)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over what was played: equal for an episode and its replay, by whoever replays it.

        Leaves out clocks, versions and what stands behind the actions (agent, replies, tokens, cost).
        """
        whole = hashlib.sha256()
        for record in filter(None, (self.header, *self.turns, self.footer)):
            kept = record.model_dump(exclude=_CIRCUMSTANCES)
            whole.update(json.dumps(kept, sort_keys=True).encode())
        return whole.hexdigest()
