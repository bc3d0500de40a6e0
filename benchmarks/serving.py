"""Measure turns through servers and harnesses, beside the bare environment and `play`; all texts have been seen.

A row says what is not installed; inspect_ai and OpenEnv go in folders named in ``PYTHONPATH``, as in scripts/test.sh.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from measure import Row, Spread, alternate, hand_over, seconds, spread

import inquitree_gym as it
from inquitree_gym.baselines import ReplayAgent
from inquitree_gym.inquiry.env import InquiryEnv

TREE = "paper12"
ROUNDS = 5
"""Each plays one episode of the oracle in every way; every server is started anew."""
MCP_TARGET, INSPECT_TARGET, OPENENV_TARGET = 6.0, 12.0, 1.0
"""Milliseconds per turn at most."""
COMMAND = [sys.executable, "-c", "from inquitree_gym.cli import main; main()"]


class Way(NamedTuple):
    """A way to take turns."""

    name: str
    call: Callable[[Sequence[str]], float]
    """Takes turns with the given actions, and returns milliseconds per turn."""
    target: float
    """Milliseconds per turn at most."""
    package: str
    least: int = 0
    """Oldest major version of the package that will do."""
    form: str = ".1f"

    @property
    def is_installed(self) -> bool:
        """True if the package is installed."""
        try:
            return int(version(self.package).split(".")[0]) >= self.least
        except PackageNotFoundError:
            return False

    def row(self, took: Spread | None, against: str) -> Row:
        """Return the row of the table; None says that the package is not installed."""
        if took is None:
            needed = f"{self.package} {self.least}" if self.least else self.package
            return Row(self.name, f"not measured: {needed} is not installed", target=f"≤ {self.target:g} ms")
        met = took.median <= self.target
        return Row(self.name, took.show(self.form, "ms"), against, target=f"≤ {self.target:g} ms", met=met)


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


WAYS = (
    Way("turn over MCP, stdio", over_stdio, MCP_TARGET, "mcp", 2),  # OpenEnv brings an older one
    Way("turn over MCP, HTTP", over_http, MCP_TARGET, "mcp", 2),
    Way("turn in inspect_ai", in_inspect, INSPECT_TARGET, "inspect-ai"),
    Way("turn over OpenEnv's WebSocket", over_websocket, OPENENV_TARGET, "openenv"),
)


def measured(ways: Sequence[Way], rounds: int) -> list[Row]:
    """Measure the ways whose package is installed, beside the bare environment and `play`."""
    env = InquiryEnv(TREE, privileged=True)
    env.reset(seed=0)
    actions = it.play(env, it.make_agent("oracle", env), 0).actions
    present = [way for way in ways if way.is_installed]
    tasks = [partial(call, actions) for call in (partial(bare, env), partial(played, env), *(w.call for w in present))]
    alternate(tasks, 1)
    step, play, *others = map(spread, alternate(tasks, rounds))
    against = f"bare step {step.show('.3f', 'ms')}, `play` {play.show('.2f', 'ms')}"
    took = dict(zip((way.name for way in present), others, strict=True))
    return [way.row(took.get(way.name), against) for way in ways]


def main() -> list[Row]:
    """Return the rows of the table."""
    return measured(WAYS, ROUNDS)


if __name__ == "__main__":
    hand_over(main())
