"""Runs that are killed at random moments, and go on.

`INQUITREE_KILLS` in the environment sets how many kills; the moments are drawn by a seeded generator and struck by what
happens, a request that arrives or a line that is written, never by a clock.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from inquitree_gym.log import Episode, has_header, read_episode
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.results.score import score_episode
from inquitree_gym.runs.folder import load_manifest
from inquitree_gym.trees import load_tree
from tests.runner.played import sent_seed
from tests.servers import WAIT_AT_MOST, Body, Rote, Service

pytestmark = [
    pytest.mark.weights,
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL"),
]

KILLS = int(os.environ.get("INQUITREE_KILLS", "3"))
TREE = load_tree("paper2")
EPISODES_EACH = 3
FLAGS = ("--model", "gpt-4o-mini", "--papers", "2", "--seeds", EPISODES_EACH)
Asked = tuple[int, str, int]
"""Seed of the request, role, and how many replies of that role came before."""


class Case(NamedTuple):
    """What is played and killed."""

    flags: tuple[object, ...]
    reply: Callable[[Body], str]
    score: Callable[[Episode], object]
    kills: int


def project(body: Body) -> str:
    """A projection that tells how many came before it."""
    return f"This study finds {sum(message['role'] == 'assistant' for message in body['messages'])} effects."


CASES: dict[str, Case] = {
    "inquiry": Case(
        (*FLAGS, "--agent", "sceptic", "--fake-level", 4),
        Rote(TREE),
        lambda episode: score_episode(episode, TREE).detail,
        KILLS,
    ),
    "projection": Case(
        (*FLAGS, "--agent", "llm", "--env", "projection", "--memory", "conversation"),
        project,
        lambda episode: score_episode(episode, load_task("paper2")).detail,
        max(1, KILLS // 3),
    ),
}


class Watch:
    """Answers by heart, notes what is asked for, and kills who asks when it is told to."""

    def __init__(self, reply: Callable[[Body], str]) -> None:
        self._reply = reply
        self.asked: Counter[Asked] = Counter()
        self.paid_before: set[Asked] = set()
        self.twice: list[Asked] = []
        self.begin(None)

    def begin(self, kill_at: int | None) -> None:
        """Count requests anew, and kill at the one of that number."""
        self._left = kill_at
        self.victim: Future[int] = Future()

    def __call__(self, body: Body) -> str:
        asked = self._read(body)
        self.asked[asked] += 1
        if asked in self.paid_before:
            self.twice.append(asked)
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                os.kill(self.victim.result(WAIT_AT_MOST), signal.SIGKILL)
        return self._reply(body)

    def _read(self, body: Body) -> Asked:
        role = "sceptic" if "VERDICT" in body["messages"][0]["content"] else "proposer"
        return body["seed"], role, sum(message["role"] == "assistant" for message in body["messages"])


def episodes(folder: Path) -> dict[str, Episode]:
    return {file.name: read_episode(file) for file in sorted((folder / "episodes").iterdir()) if has_header(file)}


def paid(found: dict[str, Episode]) -> set[Asked]:
    """Return what the logs hold replies to."""
    counted: set[Asked] = set()
    for episode in found.values():
        roles = Counter[str]()
        for reply in episode.replies:
            counted.add((sent_seed(episode.header.seed), reply.role, roles[reply.role]))
            roles[reply.role] += 1
    return counted


def moments() -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Yield moments to be killed at: a request, or a line of which none, a part or all is written."""
    rng = np.random.default_rng(5)
    while True:
        if rng.random() < 0.4:
            yield int(rng.integers(1, 12)), {}
        else:
            yield None, {"die_in_line": [int(rng.integers(1, 24)), float(rng.choice([0.0, 0.4, 0.9, 1.0]))]}


@pytest.mark.parametrize("kind", ["inquiry", "projection"])
def test_killed_runs_go_on_and_come_out_as_if_nothing_had_been(nursery, service: Service, tmp_path: Path, kind: str):
    played = CASES[kind]
    service.reply = watch = Watch(played.reply)

    def run(folder: Path, kill_at: int | None = None, **job: Any) -> int:
        watch.begin(kill_at)
        watch.paid_before = paid(episodes(folder)) if (folder / "episodes").exists() else set()
        flags = (*played.flags, "--base-url", service.address, "--max-concurrency", EPISODES_EACH, "--out", folder)
        running = nursery.begin("run", *flags, **job)
        watch.victim.set_result(running.pid)
        return running.end().status

    assert run(tmp_path / "whole") == 0
    whole, needed = episodes(tmp_path / "whole"), sum(watch.asked.values())
    kills, runs = 0, 0
    draws = moments()
    while kills < played.kills:
        folder, since, begun = tmp_path / f"run{runs}", kills, sum(watch.asked.values())
        while (status := run(folder, *(when := next(draws))[:1], **when[1])) != 0:
            assert status == -signal.SIGKILL
            kills += 1
        runs += 1
        found = episodes(folder)
        names = sorted(cell.file_name for cell in load_manifest(folder).specs)
        assert sorted(file.name for file in (folder / "episodes").iterdir()) == names == sorted(whole)
        for name, episode in found.items():
            assert episode.fingerprint == whole[name].fingerprint
            assert len(episode.replies) == len(whole[name].replies)
            assert played.score(episode) == played.score(whole[name])
        repeated = sum(watch.asked.values()) - begun - needed
        assert 0 <= repeated <= (kills - since) * EPISODES_EACH, "more than was under way was asked for again"
    assert watch.twice == [], "a reply on disk was paid for again"
    lost = sum(watch.asked.values()) - needed * (runs + 1)
    sys.stdout.write(f"{kills} kills in {runs} runs; {lost} requests under way were lost with them\n")
