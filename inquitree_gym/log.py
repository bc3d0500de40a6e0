"""The episode log: one JSON Lines file per episode, the waist between playing and judging.

A header, then one line per turn, appended and flushed as it happens, then a footer. A file without a footer is torn: it
can be resumed by replaying its actions, and is never scored. A last line cut off in the middle is dropped on reading.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from inquitree_gym.errors import LogError, LogExistsError
from inquitree_gym.trees.schema import CANARY

try:
    import fcntl
except ImportError:  # on Windows, which has no such locks
    fcntl = None  # type: ignore[assignment]

LOG_VERSION = 1


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


class Turn(_Record):
    """One action and what came of it."""

    kind: Literal["turn"] = "turn"
    turn: int
    """1 for the first action."""
    observation: str
    """What the agent read before it acted."""
    reply: str | None
    """The raw reply behind the action, where there is one."""
    action: str
    reading: Reading
    event: Event
    reward: float
    terminated: bool
    truncated: bool
    tokens: dict[str, int] | None = None
    """Tokens by kind, as the service counted them."""
    cost: float | None = None
    """US dollars; None where the price is unknown or nothing was paid."""
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


Record = Header | Turn | Failure | Footer
_RECORD: TypeAdapter[Record] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])
_CIRCUMSTANCES = {"started", "agent_seconds", "env_seconds", "seconds", "versions", "agent", "reply", "tokens", "cost"}
"""What does not decide what happens: clocks, package versions, and what stands behind the actions."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One episode as logged."""

    header: Header
    turns: tuple[Turn, ...]
    footer: Footer | None = None
    failure: Failure | None = None
    """The failure that a torn episode ended with, if one was recorded."""

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

    @property
    def fingerprint(self) -> str:
        """SHA-256 over what was played: equal for an episode and its replay, by whoever replays it.

        Leaves out clocks, package versions and what stands behind the actions (agent, reply, tokens, cost).
        """
        whole = hashlib.sha256()
        for record in filter(None, (self.header, *self.turns, self.footer)):
            kept = record.model_dump(exclude=_CIRCUMSTANCES)
            whole.update(json.dumps(kept, sort_keys=True).encode())
        return whole.hexdigest()


def to_line(record: Record) -> str:
    """Return one line of JSON, ASCII only, so that any string an agent may write survives."""
    return json.dumps(record.model_dump(mode="python"), ensure_ascii=True, separators=(",", ":")) + "\n"


def is_begun(path: str | os.PathLike[str]) -> bool:
    """Tell whether a log is there and has a whole first line; one torn before that holds nothing."""
    try:
        with Path(path).open("rb") as stream:
            return stream.readline().endswith(b"\n")
    except FileNotFoundError:
        return False


def read_episode(path: str | os.PathLike[str]) -> Episode:
    """Read one log.

    Raises:
        LogError: the file is missing, or a line other than a torn last one is at fault.
    """
    file = Path(path)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise LogError(f"cannot read the log '{file}': {error.strerror}") from error
    records = list(_records(file, content))
    if not records or not isinstance(records[0], Header):
        raise LogError(
            f"'{file}' has no header line; it is no episode log, or was torn before its first turn: remove it"
        )
    turns = tuple(record for record in records if isinstance(record, Turn))
    if [turn.turn for turn in turns] != list(range(1, len(turns) + 1)):
        raise LogError(f"'{file}' has turns {[turn.turn for turn in turns]}; expected 1, 2, 3, …")
    last = records[-1]
    footer = last if isinstance(last, Footer) else None
    return Episode(records[0], turns, footer, last if isinstance(last, Failure) else None)


def _records(file: Path, content: bytes) -> Iterator[Record]:
    *lines, _torn = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            # Not pydantic's own JSON reader: it refuses the lone surrogates that an agent may write.
            document = json.loads(line)
            _refuse_newer(file, document)
            yield _RECORD.validate_python(document)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise _damaged(file, number, f"{first['msg']} at {place}" if place else first["msg"]) from None
        except (ValueError, RecursionError) as error:
            raise _damaged(file, number, f"not JSON ({error})") from None


def _refuse_newer(file: Path, document: Any) -> None:
    found = document.get("log_version", 0) if isinstance(document, dict) else 0
    if isinstance(found, int) and found > LOG_VERSION:
        raise LogError(
            f"'{file}' has log version {found}; this release reads up to {LOG_VERSION}: update inquitree-gym"
        )


def _damaged(file: Path, line: int, fault: str) -> LogError:
    return LogError(f"'{file}', line {line}: {fault}; the line is damaged: bring the file back, or remove it")


class EpisodeWriter:
    """Appends records to a file, each flushed to the system before the next action is taken."""

    def __init__(self, path: str | os.PathLike[str], *, resume: bool = False) -> None:
        """Open a new file; with ``resume`` an existing one, cut back to its last whole line.

        Raises:
            LogExistsError: the file exists, without ``resume``.
            LogError: the file cannot be written.
        """
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self.path.open("a" if resume else "x", encoding="ascii")
            self._lock()
            if resume:
                _drop_torn_line(self.path)
        except OSError as error:
            if self.path.exists() and not resume:
                raise LogExistsError(
                    f"'{self.path}' exists already; logs are never overwritten: choose another place"
                ) from error
            raise self._error(error) from error

    def write(self, record: Record) -> None:
        """Append one record.

        Raises:
            LogError: the disk is full or the file cannot be written, which closes it; lines written before are safe.
        """
        if self._stream.closed:
            raise LogError(f"the log '{self.path}' is closed; open another writer to go on")
        try:
            self._stream.write(to_line(record))
            self._stream.flush()
        except OSError as error:
            with suppress(OSError):
                self._stream.close()
            raise self._error(error) from error

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        try:
            self._stream.close()
        except OSError as error:
            raise self._error(error) from error

    def _lock(self) -> None:
        """Keep other processes from writing to the file until this one closes it or ends, however it ends."""
        if fcntl is None:
            return
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._stream.close()
            raise LogError(
                f"another process is writing the log '{self.path}'; wait until it is done, or choose another folder"
            ) from error

    def _error(self, error: OSError) -> LogError:
        return LogError(
            f"cannot write the log '{self.path}': {error.strerror}; what was logged before is safe. "
            f"Free some space or choose another folder, then run the same command again to resume"
        )


def _drop_torn_line(path: Path) -> None:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
