"""An inquiry over MCP: the same episode over stdio and HTTP, resumed after a kill, deaf to whatever is no move."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from inquitree_gym.integrations.mcp import MCPView, episode_server
from inquitree_gym.integrations.session import EpisodeSession, play_task
from inquitree_gym.integrations.tasks import EpisodeTask, make_tasks
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.rollout import in_step_thread
from inquitree_gym.text_limits import MAX_ACTION_LENGTH
from tests.contract.command_line import inquitree
from tests.frames import FRAMES

pytestmark = [pytest.mark.e2e, pytest.mark.weights]

COMMAND = (sys.executable, "-c", "from inquitree_gym.cli import main; main()", "mcp")
OPTIONS = ("paper2", "--fake-level", "3", "--seed", "4")
KILLED_AT = 5


@pytest.fixture(scope="module")
def task() -> EpisodeTask:
    return make_tasks("paper2", seeds=[4], fake_level=3)[0]


@pytest.fixture
def session(task: EpisodeTask) -> EpisodeSession:
    begun = EpisodeSession(task)
    begun.begin()
    return begun


@pytest.fixture(scope="module")
def played(task: EpisodeTask) -> Episode:
    """The episode of the oracle, by `play`."""
    return play_task(task)


def told(result: Any) -> MCPView:
    """What a tool answered; its text is the observation itself."""
    assert not result.is_error, result.content[0].text
    view = MCPView.model_validate(result.structured_content)
    assert [content.text for content in result.content] == [view.observation]
    return view


async def play(client: Client, actions: tuple[str, ...]) -> list[MCPView]:
    calls = [("look", {}), *[("move", {"text": action}) for action in actions]]
    return [told(await client.call_tool(tool, arguments)) for tool, arguments in calls]


def check_play(shown: list[MCPView], played: Episode) -> None:
    assert [view.observation for view in shown] == [
        *(turn.observation for turn in played.turns),
        played.footer.observation,
    ]
    assert [view.turn for view in shown] == list(range(len(shown)))
    assert [view.over for view in shown] == [False] * len(played.turns) + [True]


# Over stdio


def test_an_episode_over_stdio_is_the_episode_of_play(played: Episode, tmp_path: Path):
    async def over_stdio() -> list[MCPView]:
        arguments = [*COMMAND[1:], *OPTIONS, "--log", str(tmp_path / "one.jsonl")]
        server = StdioServerParameters(command=COMMAND[0], args=arguments, env=dict(os.environ))
        async with Client(stdio_client(server)) as client:
            return await play(client, played.actions)

    check_play(asyncio.run(over_stdio()), played)
    episode = read_episode(tmp_path / "one.jsonl")
    assert episode.fingerprint == played.fingerprint
    assert episode.header.agent == {"name": "mcp"}


class Lines:
    """A client that reads each line of the server's output, and can kill it."""

    def __init__(self, *options: object) -> None:
        command = [*COMMAND, *map(str, options)]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._last = 0
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        self.ask("initialize", client)
        self._send({"method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        answer = json.loads(self._server.stdout.readline())
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", self._last)
        return answer["result"]

    def move(self, text: str) -> dict[str, Any]:
        return self.ask("tools/call", {"name": "move", "arguments": {"text": text}})["structuredContent"]

    def kill(self) -> None:
        self._server.kill()
        self._server.communicate()

    def close(self) -> str:
        """Close the input, on which the server ends; return what else it put out."""
        rest, _ = self._server.communicate()
        assert self._server.returncode == 0
        return rest

    def _send(self, message: dict[str, Any]) -> None:
        self._server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._server.stdin.flush()


def test_a_killed_server_resumes_to_the_same_fingerprint_and_puts_out_nothing_but_protocol(
    played: Episode, tmp_path: Path
):
    log = tmp_path / "one.jsonl"
    first = Lines(*OPTIONS, "--log", log)
    for action in played.actions[:KILLED_AT]:
        first.move(action)
    first.kill()
    assert len(read_episode(log).turns) == KILLED_AT
    second = Lines(*OPTIONS, "--log", log)
    shown = [second.move(action) for action in played.actions[KILLED_AT:]]
    assert shown[0]["turn"] == KILLED_AT + 1
    assert shown[-1]["over"]
    assert second.close() == ""
    assert read_episode(log).fingerprint == played.fingerprint


# Over HTTP


@contextmanager
def serving(*options: object) -> Iterator[str]:
    """Start a server on a free port; yield its address."""
    command = [*COMMAND, *map(str, options), "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield re.search(r"http://127\.0\.0\.1:\d+/mcp", server.stderr.readline())[0]
    finally:
        server.terminate()
        server.communicate()


def test_an_episode_over_http_is_the_same_whoever_makes_its_moves(played: Episode, tmp_path: Path):
    async def over_http(url: str) -> list[MCPView]:
        async with Client(url) as one, Client(url) as other:
            shown = await play(one, played.actions[:3])
            assert told(await other.call_tool("look", {})) == shown[-1]
            return [*shown, *(await play(other, played.actions[3:]))[1:]]

    with serving(*OPTIONS, "--log", tmp_path / "one.jsonl") as url:
        check_play(asyncio.run(over_http(url)), played)
    assert read_episode(tmp_path / "one.jsonl").fingerprint == played.fingerprint


# What a client is offered


def test_a_client_is_told_the_rules_and_what_the_tools_do(session: EpisodeSession):
    async def ask() -> tuple[Any, Any, Any]:
        async with Client(episode_server(session)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            (prompt,) = (await client.list_prompts()).prompts
            return tools, await client.get_prompt(prompt.name), client.instructions

    tools, prompt, instructions = asyncio.run(ask())
    assert set(tools) == {"look", "move"}
    assert tools["look"].annotations.read_only_hint
    assert not tools["move"].annotations.read_only_hint
    assert not tools["move"].annotations.destructive_hint
    assert tools["move"].input_schema["required"] == ["text"]
    assert set(tools["move"].output_schema["properties"]) == {"observation", "turn", "over"}
    rules = prompt.messages[0].content.text
    assert session.observation in rules
    assert "`move`" in rules
    assert instructions == rules


# Whatever is no move


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("move", {"text": "x" * (MAX_ACTION_LENGTH + 1)}, "a move has at most"),
        ("move", {"text": "  "}, "yours is empty"),
        ("move", {"text": "ACTION: None"}, "its ACTION part names no move"),
        ("move", {"text": "N/A"}, "it names no move"),
        ("move", {"text": "ACTION: a\nACTION: b"}, "2 parts of it begin with ACTION:"),
        ("move", {"text": 3}, "a move must be a text, got int"),
        ("move", {}, "a move must be a text, got NoneType"),
        ("move", {"text": "Why?", "tree": "/etc/shadow"}, "'move' takes text; leave out tree"),
        ("look", {"privileged": True}, "'look' takes no arguments; leave out privileged"),
    ],
)
def test_what_is_no_move_is_refused_in_one_line_and_changes_nothing(
    session: EpisodeSession, played: Episode, tool: str, arguments: dict[str, Any], message: str
):
    async def ask() -> tuple[Any, MCPView]:
        async with Client(episode_server(session)) as client:
            refused = await client.call_tool(tool, arguments)
            return refused, told(await client.call_tool("move", {"text": played.actions[0]}))

    refused, after = asyncio.run(ask())
    (content,) = refused.content
    assert refused.is_error
    assert message in content.text
    assert "\n" not in content.text
    assert (after.turn, after.observation) == (1, played.turns[1].observation)


# Several moves in one message


def test_several_calls_of_one_message_play_one_move(session: EpisodeSession, played: Episode):
    async def ask() -> tuple[list[Any], Any, MCPView]:
        answered = threading.Event()
        async with Client(episode_server(session)) as client:
            held = asyncio.ensure_future(in_step_thread(answered.wait))
            calls = [client.call_tool("move", {"text": text}) for text in (played.actions[0], "redo", "redo")]
            first, *others = map(asyncio.ensure_future, calls)
            refused = await asyncio.gather(*others)  # while the first one waits for the thread
            answered.set()
            await held
            return refused, await first, told(await client.call_tool("move", {"text": played.actions[1]}))

    refused, first, after = asyncio.run(ask())
    for each in refused:
        assert each.is_error
        assert each.content[0].text.endswith("one move at a time; read the answer first")
    assert told(first).observation == played.turns[1].observation
    assert (after.turn, after.observation) == (2, played.turns[2].observation)


def test_framed_moves_are_the_moves(session: EpisodeSession, played: Episode):
    frames = list(FRAMES.values())
    framed = tuple(frames[place % len(frames)](action) for place, action in enumerate(played.actions))

    async def over_client() -> list[MCPView]:
        async with Client(episode_server(session)) as client:
            return await play(client, framed)

    check_play(asyncio.run(over_client()), played)
    assert session.episode.fingerprint == played.fingerprint


# The command


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("/etc/shadow",), "a task is named by its id"),
        (("paper2", "--fake-level", 11), "fake_level"),
        (("paper6",), "may not be distributed"),
    ],
)
def test_wrong_options_end_the_command_in_one_line(options, message: str):
    done = inquitree("mcp", *options)
    assert (done.status, done.out, message in done.said) == (2, "", True)
    assert "Traceback" not in done.err


def test_options_of_the_command_reach_the_episode(tmp_path: Path):
    options = ("--seed", 1, "--fake-level", 2, "--max-turns", "3n", "--embedder", "hashed-words")
    server = Lines("2", *options, "--rules", "paper", "--log", tmp_path / "one.jsonl")
    for text in ('{"text": 1}', "12", "null"):  # texts that look like JSON are texts
        server.move(text)
    server.close()
    episode = read_episode(tmp_path / "one.jsonl")
    header = episode.header
    assert (header.seed, header.rules["fake_level"], header.rules["max_turns"]) == (1, 2, "3n")
    assert (header.setup.embedder.name, header.rules["decisions"]) == ("hashed-words", "tokens")
    assert episode.actions == ('{"text": 1}', "12", "null")


def test_a_port_that_is_taken_is_told():
    with serving(*OPTIONS) as url:
        port = url.split(":")[2].removesuffix("/mcp")
        done = inquitree("mcp", *OPTIONS, "--port", port)
    assert (done.status, f"cannot listen on port {port}" in done.said) == (2, True)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    done = inquitree("mcp", "paper2")
    assert (done.status, "pip install -c constraints.txt '.[mcp]'" in done.said) == (2, True)
