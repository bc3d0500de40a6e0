"""OpenEnv: episodes behind a server that keeps a session for each client (extra ``openenv``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from inquitree_gym import __version__
from inquitree_gym.errors import InquiTreeError, OptionError, require, suggest
from inquitree_gym.integrations.session import EpisodeSession, check_move, check_tasks
from inquitree_gym.integrations.tasks import EpisodeTask, make_tasks, task_by_id
from inquitree_gym.kinds import DEFAULT_KIND, kind
from inquitree_gym.rollout import in_step_thread
from inquitree_gym.runs.study import ALL

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


class EpisodeAction(Action):
    """A move."""

    text: str


class EpisodeObservation(Observation):
    """An observation. ``reward`` is that of the whole episode at its end, in [-1, 1] for inquiries, and 0 before."""

    text: str


class EpisodeState(State):
    """Course of a session, without anything that an agent must not see."""

    task: str | None = None
    """Key of the task, such as ``paper12@1/s0``, without the world. None before the first reset."""
    over: bool = False


class EpisodeEnvironment(Environment[EpisodeAction, EpisodeObservation, EpisodeState]):
    """One client's episodes, one after the other."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    REQUIRES_SINGLE_THREAD_EXECUTOR = True

    def __init__(self, tasks: Sequence[EpisodeTask], episodes: Path | None = None) -> None:
        """Offer ``tasks``. Log every episode into the folder ``episodes``, if given."""
        super().__init__()
        self._tasks, self._episodes = tuple(tasks), episodes
        self._session: EpisodeSession | None = None
        self._state = EpisodeState()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **options: Any) -> EpisodeObservation:
        """Start an episode.

        Args:
            seed: seed of the episode. That of the first task by default.
            episode_id: name of the episode for the state.
            options: either ``split`` and ``index`` of a task, or ``paper``, its id, and settings of the kind of
                environment, each that of the first task by default.

        Raises:
            OptionError: an option is unknown, out of range, or given beside ``index``, or the task is not served.
        """
        task = self._chosen(seed, options)
        self.close()
        self._session = EpisodeSession(task, folder=self._episodes, agent={"name": "openenv"})
        text = self._session.begin()
        self._state = EpisodeState(episode_id=episode_id, task=task.shown.key)
        return EpisodeObservation(text=text, reward=0.0)

    async def reset_async(
        self, seed: int | None = None, episode_id: str | None = None, **options: Any
    ) -> EpisodeObservation:
        """Call `reset` in the thread in which the environments of this process step."""
        return await in_step_thread(partial(self.reset, seed, episode_id, **options))

    def step(self, action: EpisodeAction, timeout_s: float | None = None, **options: Any) -> EpisodeObservation:
        """Make a move. After the end, change nothing and return the last observation with a reward of 0.

        Raise `OptionError` before `reset`, and `ActionError` for an empty or too long text.
        """
        if self._session is None:
            raise OptionError("no episode has been started; call reset first, over the same WebSocket")
        text, was_over = check_move(action.text), self._session.over
        text = self._session.move(text)
        self._state.step_count, self._state.over = self._session.turn, self._session.over
        score = None if was_over else self._session.score()
        return EpisodeObservation(text=text, done=self._session.over, reward=0.0 if score is None else score.reward)

    async def step_async(
        self, action: EpisodeAction, timeout_s: float | None = None, **options: Any
    ) -> EpisodeObservation:
        """Call `step` in the thread in which the environments of this process step."""
        return await in_step_thread(self.step, action)

    @property
    def state(self) -> EpisodeState:
        """Course of the session."""
        return self._state

    def close(self) -> None:
        """Close the log of the current episode."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def get_metadata(self) -> EnvironmentMetadata:
        """Describe the environment."""
        return EnvironmentMetadata(
            name=ENV_NAME, description="Research environments made of papers, in free text.", version=__version__
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
        """Return a task. Raise `IndexError` if there is none with this number."""
        tasks = self.get_task_range(split)
        if index < 0:
            raise IndexError(f"there is no task {index}")
        return tasks[index]

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, Any]]:
        """Return tasks from ``start`` up to ``stop``. An unknown split has none."""
        tasks = self._tasks[start:stop] if split == SPLIT else ()
        shown = [task.shown for task in tasks]
        return [{"id": task.key, "paper": task.task, "seed": task.seed, **task.cell, **task.settings} for task in shown]

    def _chosen(self, seed: int | None, options: dict[str, Any]) -> EpisodeTask:
        model = kind(self._tasks[0].kind).settings
        known = ("paper", "split", "index", *model.model_fields, *model.hidden_rules)
        for name in options:
            if name not in known:
                raise OptionError(f"unknown option '{name}'{suggest(name, known)}; known: seed, {', '.join(known)}")
        if "split" in options or "index" in options:
            return self._numbered(seed, options)
        settings = dict(options)
        paper = task_by_id(settings.pop("paper", self._tasks[0].task), self._tasks[0].kind).id
        like = next((task for task in self._tasks if task.task == paper), None)
        if like is None:
            served = ", ".join(dict.fromkeys(task.task for task in self._tasks))
            raise OptionError(f"the task '{paper}' is not served here; served: {served}")
        seeds = [like.seed if seed is None else seed]
        kept = {name: rule for name, rule in like.settings.get("rules", {}).items() if name in model.hidden_rules}
        given = {**like.settings, **like.cell, **kept, **settings}  # other rules of a client do not change the world
        tasks = make_tasks([paper], env=like.kind, seeds=seeds, **given)
        if len(tasks) > 1:
            raise OptionError("an episode has one value of each setting; give no list")
        return tasks[0]

    def _numbered(self, seed: int | None, options: dict[str, Any]) -> EpisodeTask:
        index = options.get("index")
        if seed is not None or set(options) != {"split", "index"} or options["split"] != SPLIT:
            raise OptionError(
                f"a task is chosen by split='{SPLIT}' and index alone; leave out its paper, seed and settings"
            )
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(self._tasks):
            raise OptionError(f"index must be an integer from 0 to {len(self._tasks) - 1}, got {index!r:.80}")
        return self._tasks[index]


def episode_app(
    papers: str | Sequence[str] = ALL,
    *,
    env: str = DEFAULT_KIND,
    seeds: int | Sequence[int] = 5,
    episodes: Path | None = None,
    **settings: Any,
) -> Any:
    """Return the server of episodes, a FastAPI application.

    Args:
        papers: tasks that are served. See `make_tasks`, also for the settings.
        env: kind of environment.
        seeds: see `make_tasks`.
        episodes: folder for a log of every episode. None writes none.
        settings: settings of the kind.

    Raises:
        OptionError: a value is out of range.
        TreeError, EmbedderError: a task or the embedder is unknown.
    """
    tasks = make_tasks(papers, env=env, seeds=seeds, **settings)
    check_tasks(tasks)
    app = create_app(
        partial(EpisodeEnvironment, tasks, episodes),
        EpisodeAction,
        EpisodeObservation,
        env_name=ENV_NAME,
        state_cls=EpisodeState,
        concurrency_config=ConcurrencyConfig(max_concurrent_envs=MAX_SESSIONS, session_timeout=SESSION_TIMEOUT),
    )
    app.add_exception_handler(InquiTreeError, _refuse)  # requests over HTTP, outside a WebSocket
    return app


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, status_code=400)
