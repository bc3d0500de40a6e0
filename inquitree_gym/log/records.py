"""Records of an episode log, one per line, and their reading."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from operator import not_
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from inquitree_gym.errors import LogError
from inquitree_gym.log.jsonl import JsonlRecord, read_lines
from inquitree_gym.trees.fields import CANARY

LOG_VERSION = 4
"""Version 1 had no `Reply`; a turn held the raw reply behind its action. Version 2 had no `EventRecord.other`, 3 had no
`Footer.judge` and no `Turn.belief`. Rules that a header does not name have the values of `Rules.recorded`. All versions
are read."""


FIRST_JUDGE = {"name": "local", "version": 1}
"""Judge of the rewards in logs up to version 3, which do not name it."""


class TreeRef(JsonlRecord):
    """Identity of a tree."""

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
    tree: TreeRef
    rules: dict[str, Any]
    """All rules, the threshold as a number."""
    seed: int
    """Seed of the episode, which determines its fake results."""
    embedder: EmbedderRef
    reader: dict[str, Any] | None = None
    """Configuration of the reader that was asked about actions; None where the embedder read them."""
    prompts: str
    """SHA-256 of the templates."""
    agent: dict[str, Any]
    """Configuration of the agent; holds at least its name when played by `play`."""
    started: str
    """UTC time, ISO 8601."""


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


class Turn(JsonlRecord):
    """One action and its outcome."""

    kind: Literal["turn"] = "turn"
    turn: int
    """1 for the first action."""
    observation: str
    """Observation before the action."""
    action: str
    reading: ReadingRecord
    event: EventRecord
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
    """Judge of the reward: its name, version and settings. None without a conclusion; see `Episode.judge`."""


Record = Header | Reply | Turn | Failure | Footer
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
    """Failure at the end of a torn episode."""
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
        """Judge of the reward, the first local judge for a log that names none; None without a conclusion."""
        if self.footer is None or self.footer.status != "concluded":
            return None
        return self.footer.judge or FIRST_JUDGE

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


_RECORD: TypeAdapter[Record] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])
MAX_HEADER = 1_000_000
"""Largest header, in bytes; a first line beyond it belongs to another kind of file."""
_REMEDY = "the line is damaged: bring the file back, or remove it"


def read_episode(path: str | os.PathLike[str]) -> Episode:
    """Read one log; a torn last line is left out.

    Raises:
        LogError: the file is missing, a line is damaged, the log is newer than this release, or it has no header.
    """
    file = Path(path)
    parser = _Parser(file)
    records = [record for parsed in read_lines(file, parser.parse, remedy=_REMEDY) for record in parsed]
    if not records or not isinstance(records[0], Header):
        raise LogError(
            f"'{file}' has no header line; it is not an episode log, or was torn before its first turn: remove it"
        )
    turns, replies = _in_order(file, records)
    last = records[-1]
    footer = last if isinstance(last, Footer) else None
    return Episode(records[0], turns, footer, last if isinstance(last, Failure) else None, replies)


def read_header(path: str | os.PathLike[str]) -> Header:
    """Read the header of a log alone.

    Raises:
        LogError: the path is no regular file or cannot be read, its first line is no header, or the log is newer than
            this release.
    """
    file = Path(path)
    try:
        if file.exists() and not file.is_file():
            raise LogError(f"'{file}' is no regular file")
        with file.open("rb") as stream:
            line = stream.readline(MAX_HEADER)
    except OSError as error:
        raise LogError(f"cannot read '{file}': {error.strerror}") from error
    if not line.endswith(b"\n"):
        raise LogError(f"'{file}' is no episode log: it has no whole first line")
    try:
        (header,) = _Parser(file).parse(json.loads(line))
    except (ValueError, RecursionError):
        raise LogError(f"'{file}' is no episode log: its first line is no header") from None
    if not isinstance(header, Header):
        raise LogError(f"'{file}' is no episode log: its first line is no header")
    return header


class _Parser:
    """Parse the lines of one file, whose header gives their version."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._version = LOG_VERSION

    def parse(self, document: Any) -> list[Record]:
        replies: list[Record] = []
        if isinstance(document, dict):
            self._version = self._checked(document.get("log_version", self._version))
            if self._version == 1 and document.get("reply") is not None:
                replies.append(_reply_of_version_1(document))
            if self._version == 1:
                document.pop("reply", None)
        return [*replies, _RECORD.validate_python(document)]

    def _checked(self, version: Any) -> Any:
        if isinstance(version, int) and version > LOG_VERSION:
            raise LogError(
                f"'{self._file}' has log version {version}; this release reads up to {LOG_VERSION}: "
                "update inquitree-gym"
            )
        return version


def _reply_of_version_1(turn: dict[str, Any]) -> Reply:
    """Return the raw reply of a turn as a record."""
    return Reply(
        turn=turn.get("turn", 0),
        role="proposer",
        text=turn["reply"],
        finish_reason="",
        tokens=turn.get("tokens"),
        cost=turn.get("cost"),
        seconds=turn.get("agent_seconds") or 0.0,
    )


def _in_order(file: Path, records: Sequence[Record]) -> tuple[tuple[Turn, ...], tuple[Reply, ...]]:
    """Return the turns, numbered from 1, and the replies, each of which precedes its turn."""
    turns: list[Turn] = []
    replies: list[Reply] = []
    for record in records:
        if isinstance(record, Turn | Reply):
            if record.turn != len(turns) + 1:
                raise LogError(f"'{file}' has a {record.kind} {record.turn} after turn {len(turns)}; it is damaged")
            (turns if isinstance(record, Turn) else replies).append(record)  # type: ignore[arg-type]
    return tuple(turns), tuple(replies)
