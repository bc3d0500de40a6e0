"""Session: one episode that code outside the package plays move by move, such as a trainer or a client of a server."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from inquitree_gym.baselines.conversation import read_tool_move
from inquitree_gym.baselines.registry import make_player
from inquitree_gym.errors import ActionError
from inquitree_gym.integrations.tasks import EpisodeTask, parse_settings
from inquitree_gym.kinds import kind
from inquitree_gym.log import Episode
from inquitree_gym.results.score import score_episode
from inquitree_gym.rollout import play
from inquitree_gym.runner.services import Services
from inquitree_gym.text_limits import MAX_ACTION_LENGTH
from inquitree_gym.wrappers import LogEpisodes


@dataclass(frozen=True, slots=True)
class SessionScore:
    """Scores of a concluded episode."""

    reward: float
    """Sum of the rewards of the environment."""
    turns: int
    """Actions that were played, conclusion and exam among them."""
    values: Mapping[str, float | None]
    """Measures of the kind of environment by name. None where an episode has no value."""

    @property
    def metrics(self) -> dict[str, float]:
        """Return the number of actions and the measures by name, without those that have no value."""
        known = {name: value for name, value in self.values.items() if value is not None}
        return {"actions": float(self.turns), **known}


class EpisodeSession:
    """One episode, played by `begin` and `move`, logged in memory and on request in a file.

    The environment, its log and its scores are those of `play`, so the same moves leave the same fingerprint.
    Environments share vector caches that are not thread-safe: where several sessions play at once, call `begin` and
    `move` through `rollout.in_step_thread`.
    """

    def __init__(
        self,
        task: EpisodeTask,
        *,
        file: str | os.PathLike[str] | None = None,
        folder: str | os.PathLike[str] | None = None,
        agent: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare to play ``task``.

        Args:
            task: the task.
            file: log of this episode. A torn one is resumed by `begin`.
            folder: folder in which the episode gets a new log.
            agent: name and settings of the player, for the log.

        Raises:
            OptionError: the embedder has no calibrated threshold, both a file and a folder are given, or see
                `EpisodeTask.load`.
            TreeError, EmbedderError: task or embedder cannot be loaded.
        """
        self.task = task
        self.observation = ""
        """The newest observation. Empty before `begin`."""
        self.info: dict[str, Any] = {}
        """Info of the newest observation."""
        self.over = False
        """True once the episode has ended."""
        self._is_moving = False
        self._log = LogEpisodes(task_environment(task), folder, file=file, agent=agent)

    @property
    def file(self) -> Path | None:
        """Log of the episode. None if it is kept in memory alone, or with a folder before `begin`."""
        return self._log.log_file

    @property
    def turns_left(self) -> int | None:
        """Number of turns up to the limit. None without one, or for an environment that does not tell it."""
        limit = self._log.get_wrapper_attr("turn_limit") if self._log.has_wrapper_attr("turn_limit") else None
        return None if limit is None else max(limit - self.turn, 0)

    @property
    def turn(self) -> int:
        """Number of turns taken."""
        return len(self._log.episode.turns)

    @property
    def episode(self) -> Episode[Any]:
        """The log so far.

        Raises:
            LogError: before `begin`.
        """
        return self._log.episode

    def begin(self) -> str:
        """Start the episode, or resume a torn log by replaying its moves, and return the observation.

        Raises:
            LogError: the file holds a complete episode or one with other settings, or cannot be written.
            OptionError: a rule of the task is unknown or out of range.
        """
        self.over = False
        self.observation, self.info = self._log.reset(seed=self.task.seed, options=self.task.options)
        while (logged := self._log.expected) is not None:
            self._step(logged.action)
        return self.observation

    def move(self, text: str) -> str:
        """Take one turn and return the observation. After the end, change nothing and return the last one.

        Raises:
            ActionError: the move is not a string.
            ResetNeeded: before `begin`.
            LogError: the turn cannot be logged.
        """
        if not self.over:
            self._step(text)
        return self.observation

    @contextmanager
    def one_move(self) -> Iterator[None]:
        """Play one of several calls in one message in the block, in a running event loop.

        The others come while it is played, or before the loop has turned since.

        Raises:
            ActionError: another one is played.
        """
        if self._is_moving:
            raise ActionError("one move at a time; read the answer first")
        self._is_moving = True
        try:
            yield
        finally:
            asyncio.get_running_loop().call_soon(setattr, self, "_is_moving", False)

    def score(self) -> SessionScore | None:
        """Return the scores. None as long as the episode is not concluded."""
        return session_score(self.episode, self.task.load())

    def fail(self, error: str) -> None:
        """Log an error that is not the player's fault. A log in a file can be resumed."""
        self._log.fail(error)

    def close(self) -> None:
        """Close the log. An unfinished one in a file can be resumed."""
        self._log.close()

    def _step(self, text: str) -> None:
        self.observation, _, terminated, truncated, self.info = self._log.step(text)
        self.over = terminated or truncated


def session_score(episode: Episode[Any], task: Any) -> SessionScore | None:
    """Return the scores of an episode on its task. None for one that is not concluded. See `score_episode`."""
    if episode.footer is None or episode.status != "concluded":
        return None
    score = score_episode(episode, task)
    return SessionScore(reward=episode.footer.episode_return, turns=score.turns, values=score.values)


def check_move(text: object) -> str:
    """Return a move from an untrusted client, without reasoning and frames.

    Raises:
        ActionError: it is no text, empty, too long, or names no move or several.
    """
    if not isinstance(text, str):
        raise ActionError(f"a move must be a text, got {type(text).__name__}")
    if not text.strip():
        raise ActionError("a move is a text with at least one word; yours is empty")
    if len(text) > MAX_ACTION_LENGTH:
        raise ActionError(f"a move has at most {MAX_ACTION_LENGTH:,} characters; yours has {len(text):,}")
    move, fault = read_tool_move(text)
    if fault:
        raise ActionError(f"a move must be one move in plain words, but yours cannot be read: {fault}")
    return move


def play_task(task: EpisodeTask, agent: str = "oracle") -> Episode[Any]:
    """Play ``task`` with an agent without a model and return the log. See `EpisodeSession` for the errors."""
    env, options = task_environment(task), task.options
    env.reset(seed=task.seed, options=options)  # some agents ask for the rules of the episode
    return play(env, make_player(agent, env), task.seed, options=options)


def task_environment(task: EpisodeTask) -> Any:
    """Return an environment for ``task``, whose options and seed go into its reset. See `EpisodeSession`."""
    return _maker(task.kind, json.dumps(dict(task.settings), sort_keys=True))(task.load())


def check_tasks(tasks: Iterable[EpisodeTask]) -> None:
    """Make what the environments of tasks share, so that a bad embedder or prompt fails before anything is played."""
    for env, settings in {(task.kind, json.dumps(dict(task.settings), sort_keys=True)) for task in tasks}:
        _maker(env, settings)


@lru_cache(maxsize=8)
def _maker(env: str, settings: str) -> Callable[[Any], Any]:
    """Return the maker of environments that the sessions of a process share, because its parts take long to build."""
    of_kind = kind(env)
    parsed = parse_settings(env, json.loads(settings))
    return of_kind.play.maker(parsed, Services(parsed.prompts))
