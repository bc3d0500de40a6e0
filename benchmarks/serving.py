"""Measure turns through the servers of inquiries, beside the bare environment and `play`; all texts have been seen."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from measure import Row, alternate, hand_over, seconds, spread

import inquitree_gym as it
from inquitree_gym.baselines import ReplayAgent
from inquitree_gym.envs.inquiry import InquiryEnv

TREE = "paper12"
ROUNDS = 7
"""Each plays one episode of the oracle in every way; every server is started anew."""
MCP_TARGET = 6.0
"""Milliseconds per turn at most."""
COMMAND = [sys.executable, "-c", "from inquitree_gym.cli import main; main()"]


def bare(env: InquiryEnv, actions: Sequence[str]) -> float:
    """Return milliseconds per turn of the environment alone."""
    env.reset(seed=0)
    return 1_000 * seconds(lambda: [env.step(action) for action in actions]) / len(actions)


def played(env: InquiryEnv, actions: Sequence[str]) -> float:
    """Return milliseconds per turn of `play`, which logs in memory."""
    return 1_000 * seconds(lambda: it.play(env, ReplayAgent(actions), 0)) / len(actions)


def over_stdio(actions: Sequence[str]) -> float:
    """Return milliseconds per turn over MCP on standard input and output."""
    server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "mcp", TREE], env=dict(os.environ))
    return asyncio.run(_moves(stdio_client(server), actions))


def over_http(actions: Sequence[str]) -> float:
    """Return milliseconds per turn over MCP on loopback HTTP."""
    command = [*COMMAND, "mcp", TREE, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            return asyncio.run(_moves(server.stderr.readline().split()[3].rstrip(";"), actions))
        finally:
            server.terminate()


async def _moves(server: Any, actions: Sequence[str]) -> float:
    async with Client(server) as client:
        await client.call_tool("look", {})
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for action in actions:
            await client.call_tool("move", {"text": action})
        return 1_000 * (loop.time() - begun) / len(actions)


def main() -> list[Row]:
    env = InquiryEnv(TREE, privileged=True)
    env.reset(seed=0)
    actions = it.play(env, it.make_agent("oracle", env), 0).actions
    ways: list[Callable[[Sequence[str]], float]] = [partial(bare, env), partial(played, env), over_stdio, over_http]
    tasks = [partial(way, actions) for way in ways]
    alternate(tasks[:2], 1)
    step, play, *servers = map(spread, alternate(tasks, ROUNDS))
    against = f"bare step {step.show('.3f', 'ms')}, `play` {play.show('.2f', 'ms')}"
    return [
        Row(f"turn over MCP, {name}", took.show(".1f", "ms"), against, target=f"≤ {MCP_TARGET:g} ms",
            met=took.median <= MCP_TARGET)
        for name, took in zip(("stdio", "HTTP"), servers, strict=True)
    ]  # fmt: skip


if __name__ == "__main__":
    hand_over(main())
