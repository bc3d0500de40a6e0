"""`aplay` and `play`: the one loop between an agent and an environment, with and without asyncio."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, TypeVar

import gymnasium as gym

from inquitree_gym.baselines import Agent
from inquitree_gym.baselines.agent import NO_REPLIES, ask_for_reply, asks_models, stated_by
from inquitree_gym.errors import LogError
from inquitree_gym.llm import Chat, Message, run_sync
from inquitree_gym.log import Episode, Reply
from inquitree_gym.log.records import JUDGE_ROLE, READER_ROLE
from inquitree_gym.wrappers import LogEpisodes

T = TypeVar("T")
Call = Callable[..., Awaitable[Any]]
"""Runs a function that takes time: ``await call(function, *arguments)``."""


def play(
    env: gym.Env[str, str],
    agent: Agent,
    seed: int,
    *,
    file: str | os.PathLike[str] | None = None,
    options: dict[str, Any] | None = None,
) -> Episode[Any]:
    """Play one episode to its end and return its log.

    Also works where an event loop is running, as in a notebook. An agent that asks models is played by `aplay` on the
    event loop of `inquitree_gym.llm.litellm`, any other in the calling thread. An error is logged as a failure and
    raised again. With ``file`` the episode can then be resumed.

    Args:
        env: an environment of this package, or another `RecordedEnv`, wrapped or not. A `LogEpisodes` among its
            wrappers is used as it is.
        agent: the agent.
        seed: seed of the episode. The agent gets `EpisodeRecords.agent_seed`, which depends on seed and task.
        file: log file, written as the episode happens. A torn log is resumed: its turns are replayed, and replies that
            it holds are not requested again.
        options: options of this episode. See `reset` of the environment.

    Raises:
        LogError: the file holds a complete episode or one with other settings, or cannot be written.
    """
    if asks_models(agent):
        return run_sync(aplay(env, agent, seed, file=file, options=options))
    loop = _play(env, agent, seed, file, options, _call_directly)
    try:
        loop.send(None)  # without a model nothing suspends, so a single step runs the loop to its end
    except StopIteration as done:
        episode: Episode[Any] = done.value
        return episode
    raise AssertionError("unreachable")


async def aplay(
    env: gym.Env[str, str],
    agent: Agent,
    seed: int,
    *,
    file: str | os.PathLike[str] | None = None,
    options: dict[str, Any] | None = None,
) -> Episode[Any]:
    """Play one episode as `play` does, concurrently with others. Each needs its own environment.

    The event loop stays free while an agent, a reader or a judge waits for a chat model, and while an environment
    steps. All environments of the process step in one thread, because they share embedders and vector caches, which are
    not thread-safe. Agents without a model act there too. A cancelled episode finishes and logs its current step.
    """
    return await _play(env, agent, seed, file, options, in_step_thread)


async def _call_directly(function: Callable[..., T], *arguments: Any) -> T:
    return function(*arguments)


async def in_step_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call ``function`` in the one thread in which the environments of this process step, and return its result.

    They share embedders and vector caches, which are not thread-safe. A cancelled call that has begun is finished.
    """
    job = _step_thread(os.getpid()).submit(function, *arguments)
    done = asyncio.wrap_future(job)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        # A step in progress is finished and logged before anything else is written to the log.
        while not job.cancel() and not job.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([done])
        raise


@cache
def _step_thread(process: int) -> ThreadPoolExecutor:
    """Return the thread in which a process steps. A fork inherits the parent's memory but none of its threads."""
    return ThreadPoolExecutor(1, "inquitree-step")


async def _play(
    env: gym.Env[str, str],
    agent: Agent,
    seed: int,
    file: str | os.PathLike[str] | None,
    options: dict[str, Any] | None,
    call: Call,
) -> Episode[Any]:
    recorder = _recorder(env) if file is None else None
    if recorder is None:
        env = recorder = LogEpisodes(env, file=file, agent=agent.config)
    elif not recorder.names_agent:
        recorder.agent = agent.config
    ahead = call is in_step_thread and not any(isinstance(each, gym.ActionWrapper) for each in _wrappers(env))
    observation, info = await call(lambda: env.reset(seed=seed, options=options))
    over = False
    with _failures_logged(recorder):
        agent.reset(recorder.records.agent_seed)
        while not over:
            action = await _next_action(agent, recorder, observation, info, call)
            if ahead:
                await _ask_ahead(recorder, action)
            observation, _, terminated, truncated, info = await call(env.step, action)
            over = terminated or truncated
    if recorder.episode.footer is None:  # truncated by a wrapper outside the recorder, such as TimeLimit
        recorder.finish("truncated")
    return recorder.episode


@contextmanager
def _failures_logged(recorder: LogEpisodes) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        with suppress(LogError):  # the log itself may have failed
            recorder.fail(f"{type(error).__name__}: {error}")
        raise


async def _next_action(agent: Agent, recorder: LogEpisodes, observation: str, info: dict[str, Any], call: Call) -> str:
    started = time.perf_counter()
    replies = _Replies(recorder)
    logged = recorder.expected
    if asks_models(agent) and (logged is None or replies.logged):
        action = await agent.decide(observation, info, replies.ask)
    elif logged is None:
        action = await call(agent.act, observation, info)
    else:
        await call(agent.recall, observation, info, logged.action)
    if logged is not None:
        return logged.action
    seconds = time.perf_counter() - started + replies.logged_seconds
    recorder.annotate(seconds=seconds, stated=stated_by(agent))
    return action


class _Replies:
    """Replies for one turn: from the log as long as it has any, then from the model."""

    def __init__(self, recorder: LogEpisodes) -> None:
        self._recorder = recorder
        self._turn = len(recorder.episode.turns) + 1
        given = (reply for reply in recorder.given if reply.role not in (READER_ROLE, JUDGE_ROLE))
        self.logged = deque(reply for reply in given if reply.fault not in NO_REPLIES)
        self.logged_seconds = 0.0

    async def ask(self, chat: Chat, messages: list[Message], *, role: str, **request: Any) -> Reply:
        """See `Ask`."""
        if self.logged:
            reply = self.logged.popleft()
            if reply.role == role:
                self.logged_seconds += reply.seconds
                return reply
        elif self._recorder.expected is None:
            keep = self._recorder.add_reply
            return await ask_for_reply(chat, messages, turn=self._turn, role=role, keep=keep, **request)
        raise LogError(
            f"turn {self._turn}: the agent asks its {role}, but the log has no such reply there; the episode was "
            "started with another release or agent: resume it with that one, or remove the log"
        )


async def _ask_ahead(recorder: LogEpisodes, action: Any) -> None:
    """Ask reader or judge about an action before its step, so that the steps of other episodes need not wait."""
    if recorder.expected is not None or not isinstance(action, str):
        return
    if (asking := recorder.records.ask_ahead(action)) is not None:
        await asking


def _recorder(env: gym.Env[Any, Any]) -> LogEpisodes | None:
    return next((each for each in _wrappers(env) if isinstance(each, LogEpisodes)), None)


def _wrappers(env: gym.Env[Any, Any]) -> Iterator[gym.Wrapper[Any, Any, Any, Any]]:
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env
