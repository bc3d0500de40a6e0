"""`Episode`: the records of one log."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from inquitree_gym.log.records import Failure, Footer, Header, ProjectionRecord, Reply, Turn

FIRST_JUDGE = {"name": "local", "version": 1}
"""Judge of the rewards in logs up to version 3, which do not name the judge."""
_CIRCUMSTANCES = {
    "log_version", "started", "agent_seconds", "env_seconds", "seconds", "versions", "agent", "tokens", "cost",
    "judge", "belief",
}  # fmt: skip
"""Fields outside the fingerprint: clocks, versions, the judge (its reward is inside), and the origin of the actions."""


@dataclass(frozen=True, slots=True)
class Episode:
    """A logged episode."""

    header: Header
    turns: tuple[Turn, ...]
    footer: Footer | None = None
    failure: Failure | None = None
    """Failure that ended a torn episode."""
    replies: tuple[Reply, ...] = ()
    """All replies in order; those for a turn that was never taken come last."""

    @property
    def status(self) -> str:
        """``concluded``, ``truncated`` or ``abandoned``; without a footer ``failed`` or ``torn``."""
        if self.footer is not None:
            return self.footer.status
        return "torn" if self.failure is None else "failed"

    @property
    def judge(self) -> dict[str, Any] | None:
        """Judge of the reward, version 1 of the local judge for a log that names none; None without a conclusion."""
        if self.footer is None or self.footer.status != "concluded":
            return None
        return self.footer.judge or FIRST_JUDGE

    @property
    def unscored(self) -> int:
        """Number of projections that the judge could not score; 0 for an inquiry."""
        return sum(isinstance(turn.event, ProjectionRecord) and turn.event.f1 is None for turn in self.turns)

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions in order."""
        return tuple(turn.action for turn in self.turns)

    def replies_to(self, turn: int) -> tuple[Reply, ...]:
        """Return the replies behind the action of a turn, 1 for the first."""
        return tuple(reply for reply in self.replies if reply.turn == turn)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the played episode, equal for an episode and its replay by any agent.

        Excludes clocks, versions and the origin of the actions (agent, replies, tokens, cost, beliefs).
        """
        whole = hashlib.sha256()
        for record in filter(None, (self.header, *self.turns, self.footer)):
            kept = record.model_dump(exclude=_CIRCUMSTANCES)
            whole.update(json.dumps(kept, sort_keys=True).encode())
        return whole.hexdigest()
