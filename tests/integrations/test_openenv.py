"""Inquiries behind an OpenEnv server: the episodes of `play`, a session for each client, and one-line refusals.

These tests need OpenEnv, which does not go with the pins of verifiers and mcp; scripts/test.sh runs them in an overlay.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from openenv.cli.commands.push import _validate_openenv_directory
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.generic_client import GenericEnvClient

from inquitree_gym.integrations.openenv import EpisodeAction, EpisodeEnvironment
from inquitree_gym.integrations.session import play_task
from inquitree_gym.integrations.tasks import EpisodeTask, make_tasks
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.text_limits import MAX_ACTION_LENGTH
from tests.contract.command_line import inquitree
from tests.test_docs import DOCS, blocks

pytestmark = [pytest.mark.e2e, pytest.mark.weights, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

ROOT = Path(__file__).parents[2]
PROGRAM = "from inquitree_gym.cli import main; main()"
SERVED = ("--papers", "paper2,paper28", "--fake-level", "3", "--seeds", "2")
CLIENTS = 4


@contextmanager
def serving(*options: object) -> Iterator[str]:
    """Start a server on a free port; yield its address."""
    command = [sys.executable, "-c", PROGRAM, "serve", *map(str, options), "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    lines = iter(server.stderr.readline, "")
    try:
        yield next(found[0] for line in lines if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
    finally:
        server.terminate()
        server.communicate()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("episodes")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with serving(*SERVED, "--episodes", folder) as url:
        yield url


@pytest.fixture(scope="module")
def tasks() -> tuple[EpisodeTask, ...]:
    return make_tasks("paper2,paper28", seeds=2, fake_level=3)


@pytest.fixture(scope="module")
def played(tasks) -> Episode:
    """The episode of the oracle on the first task, by `play`."""
    return play_task(tasks[0])


@pytest.fixture
def client(address: str) -> Iterator[Any]:
    with GenericEnvClient(base_url=address).sync() as connected:
        yield connected


def play(client: Any, actions: tuple[str, ...], **options: Any) -> list[Any]:
    return [client.reset(**options), *[client.step({"text": action}) for action in actions]]


def logged(folder: Path) -> set[str]:
    return {read_episode(file).fingerprint for file in folder.glob("*.jsonl")}


def ask(url: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return json.load(response)


# Played


def test_an_episode_over_the_socket_is_the_episode_of_play(client: Any, played: Episode, folder: Path):
    shown = play(client, played.actions, paper="2", seed=0)
    texts = [turn.observation for turn in played.turns]
    assert [each.observation["text"] for each in shown] == [*texts, played.footer.observation]
    assert [each.done for each in shown] == [False] * len(texts) + [True]
    assert [each.reward for each in shown] == [0.0] * len(texts) + [pytest.approx(played.footer.episode_return)]
    assert played.fingerprint in logged(folder)


def test_sessions_play_at_the_same_time(address: str, tasks, folder: Path):
    def one(index: int) -> list[Any]:
        with GenericEnvClient(base_url=address).sync() as client:
            return play(client, play_task_actions[index], split="test", index=index)

    play_task_actions = [play_task(task).actions for task in tasks]
    with ThreadPoolExecutor(CLIENTS) as pool:
        ends = [shown[-1] for shown in pool.map(one, range(CLIENTS))]
    assert all(end.done for end in ends)
    assert {play_task(task).fingerprint for task in tasks} <= logged(folder)


def test_the_state_tells_the_task_and_nothing_hidden(client: Any, played: Episode, tasks):
    play(client, played.actions[:2], split="test", index=0, episode_id="mine")
    assert client.state() == {"episode_id": "mine", "step_count": 2, "task": tasks[0].key, "over": False}


def test_the_world_is_chosen_and_hidden():
    (task,) = make_tasks("paper2", seeds=1, world="complement")
    env = EpisodeEnvironment([task])
    env.reset()
    assert task.key.endswith("/s0/rules.world=complement")
    assert "complement" not in f"{env.state} {env.list_tasks('test')}"
    env.reset(paper="paper2", world="01101", rules={"redo_turn": False})
    assert env.state.task.endswith("/s0/rules.redo_turn=False")
    assert env._session.task.options["world"] == "01101"
    env.reset(rules="paper")
    assert env._session.task.options["world"] == "complement"
    env.close()


def test_options_of_a_reset_make_the_episode(client: Any, folder: Path):
    client.reset(paper="paper28", seed=7, fake_level=5, max_turns=9)
    assert client.state()["task"].endswith("/fake_level=5/s7/max_turns=9")
    assert client.reset().observation["text"] == client.reset(split="test", index=0).observation["text"]


# Refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"paper": "/etc/shadow"}, "a task is named by its id"),
        ({"paper": "paper6"}, "may not be distributed"),
        ({"paper": "paper12"}, "'paper12' is not served here; served: paper2, paper28"),
        ({"privileged": True}, "privileged"),
        ({"fake_levle": 3}, "did you mean 'fake_level'"),
        ({"fake_level": 11}, "fake_level"),
        ({"fake_level": [0, 3]}, "give no list"),
        ({"world": "01"}, "world '01' must have one digit for each axis"),
        ({"max_turns": "soon"}, "max_turns"),
        ({"seed": -1}, "seeds"),
        ({"split": "test", "index": 4}, "index must be an integer from 0 to 3"),
        ({"split": "train", "index": 0}, "a task is chosen by split='test' and index alone"),
        ({"index": 0, "split": "test", "seed": 3}, "a task is chosen by"),
    ],
)
def test_a_wrong_reset_is_refused_and_the_session_goes_on(
    client: Any, played: Episode, options: dict[str, Any], message: str
):
    before = play(client, played.actions[:1], split="test", index=0)[-1]
    with pytest.raises(RuntimeError, match=re.escape(message)) as refused:
        client.reset(**options)
    assert "Traceback" not in str(refused.value)
    assert client.state()["step_count"] == 1
    assert client.step({"text": played.actions[1]}).observation != before.observation


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"text": "x" * (MAX_ACTION_LENGTH + 1)}, "a move has at most"),
        ({"text": 3}, "Invalid message"),
        ({"text": "Why?", "tree": "paper12"}, "Invalid message"),
    ],
)
def test_a_wrong_move_is_refused_and_the_session_goes_on(client: Any, played: Episode, action: Any, message: str):
    client.reset(split="test", index=0)
    with pytest.raises(RuntimeError, match=message):
        client.step(action)
    assert client.state()["step_count"] == 0
    assert client.step({"text": played.actions[0]}).observation["text"] == played.turns[1].observation


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("reset", {"privileged": True}, "privileged"),
        ("reset", {"paper": "/etc/shadow"}, "a task is named by its id"),
        ("step", {"action": {"text": "Why?"}}, "call reset first, over the same WebSocket"),
        ("inquitree/task", {"split": "test", "index": -1}, "Invalid task index"),
    ],
)
def test_a_wrong_request_over_http_is_refused_in_one_line(address: str, path: str, body: Any, message: str):
    with pytest.raises(HTTPError) as refused:
        ask(f"{address}/{path}", body)
    with refused.value as answer:
        assert (answer.status, message in json.load(answer)["detail"]) == (400, True)


# Described


def test_the_tasks_are_listed(address: str, tasks):
    url = f"{address}/inquitree"
    assert [split["name"] for split in ask(f"{url}/splits")] == ["test"]
    assert ask(f"{url}/num_tasks", {"split": "test"}) == {"num_tasks": len(tasks)}
    listed = ask(f"{url}/tasks", {"split": "test"})["tasks"]
    assert [task["id"] for task in listed] == [task.key for task in tasks]
    assert ask(f"{url}/task", {"split": "test", "index": 1})["task"] == listed[1]
    assert ask(f"{url}/task_range", {"split": "test", "start": 1, "stop": 3})["tasks"] == listed[1:3]
    assert ask(f"{url}/num_tasks", {"split": "train"}) == {"num_tasks": 0}


def test_no_code_of_a_client_is_run_and_the_environment_plays_without_a_server(tasks, played: Episode):
    assert not issubclass(EpisodeEnvironment, MCPEnvironment)
    assert EpisodeEnvironment.SUPPORTS_CONCURRENT_SESSIONS
    assert EpisodeEnvironment.REQUIRES_SINGLE_THREAD_EXECUTOR
    env = EpisodeEnvironment(tasks)
    env.reset()
    last = [env.step(EpisodeAction(text=action)) for action in (*played.actions, "After the end.")][-1]
    assert (last.done, last.text) == (True, played.footer.observation)
    env.close()
    env.close()


@pytest.mark.parametrize("target", ["--url", "folder"])
def test_openenv_validates_the_server_and_the_folder(address: str, target: str):
    where = [target, address] if target == "--url" else [str(ROOT / "environments" / "openenv"), "--level", "static"]
    done = subprocess.run(
        [sys.executable, "-m", "openenv.cli", "validate", *where], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


# The command


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--papers", "/etc/shadow"), "a task is named by its id"),
        (("--fake-level", "11"), "fake_level"),
        (("--seeds", "0"), "seeds"),
    ],
)
def test_wrong_options_end_the_command_in_one_line(options, message: str):
    done = inquitree("serve", *options)
    assert (done.status, done.out, message in done.said) == (2, "", True)


def test_other_options_of_the_command_reach_the_episode(tmp_path: Path):
    options = ("--papers", "2", "--max-turns", "5n", "--embedder", "hashed-words", "--rules", "paper")
    with serving(*options, "--episodes", tmp_path) as url, GenericEnvClient(base_url=url).sync() as client:
        client.reset(seed=0, paper="2")
        assert client.state()["task"].endswith("/max_turns=5n/rules.preset=paper")
    (file,) = tmp_path.glob("*.jsonl")
    header = read_episode(file).header
    assert (header.rules["max_turns"], header.setup.embedder.name, header.agent) == (
        "5n",
        "hashed-words",
        {"name": "openenv"},
    )
    assert header.rules["decisions"] == "tokens"


def test_single_rules_hold_for_every_reset():
    env = EpisodeEnvironment(make_tasks("paper2", seeds=1, rules={"redo_turn": True}))
    env.reset(seed=3, fake_level=2, max_turns=None)
    assert env.state.task.endswith("/fake_level=2/s3/max_turns=None/rules.redo_turn=True")
    env.close()


def test_the_example_of_the_page_runs(address: str):
    (source,) = [source for _, needs, source in blocks(DOCS / "integrations.md", "python") if needs == "openenv"]
    exec(compile(source.replace("http://127.0.0.1:8000", address), "integrations.md", "exec"), {})


def test_the_folder_serves_and_is_what_openenv_push_takes(monkeypatch: pytest.MonkeyPatch):
    folder = ROOT / "environments" / "openenv"
    assert _validate_openenv_directory(folder)[0] == "inquitree"
    monkeypatch.syspath_prepend(str(folder))
    assert import_module("server.app").app.title
    for name in ("server", "server.app"):
        monkeypatch.delitem(sys.modules, name)
