"""Session: one inquiry that code outside the package plays move by move, such as a trainer or a client of a server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from inquitree_gym.baselines import make_agent
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, Embedder
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.envs.runtime import RuntimeCache
from inquitree_gym.errors import ActionError
from inquitree_gym.integrations.tasks import InquiryTask
from inquitree_gym.log import Episode
from inquitree_gym.matching import MAX_ACTION_LENGTH
from inquitree_gym.prompts import Prompts
from inquitree_gym.rollout import play
from inquitree_gym.scoring import read_trajectory
from inquitree_gym.trees import Tree
from inquitree_gym.wrappers import LogEpisodes


@dataclass(frozen=True, slots=True)
class SessionScore:
    """Scores of a concluded inquiry."""

    conclusion: float
    """Q/|C| in [0, 1] (Eq. 9): the reward of the environment."""
    coverage: float
    """Share of subtopics entered, in [0, 1]; see `Trajectory.coverage`."""
    unaided: float
    """Share of subtopics entered without a hint, in [0, 1]; see `Trajectory.unaided_coverage`."""
    turns: int
    """Turns up to the conclusion; see `Trajectory.turns`."""


class InquirySession:
    """One inquiry, played by `begin` and `move`, logged in memory and on request in a file.

    The environment, its log and its scores are those of `play`, so the same moves leave the same fingerprint.
    Environments share vector caches that are not thread-safe: where several sessions play at once, call `begin` and
    `move` through `rollout.in_step_thread`.
    """

    def __init__(
        self,
        task: InquiryTask,
        *,
        embedder: str | Embedder = DEFAULT_EMBEDDER,
        file: str | os.PathLike[str] | None = None,
        folder: str | os.PathLike[str] | None = None,
        agent: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare to play ``task``.

        Args:
            task: the task.
            embedder: reads the moves.
            file: log of this inquiry; a torn one is resumed by `begin`.
            folder: folder in which the inquiry gets a new log.
            agent: name and settings of the player, for the log.

        Raises:
            OptionError: the embedder has no calibrated threshold, both a file and a folder are given, or see
                `InquiryTask.load`.
            TreeError, EmbedderError: tree or embedder cannot be loaded.
        """
        self.task = task
        self.observation = ""
        """The newest observation; empty before `begin`."""
        self.over = False
        """True once the conclusion is written."""
        self._log = LogEpisodes(task_environment(task, embedder), folder, file=file, agent=agent)

    @property
    def turn(self) -> int:
        """Number of turns taken."""
        return len(self._log.episode.turns)

    @property
    def episode(self) -> Episode:
        """The log so far.

        Raises:
            LogError: before `begin`.
        """
        return self._log.episode

    def begin(self) -> str:
        """Start the inquiry, or resume a torn log by replaying its moves, and return the observation.

        Raises:
            LogError: the file holds a complete inquiry or one with other settings, or cannot be written.
            OptionError: a rule of the task is unknown or out of range.
        """
        self.over = False
        self.observation, _ = self._log.reset(seed=self.task.seed, options=dict(self.task.options))
        while (logged := self._log.expected) is not None:
            self._step(logged.action)
        return self.observation

    def move(self, text: str) -> str:
        """Take one turn and return the observation; after the end, change nothing and return the last one.

        Raises:
            ActionError: the move is not a string.
            ResetNeeded: before `begin`.
            LogError: the turn cannot be logged.
        """
        if not self.over:
            self._step(text)
        return self.observation

    def score(self) -> SessionScore | None:
        """Return the scores; None as long as the inquiry has no conclusion."""
        return session_score(self.episode, self.task.load())

    def fail(self, error: str) -> None:
        """Log an error that is not the player's fault; a log in a file can be resumed."""
        self._log.fail(error)

    def close(self) -> None:
        """Close the log; an unfinished one in a file can be resumed."""
        self._log.close()

    def _step(self, text: str) -> None:
        self.observation, _, terminated, truncated, _ = self._log.step(text)
        self.over = terminated or truncated


def session_score(episode: Episode, tree: Tree) -> SessionScore | None:
    """Return the scores of an episode on ``tree``; None without a conclusion.

    Raises:
        LogError: the episode was played on another version of the tree.
    """
    if episode.footer is None or episode.status != "concluded":
        return None
    course = read_trajectory(episode, tree)
    return SessionScore(
        conclusion=episode.footer.episode_return,
        coverage=course.coverage,
        unaided=course.unaided_coverage,
        turns=course.turns,
    )


def check_move(text: object) -> str:
    """Return a move from a client that is not trusted.

    Raises:
        ActionError: it is not a text, is empty, or is longer than the environment reads.
    """
    if not isinstance(text, str):
        raise ActionError(f"a move is a text, not {type(text).__name__}")
    if not text.strip():
        raise ActionError("a move is a text with at least one word; yours is empty")
    if len(text) > MAX_ACTION_LENGTH:
        raise ActionError(f"a move has at most {MAX_ACTION_LENGTH:,} characters; yours has {len(text):,}")
    return text


def play_task(task: InquiryTask, agent: str = "oracle", *, embedder: str | Embedder = DEFAULT_EMBEDDER) -> Episode:
    """Play ``task`` with one of `BASELINE_NAMES` and return the log.

    Raises:
        OptionError: the agent is unknown, or see `InquirySession`.
    """
    env, options = task_environment(task, embedder), dict(task.options)
    env.reset(seed=task.seed, options=options)  # the oracle asks for the rules of the episode
    player = make_agent(agent, env)
    env.privileged = player.needs_privileged
    return play(env, player, task.seed, options=options)


def task_environment(task: InquiryTask, embedder: str | Embedder = DEFAULT_EMBEDDER) -> InquiryEnv:
    """Return an environment for ``task``, whose options and seed go into its reset; see `InquirySession`."""
    env = InquiryEnv(task.load(), embedder=embedder, prompts=task.preset)
    env.runtimes = _runtimes(env.embedder, task.preset)
    return env


@lru_cache(maxsize=8)
def _runtimes(embedder: Embedder, prompts: str) -> RuntimeCache:
    """Return the runtimes that the sessions of a process share; building one takes longer than a turn."""
    return RuntimeCache(embedder, Prompts(prompts))
