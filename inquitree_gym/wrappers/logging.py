"""Write every episode to a log as it happens."""

from __future__ import annotations

import datetime
import json
import os
import platform
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from typing import Any, Literal, SupportsFloat

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from inquitree_gym import log
from inquitree_gym.envs.episode_records import unwrap_records
from inquitree_gym.errors import LogError, LogExistsError, OptionError
from inquitree_gym.files import name_file
from inquitree_gym.log import Episode, Header, Turn, read_episode
from inquitree_gym.log.jsonl import JsonlRecord

Message = dict[str, str]


class Transcript(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Record the episode as chat messages: observations with the role user, actions with the role assistant."""

    def __init__(self, env: gym.Env[str, str], *, system: str | None = None, keep: int | None = None) -> None:
        """Wrap ``env``.

        Args:
            env: the environment.
            system: text of the system message that comes first. None for none.
            keep: number of latest exchanges (an action and its observation) kept after the opening. None for all.

        Raises:
            OptionError: ``keep`` is no integer from 0.
        """
        if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 0):
            raise OptionError(f"keep must be an integer from 0 or None, got {keep!r}")
        RecordConstructorArgs.__init__(self, system=system, keep=keep)
        gym.Wrapper.__init__(self, env)
        self._head: list[Message] = []
        self._exchanges: list[tuple[Message, Message]] = []
        self._system = system
        self._keep = keep

    @property
    def messages(self) -> list[Message]:
        """Messages so far, oldest first, as a new list of dicts with ``role`` and ``content``."""
        dropped = 0 if self._keep is None else max(0, len(self._exchanges) - self._keep)
        kept = self._exchanges[dropped:]
        return [dict(message) for message in (*self._head, *(message for pair in kept for message in pair))]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode and a new transcript. See `TextEnv.reset`."""
        observation, info = self.env.reset(seed=seed, options=options)
        system = [] if self._system is None else [{"role": "system", "content": self._system}]
        self._head = [*system, {"role": "user", "content": observation}]
        self._exchanges = []
        return observation, info

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take one turn. See the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._exchanges.append(({"role": "assistant", "content": action}, {"role": "user", "content": observation}))
        return observation, reward, terminated, truncated, info


_NOT_COMPARED = {"started", "versions", "log_version"}
"""Fields of a header that may differ when an episode is resumed."""


def read_torn(file: Path, header: Header) -> Episode[Any]:
    """Return the episode in a file that is to be resumed by one with ``header``.

    Raises:
        LogError: the file is damaged, or holds a complete episode or one with other settings.
    """
    torn = read_episode(file)
    if torn.footer is not None:
        raise LogError(f"'{file}' holds a complete episode; choose another file")
    recorded, current = _settings(torn.header), _settings(header)
    names = current | recorded
    if differing := [name for name in names if current.get(name) != recorded.get(name)]:
        listed = "; ".join(f"{name}: recorded {recorded.get(name)}, now {current.get(name)}" for name in differing)
        raise LogError(
            f"Cannot resume '{file}': recorded settings differ ({listed}). Resume with the recorded settings or the "
            "release that wrote the file, or remove it to play the episode anew"
        )
    return torn


def _settings(header: Header) -> dict[str, Any]:
    """Return what determines an episode, by name. The settings of the kind's setup stand beside the common ones."""
    settings = header.model_dump(exclude=_NOT_COMPARED)
    return _without_limits({**settings, **settings.pop("setup")})


def _without_limits(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings without the lengths of replies. A reply that ends by itself is the same under any of them."""
    kept = {name: value for name, value in settings.items() if name != "max_tokens"}
    return {name: _without_limits(value) if isinstance(value, dict) else value for name, value in kept.items()}


def agree(logged: Turn[Any], replayed: Turn[Any]) -> bool:
    """Tell whether a replayed turn matches the log. The kind of environment compares the events."""
    exact = {"observation", "action", "reward", "terminated", "truncated"}
    same = logged.model_dump(include=exact) == replayed.model_dump(include=exact)
    return same and logged.event.matches(replayed.event)


_PACKAGES = ("inquitree-gym", "gymnasium", "numpy", "sentence-transformers", "torch", "litellm")


class LogEpisodes(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Log episodes in memory, and in files if a folder or a file is given.

    With ``folder`` every episode gets a new file. With ``file`` there is one episode. If the file holds a torn one, its
    turns are replayed and compared, and new turns are appended. Texts are logged in any order of wrappers: a numbered
    action by its text, an observation in numbers by the text that the environment shows.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        folder: str | os.PathLike[str] | None = None,
        *,
        file: str | os.PathLike[str] | None = None,
        agent: Mapping[str, Any] | None = None,
    ) -> None:
        """Wrap ``env``. ``agent`` is the agent's configuration for the headers.

        Raises:
            OptionError: the episodes of ``env`` cannot be recorded, or both a folder and a file are given.
        """
        if folder is not None and file is not None:
            raise OptionError("give LogEpisodes a folder for many episodes or a file for one, not both")
        RecordConstructorArgs.__init__(self, folder=folder, file=file, agent=agent)
        gym.Wrapper.__init__(self, env)
        self.records = unwrap_records(self)
        """Records of the wrapped environment."""
        self._folder = None if folder is None else Path(folder)
        self._file = None if file is None else Path(file)
        self.names_agent = agent is not None
        """True if the agent was named here. Otherwise `play` names it for each episode."""
        self.agent = dict(agent or {"name": "unknown"})
        """Configuration of the agent for the next headers."""
        self._header: log.Header | None = None
        self._turns: list[log.Turn[Any]] = []
        self._footer: log.Footer | None = None
        self._failure: log.Failure | None = None
        self._expected: deque[log.Turn[Any]] = deque()
        self._writer: log.JsonlWriter | None = None
        self._log_file = self._file
        self._observation = ""
        self._replies: list[log.Reply] = []
        self._agent_seconds: float | None = None
        self._stated: dict[str, float] = {}

    @property
    def log_file(self) -> Path | None:
        """File of the newest episode. None without one."""
        return self._log_file

    @property
    def episode(self) -> log.Episode[Any]:
        """The episode so far.

        Raises:
            LogError: before the first reset.
        """
        if self._header is None:
            raise LogError("no episode has been started; call reset() first")
        return log.Episode(self._header, tuple(self._turns), self._footer, self._failure, tuple(self._replies))

    @property
    def expected(self) -> log.Turn[Any] | None:
        """The next logged turn while a torn episode is replayed. None otherwise."""
        return self._expected[0] if self._expected else None

    @property
    def given(self) -> tuple[log.Reply, ...]:
        """The logged replies for the next action, including those from before the episode was torn."""
        coming = len(self._turns) + 1
        return tuple(reply for reply in self._replies if reply.turn == coming)

    def add_reply(self, reply: log.Reply) -> None:
        """Log a reply for the next action, before the action is taken, so that it is never paid for twice.

        Raises:
            LogError: it is for another turn, or cannot be written.
        """
        if reply.turn != len(self._turns) + 1:
            raise LogError(f"a reply for turn {reply.turn} was given; the next turn is {len(self._turns) + 1}")
        self._replies.append(reply)
        self._write(reply)

    def annotate(self, *, seconds: float, stated: Mapping[str, float] | None = None) -> None:
        """Set the seconds that the agent took for the next action, and what it stated. See `Turn.stated`."""
        self._agent_seconds, self._stated = seconds, dict(stated or {})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode and its log. An unfinished episode is logged as abandoned.

        Raises:
            LogError: the file holds a complete episode or one with other settings, or cannot be written.
        """
        observation, info = self.env.reset(seed=seed, options=options)
        self.finish("abandoned")
        self._turns, self._replies, self._footer, self._failure = [], [], None, None
        self._observation, self._agent_seconds, self._stated = self._text(observation), None, {}
        self._header = self._make_header()
        self._open(self._header)
        return observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take one turn and log it.

        Raises:
            LogError: the turn cannot be written, or a replay diverges from the log.
        """
        if self.expected is not None:
            self.records.recall(self.expected)
        started = time.perf_counter()
        observation, reward, terminated, truncated, info = self.env.step(action)
        seconds = time.perf_counter() - started
        self._add_service_replies()
        taken = self.records.last_step()
        turn: log.Turn[Any] = log.Turn(
            turn=len(self._turns) + 1,
            observation=self._observation,
            action=action if isinstance(action, str) else taken.action,
            event=taken.event,
            reward=float(reward),
            terminated=bool(terminated),
            truncated=bool(truncated),
            tokens=_tokens(self.given),
            cost=_cost(self.given),
            stated=self._stated,
            agent_seconds=self._agent_seconds,
            env_seconds=seconds,
        )
        self._observation, self._agent_seconds, self._stated = self._text(observation), None, {}
        self._record(turn)
        if terminated or truncated:
            self.finish("concluded" if terminated else "truncated")
        return observation, reward, terminated, truncated, info

    def _add_service_replies(self) -> None:
        for role, reply, fault in self.records.replies():
            values = asdict(reply) | {"tokens": reply.tokens or None}
            self.add_reply(log.Reply(turn=len(self._turns) + 1, role=role, fault=fault, **values))

    def finish(self, status: Literal["concluded", "truncated", "abandoned"]) -> None:
        """Write the footer and close the file. Do nothing without an unfinished episode."""
        if self._header is None or self._footer is not None:
            return
        self._footer = log.Footer(
            status=status,
            observation=self._observation,
            turns=len(self._turns),
            episode_return=sum(turn.reward for turn in self._turns),
            seconds=sum(turn.env_seconds + (turn.agent_seconds or 0) for turn in self._turns),
            judge=_as_read_back(self.records.judge()) if status == "concluded" else None,
        )
        if not self._expected:  # an unfinished replay leaves the file as torn as it was
            self._write(self._footer)
        self._close_file()

    def fail(self, error: str) -> None:
        """Log an error that is not the agent's fault, and close the file. The episode can be resumed."""
        self._failure = log.Failure(error=error, when=_now())
        self._write(self._failure)
        self._close_file()

    def close(self) -> None:
        """Close the log and the environment. An unfinished episode stays torn and can be resumed."""
        self._close_file()
        super().close()

    def _text(self, observation: Any) -> str:
        """Return the observation as text. For a view in numbers, return the text behind it."""
        return observation if isinstance(observation, str) else self.records.observation()

    def _make_header(self) -> log.Header:
        return self.records.header(agent=_as_read_back(self.agent), versions=dict(_versions()), started=_now())

    def _open(self, header: log.Header) -> None:
        self._expected.clear()
        if self._file is not None and self._file.exists():
            self._resume(self._file, header)
        elif self._file is not None:
            self._writer = log.JsonlWriter(self._file, header=header)
        elif self._folder is not None:
            self._writer = _new_file(self._folder, f"{header.task.id}-s{header.seed}", header)
            self._log_file = self._writer.path

    def _resume(self, file: Path, header: log.Header) -> None:
        writer = log.JsonlWriter(file, resume=True)  # locks the file before it is read
        try:
            torn = read_torn(file, header)
        except LogError:
            writer.close()
            raise
        self._header = header.model_copy(update={"started": torn.header.started})
        self._expected.extend(torn.turns)
        self._replies.extend(torn.replies)
        self._writer = writer

    def _record(self, turn: log.Turn[Any]) -> None:
        if not self._expected:
            self._turns.append(turn)
            self._write(turn)
        elif agree(self._expected[0], turn):
            self._turns.append(self._expected.popleft())
        else:
            raise LogError(
                f"Replay diverged from the log at turn {turn.turn}; resume with the release, models and agent that "
                "wrote it, or remove the log"
            )

    def _write(self, record: JsonlRecord) -> None:
        if self._writer is not None:
            self._writer.write(record)

    def _close_file(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _as_read_back(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as a log gives them back."""
    return dict(json.loads(json.dumps(dict(settings))))


@cache
def _versions() -> tuple[tuple[str, str | None], ...]:
    """Look up versions once per process, since that takes longer than a short episode. None for absent packages."""
    return ("python", platform.python_version()), *((name, _version(name)) for name in _PACKAGES)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _tokens(replies: Sequence[log.Reply]) -> dict[str, int] | None:
    """Return the sum by kind. None without a counted reply."""
    counted = Counter[str]()
    for reply in replies:
        counted.update(reply.tokens or {})
    return dict(counted) or None


def _cost(replies: Sequence[log.Reply]) -> float | None:
    """Return the sum. None without a reply, or if one has no price."""
    costs = [reply.cost for reply in replies]
    return sum(cost for cost in costs if cost is not None) if costs and None not in costs else None


def _new_file(folder: Path, stem: str, header: log.Header) -> log.JsonlWriter:
    for number in count(1):
        path = folder / name_file(stem if number == 1 else f"{stem}-{number}", ".jsonl")
        with suppress(LogExistsError):  # by trying, since other processes may write to the same folder
            return log.JsonlWriter(path, header=header)
    raise AssertionError("unreachable")


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
