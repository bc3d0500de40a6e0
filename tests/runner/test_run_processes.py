"""`inquitree run` in processes of its own: signals, a full disk, two at once."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.errors import LogError
from inquitree_gym.kinds import kind
from inquitree_gym.log import Episode, has_header, read_episode
from inquitree_gym.runner import run_study
from inquitree_gym.runs.folder import keep_task, load_manifest
from inquitree_gym.trees import load_tree
from tests.servers import WAIT_AT_MOST, Body, Rote, Service

pytestmark = [
    pytest.mark.weights,
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="needs fork and signals"),
]

TREE = load_tree("paper2")
TURNS = 3 * len(TREE.subtopics) + 2
SEEDS = 3


class Held:
    """Answers by heart, but holds whatever comes after some answers until it is released."""

    def __init__(self, answers: int) -> None:
        self._rote = Rote(TREE)
        self._left = answers
        self.asked = 0
        self.holding = threading.Event()
        self.go = threading.Event()

    def __call__(self, body: Body) -> str:
        self.asked += 1
        if self.asked > self._left and not self.go.is_set():
            self.holding.set()
            self.go.wait(WAIT_AT_MOST)
        return self._rote(body)


@pytest.fixture
def flags(service: Service, tmp_path: Path) -> tuple[object, ...]:
    model = ("--model", "gpt-4o-mini", "--base-url", service.address)
    return ("run", "--agent", "llm", *model, "--papers", "2", "--seeds", SEEDS, "--out", tmp_path / "run")


def episodes(folder: Path) -> list[Episode]:
    return [read_episode(file) for file in sorted((folder / "episodes").iterdir()) if has_header(file)]


def test_a_signal_ends_a_run_in_order(nursery: Any, service: Service, flags: tuple, tmp_path: Path):
    service.reply = held = Held(7)
    running = nursery.begin(*flags, grace=1e6)
    assert held.holding.wait(WAIT_AT_MOST)
    running.signal(signal.SIGTERM)
    running.wait_for("Ctrl-C (again) to quit at once")
    held.go.set()
    ended = running.end()
    assert ended.status == 130
    assert f"interrupted; run the same command again to resume: {tmp_path / 'run'}" in ended.said
    torn = episodes(tmp_path / "run")
    assert sum(len(episode.replies) for episode in torn) == held.asked == len(service.requests), "a reply was lost"
    assert {episode.failure.error for episode in torn if episode.failure} == {
        "StoppedError: the run was stopped: interrupted"
    }
    again = nursery.run(*flags)
    assert again.status == 0
    assert f"{SEEDS} episodes played, 0 already complete" in again.said
    assert len(service.requests) == SEEDS * TURNS, "a reply was paid for twice"


def test_a_second_signal_leaves_at_once(nursery: Any, service: Service, flags: tuple, tmp_path: Path):
    service.reply = held = Held(5)
    running = nursery.begin(*flags, grace=1e6)
    assert held.holding.wait(WAIT_AT_MOST)
    running.signal(signal.SIGINT)
    running.wait_for("to quit at once")
    running.signal(signal.SIGINT)
    assert running.end().status == 130
    assert not held.go.is_set(), "it waited for an answer"
    held.go.set()
    lost = held.asked - sum(len(episode.replies) for episode in episodes(tmp_path / "run"))
    assert 1 <= lost <= 2 * SEEDS
    assert nursery.run(*flags).status == 0
    assert len(service.requests) == SEEDS * TURNS + lost


def test_a_run_that_ignores_ctrl_c_can_still_be_terminated(
    nursery: Any, service: Service, flags: tuple, tmp_path: Path
):
    service.reply = held = Held(5)
    running = nursery.begin(*flags, deaf=True)
    assert held.holding.wait(WAIT_AT_MOST)
    running.signal(signal.SIGTERM)
    assert running.end().status == -signal.SIGTERM
    held.go.set()
    assert nursery.run(*flags).status == 0
    assert all(episode.footer for episode in episodes(tmp_path / "run"))


def test_requests_under_way_are_given_up_after_a_while(nursery: Any, service: Service, flags: tuple, tmp_path: Path):
    service.reply = held = Held(5)
    running = nursery.begin(*flags, grace=0.1)
    assert held.holding.wait(WAIT_AT_MOST)
    running.signal(signal.SIGINT)
    assert running.end().status == 130
    assert not held.go.is_set(), "it waited for an answer"
    held.go.set()
    assert {episode.status for episode in episodes(tmp_path / "run")} == {"failed"}


def test_a_second_run_into_a_folder_is_refused_and_the_first_is_not_disturbed(
    nursery: Any, service: Service, flags: tuple, tmp_path: Path
):
    service.reply = held = Held(5)
    running = nursery.begin(*flags)
    assert held.holding.wait(WAIT_AT_MOST)
    study = load_manifest(tmp_path / "run").studies[0]
    with pytest.raises(LogError, match=r"another process is running in .*; wait until it is done"):
        run_study(study, tmp_path / "run")
    held.go.set()
    assert running.end().status == 0
    assert run_study(study, tmp_path / "run").found == SEEDS
    assert len(service.requests) == SEEDS * TURNS


@pytest.mark.parametrize("agent", ["llm", "random"])
def test_a_full_disk_ends_the_run_and_loses_nothing(
    nursery: Any, service: Service, flags: tuple, tmp_path: Path, agent: str
):
    service.reply = Rote(TREE)
    if agent == "random":
        flags = ("run", "--agent", "random", "--papers", "2", "--seeds", SEEDS, "--out", tmp_path / "run")
    (tmp_path / "run").mkdir()
    keep_task(tmp_path / "run", kind("inquiry"), TREE)  # larger than a log
    full = nursery.run(*flags, file_size=8_000)
    assert full.status == 2
    assert "cannot write" in full.said
    assert "File too large; the lines written before are safe" in full.said
    assert "run the same command again to resume" in full.said
    torn = episodes(tmp_path / "run")
    assert all(episode.status in ("torn", "failed") and episode.turns for episode in torn)
    if agent == "random":
        assert len(torn) == 1, "it went on where nothing can be written"
    paid = sum(len(episode.replies) for episode in torn)
    lost = len(service.requests) - paid
    assert 0 <= lost <= len(torn), "replies that could not be written"
    assert nursery.run(*flags).status == 0
    assert {episode.status for episode in episodes(tmp_path / "run")} == {"concluded"}
    assert len(service.requests) == (SEEDS * TURNS + lost if agent == "llm" else 0)
