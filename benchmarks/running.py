"""Measure whole studies: 1,980 episodes of the random agent, and 64 concurrent episodes with a model on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from job import run
from measure import Row, alternate, hand_over, ratios, seconds, spread

from inquitree_gym.llm.litellm import load_litellm, submit
from inquitree_gym.log import read_episode
from inquitree_gym.runner import RunOptions, RunSummary, make_study, run_study

EPISODES = 1_980
JOB_SECONDS = 60
"""Target for playing, logging and scoring them."""
TURN_MS = 5
"""Target: milliseconds per turn that a run adds to agent and embedder."""
MAX_CONCURRENCY = 64
ROUNDS = 3
LEVELS = ",".join(map(str, range(11)))
MODEL = "gpt-4o-mini"

SERVER = """
import asyncio, json
said = {"role": "assistant", "content": "THOUGHT: Let me see.\\\\nACTION: explore new subtopic"}
body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": said}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}}
answer, asked = json.dumps(body).encode(), []

def packed(content):
    return b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%b" % (len(content), content)

async def talk(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            sizes = [int(line[15:]) for line in head.split(b"\\r\\n") if line.lower().startswith(b"content-length:")]
            if sizes:
                asked.append(await reader.readexactly(sizes[0]))
                writer.write(packed(answer))
            else:
                writer.write(packed(b"[" + b",".join(asked) + b"]"))
                asked.clear()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
"""Server that gives every chat the same reply; a request without a body returns the chats since the last one."""


def big_job() -> Iterator[Row]:
    """Play and score the random agent on all trees and levels, with cached vectors."""
    program = str(Path(sys.executable).with_name("inquitree"))
    with TemporaryDirectory() as folder:
        flags = ["--agent", "random", "--papers", "all", "--fake-level", LEVELS, "--seeds", "10", "--out", folder]
        played, *_ = run([program, "run", *flags], dict(os.environ))
        again, *_ = run([program, "run", *flags], dict(os.environ))
        scored, *_ = run([program, "score", folder], dict(os.environ))
        episodes = [read_episode(file) for file in Path(folder, "episodes").iterdir()]
    turns = [turn for episode in episodes for turn in episode.turns]
    beyond = 1e3 * (played - sum(turn.agent_seconds or 0.0 for turn in turns)) / len(turns)
    total = played + scored
    yield Row(
        f"{len(episodes):,} episodes of `random`, 18 papers × 11 levels × 10 seeds, played and scored",
        f"{total:.1f} s ({played:.1f} + {scored:.1f}; {again:.1f} to resume when complete)",
        target=f"< {JOB_SECONDS} s", met=len(episodes) == EPISODES and total < JOB_SECONDS,
    )  # fmt: skip
    yield Row(
        "time per turn of that run outside the agent: step, log, process start", f"{beyond:.2f} ms",
        target=f"< {TURN_MS} ms", met=beyond < TURN_MS,
    )  # fmt: skip


def saturation() -> Iterator[Row]:
    """Play 64 concurrent episodes against a server in another process, then send the same requests without a run."""
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        with TemporaryDirectory() as folder:
            yield from _saturation(address, Path(folder))
    finally:
        server.kill()
        server.wait()


def _saturation(address: str, folder: Path) -> Iterator[Row]:
    _play(address, folder / "warm", 1)
    httpx.get(address)
    number = iter(range(1_000))
    _play(address, folder / "first", MAX_CONCURRENCY)
    bodies = httpx.get(address, timeout=60).json()
    cpu: dict[str, list[float]] = {"run": [], "litellm": [], "bare": []}

    def timed(name: str, task: Callable[[], Any]) -> Callable[[], float]:
        def measure() -> float:
            before = time.process_time()
            took = seconds(task)
            cpu[name].append(time.process_time() - before)
            httpx.get(address, timeout=60)
            return len(bodies) / took

        return measure

    tasks = [
        timed("run", lambda: _play(address, folder / f"run{next(number)}", MAX_CONCURRENCY)),
        timed("litellm", lambda: submit(_ask(bodies, lambda body: _litellm(address, body))).result()),
        timed("bare", lambda: asyncio.run(_bare(address, bodies))),
    ]
    alternate(tasks, 1)
    for values in cpu.values():
        values.clear()
    ours, theirs, bare = alternate(tasks, ROUNDS)
    to_litellm, to_bare = ratios(ours, theirs), ratios(ours, bare)
    what = f"turns of {MAX_CONCURRENCY} concurrent episodes, model on loopback"
    yield Row(
        what, spread(ours).show(".0f", "/s"), f"same requests, litellm alone: {spread(theirs).show('.0f', '/s')}",
        to_litellm.show(".2f"),
    )  # fmt: skip
    yield Row(
        what, spread(ours).show(".0f", "/s"), f"same requests, bare HTTP client: {spread(bare).show('.0f', '/s')}",
        to_bare.show(".3f"),
    )  # fmt: skip
    beyond = spread(1e3 * (mine - its) / len(bodies) for mine, its in zip(cpu["run"], cpu["litellm"], strict=True))
    yield Row(
        "CPU time of such a turn beyond litellm's", beyond.show(".2f", "ms"), target=f"< {TURN_MS} ms",
        met=beyond.median < TURN_MS,
    )  # fmt: skip


def _play(address: str, folder: Path, episodes: int) -> None:
    model = {"model": MODEL, "base_url": address}
    study = make_study(agents=("llm",), models=[model], trees=("paper2",), seeds=episodes, max_turns="3n")
    assert run_study(study, folder, RunOptions(MAX_CONCURRENCY)) == RunSummary(played=episodes, found=0)


async def _ask(bodies: list[Any], ask: Callable[[Any], Awaitable[Any]]) -> None:
    waiting = iter(bodies)

    async def work() -> None:
        for body in waiting:
            await ask(body)

    await asyncio.gather(*(work() for _ in range(MAX_CONCURRENCY)))


async def _litellm(address: str, body: Any) -> None:
    asked = {name: body[name] for name in ("messages", "temperature", "max_tokens", "seed")}
    await load_litellm().acompletion(model=f"openai/{MODEL}", api_base=address, api_key="none", num_retries=0, **asked)


async def _bare(address: str, bodies: list[Any]) -> None:
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=MAX_CONCURRENCY), timeout=60) as client:

        async def ask(body: Any) -> None:
            json.loads((await client.post(f"{address}/chat/completions", json=body)).content)

        await _ask(bodies, ask)


if __name__ == "__main__":
    os.environ.setdefault("OPENAI_API_KEY", "none")
    hand_over([*big_job(), *saturation()])
