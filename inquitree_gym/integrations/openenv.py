"""OpenEnv: inquiries behind a server that keeps a session for each client (extra ``openenv``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from inquitree_gym import __version__
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.errors import InquiTreeError, OptionError, require, suggest
from inquitree_gym.integrations.session import InquirySession, check_move
from inquitree_gym.integrations.tasks import FakeLevels, InquiryTask, MaxTurns, RulesLike, make_tasks, tree_by_id
from inquitree_gym.rollout import in_step_thread
from inquitree_gym.runner.study import ALL

try:
    from fastapi import Request
    from fastapi.responses import JSONResponse
    from openenv.core.env_server.http_server import create_app
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.types import Action, ConcurrencyConfig, EnvironmentMetadata, Observation, State
except ModuleNotFoundError:
    require("openenv", "openenv")
    raise

ENV_NAME = "inquitree"
SPLIT = "test"
"""The one split of the tasks."""
MAX_SESSIONS = 16
SESSION_TIMEOUT = 3600.0
"""Seconds after which a session without a request is ended."""
OPTIONS = ("tree", "fake_level", "max_turns", "split", "index")
"""Options of a reset besides the seed and the id of the episode."""


class InquiryAction(Action):
    """A move."""

    text: str


class InquiryObservation(Observation):
    """An observation; ``reward`` is the score of the conclusion, and 0 before it."""

    text: str


class InquiryState(State):
    """Course of a session, without anything that an agent must not see."""

    task: str | None = None
    """Key of the task, such as ``paper12@1/f3/s0``; None before the first reset."""
    over: bool = False


class InquiryEnvironment(Environment[InquiryAction, InquiryObservation, InquiryState]):
    """One client's inquiries, one after the other."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    REQUIRES_SINGLE_THREAD_EXECUTOR = True

    def __init__(
        self, tasks: Sequence[InquiryTask], embedder: str = DEFAULT_EMBEDDER, episodes: Path | None = None
    ) -> None:
        """Offer ``tasks``, whose moves ``embedder`` reads; log every episode into the folder ``episodes``, if given."""
        super().__init__()
        self._tasks, self._embedder, self._episodes = tuple(tasks), embedder, episodes
        self._session: InquirySession | None = None
        self._state = InquiryState()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **options: Any) -> InquiryObservation:
        """Start an inquiry.

        Args:
            seed: seed of the episode; that of the first task by default.
            episode_id: name of the episode for the state.
            options: ``split`` and ``index`` of a task; or ``tree``, ``fake_level`` and ``max_turns``, each that of the
                tree's first task by default, and the tree that of the first task.

        Raises:
            OptionError: an option is unknown, out of range, or given beside ``index``; or the tree is not served.
        """
        task = self._chosen(seed, options)
        self.close()
        self._session = InquirySession(task, embedder=self._embedder, folder=self._episodes, agent={"name": "openenv"})
        text = self._session.begin()
        self._state = InquiryState(episode_id=episode_id, task=task.key)
        return InquiryObservation(text=text, reward=0.0)

    async def reset_async(
        self, seed: int | None = None, episode_id: str | None = None, **options: Any
    ) -> InquiryObservation:
        """Call `reset` in the thread in which the environments of this process step."""
        return await in_step_thread(partial(self.reset, seed, episode_id, **options))

    def step(self, action: InquiryAction, timeout_s: float | None = None, **options: Any) -> InquiryObservation:
        """Make a move; after the end, change nothing and return the last observation with a reward of 0.

        Raises:
            OptionError: before `reset`.
            ActionError: the text is empty or too long.
        """
        if self._session is None:
            raise OptionError("no inquiry has been started; call reset first, over the same WebSocket")
        text, was_over = check_move(action.text), self._session.over
        text = self._session.move(text)
        self._state.step_count, self._state.over = self._session.turn, self._session.over
        score = None if was_over else self._session.score()
        return InquiryObservation(text=text, done=self._session.over, reward=0.0 if score is None else score.conclusion)

    async def step_async(
        self, action: InquiryAction, timeout_s: float | None = None, **options: Any
    ) -> InquiryObservation:
        """Call `step` in the thread in which the environments of this process step."""
        return await in_step_thread(self.step, action)

    @property
    def state(self) -> InquiryState:
        """Course of the session."""
        return self._state

    def close(self) -> None:
        """Close the log of the current inquiry."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def get_metadata(self) -> EnvironmentMetadata:
        """Describe the environment."""
        return EnvironmentMetadata(
            name=ENV_NAME, description="Re-live the inquiry behind a paper, in free text.", version=__version__
        )

    def list_splits(self) -> list[str]:
        """Return the splits."""
        return [SPLIT]

    def num_tasks(self, split: str) -> int:
        """Return the number of tasks."""
        return len(self.get_task_range(split))

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """Return all tasks."""
        return self.get_task_range(split)

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """Return a task.

        Raises:
            IndexError: there is none with this number.
        """
        tasks = self.get_task_range(split)
        if index < 0:
            raise IndexError(f"there is no task {index}")
        return tasks[index]

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, Any]]:
        """Return tasks from ``start`` up to ``stop``; those of an unknown split are none."""
        tasks = self._tasks[start:stop] if split == SPLIT else ()
        return [{"id": each.key, "tree": each.tree, "seed": each.seed, **each.options} for each in tasks]

    def _chosen(self, seed: int | None, options: dict[str, Any]) -> InquiryTask:
        for name in options:
            if name not in OPTIONS:
                raise OptionError(f"unknown option '{name}'{suggest(name, OPTIONS)}; known: seed, {', '.join(OPTIONS)}")
        if "split" in options or "index" in options:
            return self._numbered(seed, options)
        tree = tree_by_id(options["tree"]).id if "tree" in options else self._tasks[0].tree
        like = next((task for task in self._tasks if task.tree == tree), None)
        if like is None:
            served = ", ".join(dict.fromkeys(task.tree for task in self._tasks))
            raise OptionError(f"the tree '{tree}' is not served here; served: {served}")
        rules = dict(like.options)
        level, limit = (options.get(name, rules.pop(name)) for name in ("fake_level", "max_turns"))
        if isinstance(level, bool) or not isinstance(level, int):
            raise OptionError(f"fake_level is a whole number from 0 to 10, not {level!r:.80}")
        seeds = [like.seed if seed is None else seed]
        return make_tasks([tree], seeds=seeds, fake_level=level, max_turns=limit, rules=rules)[0]

    def _numbered(self, seed: int | None, options: dict[str, Any]) -> InquiryTask:
        index = options.get("index")
        if seed is not None or set(options) != {"split", "index"} or options["split"] != SPLIT:
            raise OptionError(
                f"a task is chosen by split='{SPLIT}' and index alone; leave out its tree, seed and rules"
            )
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(self._tasks):
            raise OptionError(f"index is a whole number from 0 to {len(self._tasks) - 1}, not {index!r:.80}")
        return self._tasks[index]


def inquiry_app(
    trees: str | Sequence[str] = ALL,
    *,
    seeds: int | Sequence[int] = 5,
    fake_level: FakeLevels = 0,
    max_turns: MaxTurns = "default",
    embedder: str = DEFAULT_EMBEDDER,
    rules: RulesLike = None,
    episodes: Path | None = None,
) -> Any:
    """Return the server of inquiries, a FastAPI application.

    Args:
        trees: trees that are served, and of the tasks; see `make_tasks`.
        seeds: see `make_tasks`.
        fake_level: see `make_tasks`.
        max_turns: see `make_tasks`.
        embedder: reads the moves.
        rules: see `make_tasks`.
        episodes: folder for a log of every episode; None writes none.

    Raises:
        OptionError: a value is out of range.
        TreeError, EmbedderError: a tree or the embedder is unknown.
    """
    tasks = make_tasks(trees, seeds=seeds, fake_level=fake_level, max_turns=max_turns, rules=rules)
    load_embedder(embedder)
    app = create_app(
        partial(InquiryEnvironment, tasks, embedder, episodes),
        InquiryAction,
        InquiryObservation,
        env_name=ENV_NAME,
        state_cls=InquiryState,
        concurrency_config=ConcurrencyConfig(max_concurrent_envs=MAX_SESSIONS, session_timeout=SESSION_TIMEOUT),
    )
    app.add_exception_handler(InquiTreeError, _refuse)  # requests over HTTP, outside a WebSocket
    return app


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, status_code=400)
