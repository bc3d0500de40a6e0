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
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from typing import Any, Literal, SupportsFloat

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from inquitree_gym import log
from inquitree_gym.engine import Kind, Phase
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.envs.runtime import Transition
from inquitree_gym.errors import LogError, LogExistsError, OptionError
from inquitree_gym.matching import SIMILARITY_TOLERANCE
from inquitree_gym.trees import Tree

_PACKAGES = ("inquitree-gym", "gymnasium", "numpy", "sentence-transformers", "torch")
_OPTIONAL_PACKAGES = ("litellm",)
_NEWER_IS_FINE = {"started", "versions", "log_version"}
"""What a header may have otherwise where an episode is resumed."""
_SUBTOPIC_KINDS = (Kind.SUBTOPIC, Kind.SUBTOPIC_HINT)


class LogEpisodes(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Keeps the episode in memory, and in a file where a folder or file is given.

    With ``folder`` every episode gets a new file there. With ``file`` there is one episode; where that file holds a
    torn one, its turns are expected once more and compared instead of written, and new turns are appended.
    """

    def __init__(
        self,
        env: gym.Env[str, str],
        folder: str | os.PathLike[str] | None = None,
        *,
        file: str | os.PathLike[str] | None = None,
        agent: Mapping[str, Any] | None = None,
    ) -> None:
        """Wrap ``env``; ``agent`` is the agent's configuration, which goes to the header.

        Raises:
            OptionError: both a folder and a file are given.
        """
        if folder is not None and file is not None:
            raise OptionError("give LogEpisodes a folder for many episodes or a file for one, not both")
        RecordConstructorArgs.__init__(self, folder=folder, file=file, agent=agent)
        gym.Wrapper.__init__(self, env)
        if not isinstance(self.unwrapped, InquiryEnv):
            raise OptionError(f"LogEpisodes wraps an InquiryEnv, not {type(self.unwrapped).__name__}")
        self._inquiry: InquiryEnv = self.unwrapped
        self._folder = None if folder is None else Path(folder)
        self._file = None if file is None else Path(file)
        self.names_agent = agent is not None
        """Whether the agent was named here; else `play` names it, episode by episode."""
        self.agent = dict(agent or {"name": "unknown"})
        """Configuration of the agent, for the headers to come."""
        self._header: log.Header | None = None
        self._turns: list[log.Turn] = []
        self._footer: log.Footer | None = None
        self._failure: log.Failure | None = None
        self._expected: deque[log.Turn] = deque()
        self._writer: log.JsonlWriter | None = None
        self._observation = ""
        self._replies: list[log.Reply] = []
        self._agent_seconds: float | None = None

    @property
    def episode(self) -> log.Episode:
        """The episode so far.

        Raises:
            LogError: before the first reset.
        """
        if self._header is None:
            raise LogError("no episode has been started; call reset() first")
        return log.Episode(self._header, tuple(self._turns), self._footer, self._failure, tuple(self._replies))

    @property
    def expected(self) -> log.Turn | None:
        """The logged turn that has to come next while a torn episode is replayed; None after that."""
        return self._expected[0] if self._expected else None

    @property
    def given(self) -> tuple[log.Reply, ...]:
        """The replies that are logged for the next action, by now or before the episode was torn."""
        coming = len(self._turns) + 1
        return tuple(reply for reply in self._replies if reply.turn == coming)

    def add_reply(self, reply: log.Reply) -> None:
        """Log a reply behind the next action: on disk before the action is taken, so that it is never paid twice.

        Raises:
            LogError: it is for another turn than the next, or cannot be written.
        """
        if reply.turn != len(self._turns) + 1:
            raise LogError(f"a reply for turn {reply.turn} was given; the next turn is {len(self._turns) + 1}")
        self._replies.append(reply)
        if self._writer is not None:
            self._writer.write(reply)

    def annotate(self, *, seconds: float) -> None:
        """Tell how many seconds the agent took for the next action."""
        self._agent_seconds = seconds

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode and its log; an episode left before its end is logged as abandoned."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.finish("abandoned")
        self._turns, self._replies, self._footer, self._failure = [], [], None, None
        self._observation, self._agent_seconds = observation, None
        self._header = self._make_header()
        self._open(self._header)
        return observation, info

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take one turn and log it."""
        begun = time.perf_counter()
        observation, reward, terminated, truncated, info = self.env.step(action)
        assert self._inquiry.last_transition is not None
        turn = log.Turn(
            turn=len(self._turns) + 1,
            observation=self._observation,
            action=action,
            reading=_reading(self._inquiry.tree, self._turns, self._inquiry.last_transition),
            event=_event(self._inquiry.tree, self._inquiry.last_transition),
            reward=float(reward),
            terminated=terminated,
            truncated=truncated,
            tokens=_tokens(self.given),
            cost=_cost(self.given),
            agent_seconds=self._agent_seconds,
            env_seconds=time.perf_counter() - begun,
        )
        self._observation, self._agent_seconds = observation, None
        self._record(turn)
        if terminated or truncated:
            self.finish("concluded" if terminated else "truncated")
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """Close the log and the environment; an episode left before its end stays torn, and can be resumed."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        super().close()

    def fail(self, error: str) -> None:
        """Record that the episode stopped for a reason that is not the agent's doing, and close its file."""
        self._failure = log.Failure(error=error, when=_now())
        if self._writer is not None:
            self._writer.write(self._failure)
            self._writer.close()
            self._writer = None

    def _make_header(self) -> log.Header:
        env, tree = self._inquiry, self._inquiry.tree
        return log.Header(
            versions=dict(_versions()),
            tree=log.TreeRef(id=tree.id, version=tree.version, digest=tree.digest),
            rules=env.episode_rules.as_dict(),
            seed=env.state.seed,
            embedder=log.EmbedderRef(name=env.embedder.name, digest=env.embedder.digest),
            prompts=env.prompts.digest,
            agent=json.loads(json.dumps(self.agent)),  # as it will be read back
            started=_now(),
        )

    def _open(self, header: log.Header) -> None:
        self._expected.clear()
        if self._file is not None and self._file.exists():
            self._resume(self._file, header)
        elif self._file is not None:
            self._writer = log.JsonlWriter(self._file)
            self._writer.write(header)
        elif self._folder is not None:
            self._writer = _new_file(self._folder, f"{header.tree.id}-s{header.seed}")
            self._writer.write(header)

    def _resume(self, file: Path, header: log.Header) -> None:
        writer = log.JsonlWriter(file, resume=True)  # which locks it, before what it holds is read
        try:
            torn = self._torn(file, header)
        except LogError:
            writer.close()
            raise
        self._expected.extend(torn.turns)
        self._replies.extend(torn.replies)
        self._writer = writer

    def _torn(self, file: Path, header: log.Header) -> log.Episode:
        torn = log.read_episode(file)
        if torn.footer is not None:
            raise LogError(f"'{file}' holds a whole episode already; choose another file")
        theirs, ours = (each.model_dump(exclude=_NEWER_IS_FINE) for each in (torn.header, header))
        if differing := [name for name in ours if ours[name] != theirs[name]]:
            said = "; ".join(f"{name} was {theirs[name]} and is {ours[name]}" for name in differing)
            raise LogError(f"'{file}' was begun otherwise: {said}. Finish it with the same, or remove it")
        return torn

    def _record(self, turn: log.Turn) -> None:
        if self._expected:
            if not _same(self._expected[0], turn):
                raise LogError(
                    f"turn {turn.turn} came out otherwise than logged; the episode cannot be resumed faithfully"
                )
            self._turns.append(self._expected.popleft())
            return
        self._turns.append(turn)
        if self._writer is not None:
            self._writer.write(turn)

    def finish(self, status: Literal["concluded", "truncated", "abandoned"]) -> None:
        """Write the footer and close the file; nothing happens where no episode is under way."""
        if self._header is None or self._footer is not None:
            return
        self._footer = log.Footer(
            status=status,
            observation=self._observation,
            turns=len(self._turns),
            episode_return=sum(turn.reward for turn in self._turns),
            seconds=sum(turn.env_seconds + (turn.agent_seconds or 0) for turn in self._turns),
        )
        if self._writer is not None:
            if not self._expected:  # a replay broken off leaves the file as torn as it was
                self._writer.write(self._footer)
            self._writer.close()
            self._writer = None


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    """Look the versions up once a process; that takes longer than an episode of a cached agent."""
    found = [("python", platform.python_version()), *((name, version(name)) for name in _PACKAGES)]
    for name in _OPTIONAL_PACKAGES:
        with suppress(PackageNotFoundError):
            found.append((name, version(name)))
    return tuple(found)


def _reading(tree: Tree, before: list[log.Turn], step: Transition) -> log.Reading:
    """Name candidates by id; they are studies where the turn before left the agent at a subtopic."""
    at_subtopic = bool(before) and before[-1].event.state == Phase.SUBTOPIC.name.lower()
    nodes = tree.studies if at_subtopic else tree.subtopics
    reading = step.reading
    return log.Reading(
        candidate=nodes[reading.candidate].id if reading.candidate >= 0 else None,
        similarity=reading.similarity,
        decision=reading.decision.name.lower(),
        margin=reading.margin,
        top=tuple((nodes[index].id, similarity) for index, similarity in reading.top),
    )


def _event(tree: Tree, step: Transition) -> log.Event:
    event = step.event
    nodes = tree.subtopics if event.kind in _SUBTOPIC_KINDS else tree.studies
    return log.Event(
        kind=event.kind.name.lower(),
        state=event.state.phase.name.lower(),
        node=nodes[event.node].id if event.node >= 0 else None,
        fake=event.fake,
        accepted=event.accepted,
        forced=event.forced,
        hint_level=event.hint_level,
        limit=event.limit,
        reason=event.reason.name.lower(),
        decision=event.decision.name.lower(),
    )


def _tokens(replies: Sequence[log.Reply]) -> dict[str, int] | None:
    """Return the sum by kind; None where no service was asked, or none counted."""
    counted = Counter[str]()
    for reply in replies:
        counted.update(reply.tokens or {})
    return dict(counted) or None


def _cost(replies: Sequence[log.Reply]) -> float | None:
    """Return the sum; None where no service was asked, or one of the prices is unknown."""
    costs = [reply.cost for reply in replies]
    return sum(cost for cost in costs if cost is not None) if costs and None not in costs else None


def _same(logged: log.Turn, again: log.Turn) -> bool:
    """Tell whether a replay brought out the same; similarities only so far as every route agrees on them."""
    decisive = {"observation", "action", "event", "reward", "terminated", "truncated"}
    one, other = logged.reading, again.reading
    return (
        logged.model_dump(include=decisive) == again.model_dump(include=decisive)
        and (one.candidate, one.decision) == (other.candidate, other.decision)
        and abs(one.similarity - other.similarity) <= SIMILARITY_TOLERANCE
    )


def _new_file(folder: Path, stem: str) -> log.JsonlWriter:
    for number in count(1):
        path = folder / (f"{stem}.jsonl" if number == 1 else f"{stem}-{number}.jsonl")
        with suppress(LogExistsError):  # by trying, since other processes may write to the same folder
            return log.JsonlWriter(path)
    raise AssertionError("unreachable")


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
