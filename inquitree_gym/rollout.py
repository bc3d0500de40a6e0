"""`play` and `aplay`: the one loop in which an agent meets an environment, without and with asyncio."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Protocol, TypeVar

import gymnasium as gym

from inquitree_gym._waiting import at_once
from inquitree_gym.baselines import Agent, Request
from inquitree_gym.baselines.agent import asks
from inquitree_gym.errors import LogError
from inquitree_gym.llm import Completion
from inquitree_gym.log import Episode, Reply
from inquitree_gym.wrappers import LogEpisodes

T = TypeVar("T")


def play(
    env: gym.Env[str, str],
    agent: Agent,
    seed: int,
    *,
    file: str | os.PathLike[str] | None = None,
    options: dict[str, Any] | None = None,
) -> Episode:
    """Play one episode to its end and return its log.

    Whatever stops it before that is logged as a failure and raised again; with ``file`` the episode can be resumed.

    Args:
        env: an inquiry environment, wrapped or not; a `LogEpisodes` among its wrappers is used as it is.
        agent: who plays.
        seed: seed of the episode and of the agent.
        file: where the log goes as it happens. A torn log there is resumed: its turns are replayed, and no reply that
            it holds is asked for again.
        options: options of this episode; see `InquiryEnv.reset`.

    Raises:
        LogError: the file holds a whole episode, or one begun otherwise; or it cannot be written.
    """
    return at_once(_play(_Blocking(), env, agent, seed, file, options))


async def aplay(
    env: gym.Env[str, str],
    agent: Agent,
    seed: int,
    *,
    file: str | os.PathLike[str] | None = None,
    options: dict[str, Any] | None = None,
) -> Episode:
    """Play one episode as `play` does, among others on the same event loop; each needs an environment of its own.

    The loop goes on while a chat model is asked, and while an environment steps: that happens in one thread for all
    episodes of the process, since they share embedders and what was embedded, which are not made for several. An agent
    that asks no model acts there too. An episode that is cancelled finishes the step it is in.
    """
    return await _play(_LettingOthersOn(), env, agent, seed, file, options)


class _Way(Protocol):
    """How to do what takes time."""

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return what ``function`` returns."""

    async def complete(self, request: Request) -> Completion:
        """Ask a chat model."""


class _Blocking:
    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        return function(*arguments)

    async def complete(self, request: Request) -> Completion:
        return request.chat.complete_now(request.messages, seed=request.seed)


class _LettingOthersOn:
    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        job = _step_thread(os.getpid()).submit(function, *arguments)
        done = asyncio.wrap_future(job)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            # A step that has begun is finished and logged before anything else is written to the log.
            while not job.cancel() and not job.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([done])
            raise

    async def complete(self, request: Request) -> Completion:
        return await request.chat.complete(request.messages, seed=request.seed)


@cache
def _step_thread(process: int) -> ThreadPoolExecutor:
    """Return the thread in which a process steps; a fork has the parent's memory and none of its threads."""
    return ThreadPoolExecutor(1, "inquitree-step")


async def _play(
    way: _Way,
    env: gym.Env[str, str],
    agent: Agent,
    seed: int,
    file: str | os.PathLike[str] | None,
    options: dict[str, Any] | None,
) -> Episode:
    recorder = _recorder(env) if file is None else None
    if recorder is None:
        env = recorder = LogEpisodes(env, file=file, agent=agent.config)
    elif not recorder.names_agent:
        recorder.agent = agent.config
    agent.reset(seed)
    observation, info = await way.run(lambda: env.reset(seed=seed, options=options))
    over = False
    with _failures_logged(recorder):
        while not over:
            action = await _next_action(way, agent, recorder, observation, info)
            observation, _, terminated, truncated, info = await way.run(env.step, action)
            over = terminated or truncated
    if recorder.episode.footer is None:  # a limit outside the recorder, such as TimeLimit, which it cannot see
        recorder.finish("truncated")
    return recorder.episode


@contextmanager
def _failures_logged(recorder: LogEpisodes) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        with suppress(LogError):  # the log itself may be what failed
            recorder.fail(f"{type(error).__name__}: {error}")
        raise


async def _next_action(way: _Way, agent: Agent, recorder: LogEpisodes, observation: str, info: dict[str, Any]) -> str:
    begun = time.perf_counter()
    asking = _Asking(way, recorder)
    logged = recorder.expected
    if asks(agent) and (logged is None or asking.given):
        action = await agent.decide(observation, info, asking)
    elif logged is None:
        action = await way.run(agent.act, observation, info)
    else:
        await way.run(agent.recall, observation, info, logged.action)
    if logged is not None:
        return logged.action
    recorder.annotate(seconds=time.perf_counter() - begun + asking.seconds_before)
    return action


class _Asking:
    """Answers the requests of one turn: from the log while that holds replies to it, then by the model."""

    def __init__(self, way: _Way, recorder: LogEpisodes) -> None:
        self._way = way
        self._recorder = recorder
        self._turn = len(recorder.episode.turns) + 1
        self.given = deque(recorder.given)
        self.seconds_before = 0.0
        """Seconds that the replies took which were logged before."""

    async def __call__(self, request: Request) -> Reply:
        if self.given:
            reply = self.given.popleft()
            if reply.role == request.role:
                self.seconds_before += reply.seconds
                return reply
        elif self._recorder.expected is None:
            reply = request.to_reply(self._turn, await self._way.complete(request))
            self._recorder.add_reply(reply)
            return reply
        raise LogError(
            f"turn {self._turn}: the agent asks its {request.role} and the log has no such reply in that place; the "
            "episode was begun by another release or agent: finish it with that one, or remove the log"
        )


def _recorder(env: gym.Env[str, str]) -> LogEpisodes | None:
    while isinstance(env, gym.Wrapper):
        if isinstance(env, LogEpisodes):
            return env
        env = env.env
    return None
