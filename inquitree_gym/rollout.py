"""`play`: the one loop in which an agent meets an environment."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any

import gymnasium as gym

from inquitree_gym.baselines import Agent
from inquitree_gym.errors import LogError
from inquitree_gym.log import Episode
from inquitree_gym.wrappers import LogEpisodes


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
        file: where the log goes as it happens. A torn log there is resumed: its turns are replayed, not asked for
            again.
        options: options of this episode; see `InquiryEnv.reset`.

    Raises:
        LogError: the file holds a whole episode, or one begun otherwise; or it cannot be written.
    """
    recorder = _recorder(env) if file is None else None
    if recorder is None:
        env = recorder = LogEpisodes(env, file=file, agent=agent.config)
    elif not recorder.names_agent:
        recorder.agent = agent.config
    agent.reset(seed)
    observation, info = env.reset(seed=seed, options=options)
    over = False
    try:
        while not over:
            action = _next_action(agent, recorder, observation, info)
            observation, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
    except BaseException as error:
        with suppress(LogError):  # the log itself may be what failed
            recorder.fail(f"{type(error).__name__}: {error}")
        raise
    if recorder.episode.footer is None:  # a limit outside the recorder, such as TimeLimit, which it cannot see
        recorder.finish("truncated")
    return recorder.episode


def _next_action(agent: Agent, recorder: LogEpisodes, observation: str, info: dict[str, Any]) -> str:
    if (logged := recorder.expected) is not None:
        agent.recall(observation, info, logged.action)
        return logged.action
    begun = time.perf_counter()
    action = agent.act(observation, info)
    seconds = time.perf_counter() - begun
    if (call := agent.last_call) is None:
        recorder.annotate(seconds=seconds)
    else:
        recorder.annotate(reply=call.reply, tokens=call.tokens, cost=call.cost, seconds=seconds)
    return action


def _recorder(env: gym.Env[str, str]) -> LogEpisodes | None:
    while isinstance(env, gym.Wrapper):
        if isinstance(env, LogEpisodes):
            return env
        env = env.env
    return None
