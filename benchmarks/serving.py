"""Measure turns through servers and harnesses, beside the bare environment and `play`; all texts have been seen.

What is not installed is left out; give its folder in ``PYTHONPATH``, as scripts/test.sh does.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

from measure import Row, alternate, hand_over, seconds, spread

import inquitree_gym as it
from inquitree_gym.baselines import ReplayAgent
from inquitree_gym.envs.inquiry import InquiryEnv

TREE = "paper12"
ROUNDS = 5
"""Each plays one episode of the oracle in every way; every server is started anew."""
MCP_TARGET, INSPECT_TARGET, OPENENV_TARGET = 6.0, 12.0, 1.0
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
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

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
    from mcp import Client

    async with Client(server) as client:
        await client.call_tool("look", {})
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for action in actions:
            await client.call_tool("move", {"text": action})
        return 1_000 * (loop.time() - begun) / len(actions)


def over_websocket(actions: Sequence[str]) -> float:
    """Return milliseconds per turn of an OpenEnv client."""
    from openenv.core.generic_client import GenericEnvClient

    async def moves(url: str) -> float:
        async with GenericEnvClient(base_url=url) as client:
            await client.reset()
            loop = asyncio.get_running_loop()
            begun = loop.time()
            for action in actions:
                await client.step({"text": action})
            return 1_000 * (loop.time() - begun) / len(actions)

    command = [*COMMAND, "serve", "--papers", TREE, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            return asyncio.run(moves(server.stderr.readline().split()[3].rstrip(";")))
        finally:
            server.terminate()


def in_inspect(actions: Sequence[str]) -> float:
    """Return milliseconds per turn of a sample in inspect_ai, whose model answers at once."""
    from inspect_ai import eval as evaluate
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from inquitree_gym.integrations.inspect import inquiry

    replies = [ModelOutput.from_content("mockllm/model", f"ACTION: {action}") for action in actions]
    for reply in replies:
        reply.usage = ModelUsage(total_tokens=1)
    model = get_model("mockllm/model", custom_outputs=replies, memoize=False)
    with TemporaryDirectory() as folder:
        (log,) = evaluate(inquiry(papers=TREE, seeds=1), model=model, log_dir=folder, display="none")
        assert log.status == "success", log.error
        return 1_000 * log.samples[0].total_time / len(actions)  # read from the file


def main() -> list[Row]:
    env = InquiryEnv(TREE, privileged=True)
    env.reset(seed=0)
    actions = it.play(env, it.make_agent("oracle", env), 0).actions
    ways: dict[str, tuple[Callable[[Sequence[str]], float], float]] = {}
    if version("mcp") >= "2":  # OpenEnv brings an older one
        ways |= {"over MCP, stdio": (over_stdio, MCP_TARGET), "over MCP, HTTP": (over_http, MCP_TARGET)}
    if find_spec("inspect_ai") is not None:
        ways["in inspect_ai"] = (in_inspect, INSPECT_TARGET)
    if find_spec("openenv") is not None:
        ways["over OpenEnv's WebSocket"] = (over_websocket, OPENENV_TARGET)
    tasks = [partial(bare, env, actions), partial(played, env, actions)]
    tasks += [partial(way, actions) for way, _ in ways.values()]
    alternate(tasks, 1)
    step, play, *others = map(spread, alternate(tasks, ROUNDS))
    against = f"bare step {step.show('.3f', 'ms')}, `play` {play.show('.2f', 'ms')}"
    return [
        Row(f"turn {name}", took.show(".1f", "ms"), against, target=f"≤ {most:g} ms", met=took.median <= most)
        for (name, (_, most)), took in zip(ways.items(), others, strict=True)
    ]


if __name__ == "__main__":
    hand_over(main())
