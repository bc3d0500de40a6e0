"""The same loop under asyncio: many episodes at once, in the order and with the logs of one after the other."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from inquitree_gym.baselines import Ask, OracleAgent, RandomAgent, make_agent
from inquitree_gym.embeddings import ReaderEmbedder
from inquitree_gym.errors import LogError
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.log import read_episode
from inquitree_gym.rollout import aplay, play
from inquitree_gym.trees import Tree
from tests.servers import Rote, Service
from tests.strategies import make_tree
from tests.test_rollout import PaidAgent, behind

AT_MOST = 60.0
"""Seconds after which a test that hangs gives up; none waits for it otherwise."""


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(AT_MOST):
            return await coroutine

    return asyncio.run(bounded())


@pytest.fixture(scope="module")
def tree() -> Tree:
    return make_tree([[], [0], [0]], [2, 1, 1], tree_id="three")


@pytest.fixture
def env(tree: Tree, reader: ReaderEmbedder) -> InquiryEnv:
    return InquiryEnv(tree, embedder=reader, fake_level=4, privileged=True)


class Watched(gym.Wrapper):
    """Tells a function of every step before it is taken."""

    def __init__(self, env: gym.Env, told: Callable[[], None]) -> None:
        super().__init__(env)
        self.told = told

    def reset(self, **options: Any) -> Any:
        self.told()
        return super().reset(**options)

    def step(self, action: str) -> Any:
        self.told()
        return super().step(action)


@pytest.mark.parametrize("kind", [PaidAgent, RandomAgent, OracleAgent])
def test_an_episode_is_the_same_with_asyncio_and_without(kind: type, tree: Tree, env: InquiryEnv):
    one, other = play(env, kind(tree), 5), run(aplay(env, kind(tree), 5))
    assert one.fingerprint == other.fingerprint
    assert behind(one) == behind(other)
    assert other.header.agent == kind(tree).config


def test_episodes_at_once_come_out_as_one_after_the_other(tree: Tree, reader: ReaderEmbedder, tmp_path: Path):
    def make() -> InquiryEnv:
        return InquiryEnv(tree, embedder=reader, fake_level=4)

    async def all_at_once() -> list[Any]:
        plays = (aplay(make(), PaidAgent(tree), seed, file=tmp_path / f"{seed}.jsonl") for seed in range(8))
        return await asyncio.gather(*plays)

    episodes = run(all_at_once())
    for seed, episode in enumerate(episodes):
        alone = play(make(), PaidAgent(tree), seed)
        assert episode.fingerprint == alone.fingerprint
        assert behind(episode) == behind(alone)
        assert read_episode(tmp_path / f"{seed}.jsonl") == episode


def test_the_event_loop_goes_on_while_an_environment_steps(tree: Tree, env: InquiryEnv):
    stepping, seen = threading.Event(), threading.Event()

    def wait_until_seen() -> None:
        stepping.set()
        assert seen.wait(AT_MOST), "nothing else went on"

    async def look() -> None:
        while not stepping.is_set():
            await asyncio.sleep(0)
        seen.set()

    async def both() -> Any:
        return (await asyncio.gather(aplay(Watched(env, wait_until_seen), RandomAgent(tree), 0), look()))[0]

    assert run(both()).status == "concluded"


def test_every_environment_steps_in_one_thread_and_not_in_that_of_the_loop(tree: Tree, reader: ReaderEmbedder):
    threads: list[int] = []

    async def all_at_once() -> None:
        envs = [
            Watched(InquiryEnv(tree, embedder=reader), lambda: threads.append(threading.get_ident())) for _ in "123"
        ]
        await asyncio.gather(*(aplay(env, PaidAgent(tree), seed) for seed, env in enumerate(envs)))

    run(all_at_once())
    run(all_at_once())
    assert len(set(threads)) == 1
    assert threading.get_ident() not in threads


def test_a_step_under_way_is_finished_and_logged_when_its_episode_is_cancelled(
    tree: Tree, env: InquiryEnv, tmp_path: Path
):
    file, stepping, go = tmp_path / "e.jsonl", threading.Event(), threading.Event()
    steps = iter(range(100))

    def hold_the_third() -> None:
        if next(steps) == 3:
            stepping.set()
            assert go.wait(AT_MOST)

    async def cancel() -> None:
        task = asyncio.create_task(aplay(Watched(env, hold_the_third), agent, 6, file=file))
        while not stepping.is_set():
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # an impatient second time
        await asyncio.sleep(0)
        assert not task.done()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    agent = PaidAgent(tree)
    run(cancel())
    torn = read_episode(file)
    assert (torn.status, len(torn.turns), len(torn.replies)) == ("failed", 3, 3)
    assert torn.failure.error.startswith("CancelledError")
    whole = run(aplay(env, agent, 6, file=file))
    assert agent.asked == list(range(1, len(whole.turns) + 1))
    assert whole.fingerprint == play(env, PaidAgent(tree), 6).fingerprint


def test_a_step_that_waits_for_its_turn_is_not_taken_when_its_episode_is_cancelled(
    tree: Tree, reader: ReaderEmbedder, tmp_path: Path
):
    stepping, go, taken = threading.Event(), threading.Event(), []

    def hold() -> None:
        stepping.set()
        assert go.wait(AT_MOST)

    async def cancel() -> None:
        first = asyncio.create_task(aplay(Watched(InquiryEnv(tree, embedder=reader), hold), RandomAgent(tree), 0))
        while not stepping.is_set():
            await asyncio.sleep(0)
        waiting = Watched(InquiryEnv(tree, embedder=reader), lambda: taken.append(1))
        second = asyncio.create_task(aplay(waiting, RandomAgent(tree), 0, file=tmp_path / "e.jsonl"))
        for _ in range(5):
            await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        go.set()
        assert (await first).status == "concluded"

    run(cancel())
    assert taken == []
    assert not (tmp_path / "e.jsonl").exists()


def test_a_request_that_the_log_did_not_foresee_is_refused_and_not_paid(tree: Tree, env: InquiryEnv, tmp_path: Path):
    file = tmp_path / "e.jsonl"
    play(env, PaidAgent(tree), 3, file=file)
    lines = file.read_text().splitlines(keepends=True)
    changed = [line.replace('"role":"proposer"', '"role":"sceptic"') for line in lines]
    for torn in (changed[:2], changed[:5]):
        file.write_text("".join(torn))
        agent = PaidAgent(tree)
        with pytest.raises(LogError, match="turn 1: the agent asks its proposer, but the log has no such reply"):
            play(env, agent, 3, file=file)
        assert agent.asked == []


def test_a_turn_that_was_played_is_not_paid_for_by_an_agent_that_asks_more(tree: Tree, env: InquiryEnv, tmp_path: Path):
    class Twice(PaidAgent):
        async def decide(self, observation: str, info: Mapping[str, Any], ask: Ask | None = None) -> str:
            await super().decide(observation, info, ask)
            return await super().decide(observation, info, ask)

    file = tmp_path / "e.jsonl"
    play(env, PaidAgent(tree), 3, file=file)
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:7]))
    agent = Twice(tree)
    with pytest.raises(LogError, match="turn 1: the agent asks its proposer, but the log has no such reply"):
        play(env, agent, 3, file=file)
    assert agent.asked == []


def test_play_works_where_an_event_loop_runs_already(tree: Tree, env: InquiryEnv, service: Service):
    async def as_in_a_notebook() -> str:
        service.reply = Rote(tree)
        agent = make_agent("llm", env, model="gpt-4o-mini", base_url=service.address)
        return play(env, agent, 0).status

    assert run(as_in_a_notebook()) == "concluded"


FORKED = """
import asyncio, os, sys, hashlib
import numpy as np
from inquitree_gym.baselines import RandomAgent
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.rollout import aplay
from inquitree_gym.trees import load_tree

class Letters:
    name, dim, threshold, digest = "letters", 26, 0.5, hashlib.sha256(b"letters").hexdigest()
    def embed(self, texts):
        rows = np.array([[t.lower().count(chr(97 + i)) + 1 for i in range(26)] for t in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

tree = load_tree("paper2")
def once():
    env = InquiryEnv(tree, embedder=Letters(), max_turns=3)
    async def some():
        async with asyncio.timeout(60):
            agent = RandomAgent(tree)
            return (await aplay(Short(env), agent, 0)).status
    return asyncio.run(some())

import gymnasium as gym
Short = lambda env: gym.wrappers.TimeLimit(env, 2)  # ends before the conclusion, which would load the judge
print(once(), flush=True)
child = os.fork()
if not child:
    print(once(), flush=True)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.e2e
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_forked_process_steps_in_a_thread_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=False, timeout=AT_MOST)
    assert (done.returncode, done.stdout.split()) == (0, ["truncated", "truncated"]), done.stderr
