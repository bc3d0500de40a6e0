"""Sessions of every kind: the trajectory, log and scores of `play`, move by move, and the rows of fine-tuning."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import asdict
from pathlib import Path

import pytest
from gymnasium.error import ResetNeeded

from inquitree_gym.errors import ActionError, LogError, OptionError
from inquitree_gym.integrations.messages import message_row
from inquitree_gym.integrations.session import EpisodeSession, check_move, play_task
from inquitree_gym.integrations.tasks import EpisodeTask, make_tasks
from inquitree_gym.kinds import kind
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.results.score import score_episode
from inquitree_gym.rollout import in_step_thread
from inquitree_gym.text_limits import MAX_ACTION_LENGTH
from inquitree_gym.trees import CANARY
from tests.contract.conftest import CASES

TASKS = {
    "inquiry": {"papers": "paper8", "fake_level": 4},
    "projection": {"papers": "paper12", "form": "claims"},
    "exploration": {"papers": "t1-s1-01", "tools": "all"},
    "toy": {"papers": "bread", "shown": 2},
}
KINDS = [pytest.param(name, marks=() if name == "toy" else pytest.mark.weights) for name in CASES]


@pytest.fixture(scope="module", params=KINDS)
def task(request: pytest.FixtureRequest) -> EpisodeTask:
    """A task of each kind."""
    return make_tasks(env=request.param, seeds=[5], **TASKS[request.param])[0]


@pytest.fixture(scope="module")
def episode(task: EpisodeTask) -> Episode:
    """The task as an agent without a model plays it."""
    return play_task(task, kind(task.kind).play.default_agents[0])


def played(task: EpisodeTask, episode: Episode, **options) -> EpisodeSession:
    session = EpisodeSession(task, **options)
    session.begin()
    for move in episode.actions:
        assert not session.over
        assert session.score() is None
        session.move(move)
    return session


def test_the_same_moves_leave_fingerprint_and_scores_of_play(task, episode):
    session = played(task, episode)
    assert (session.over, session.turn) == (True, len(episode.turns))
    assert session.episode.fingerprint == episode.fingerprint
    score, expected = session.score(), score_episode(episode, task.load())
    assert score is not None
    assert (score.reward, score.turns, score.values) == (
        episode.footer.episode_return, len(episode.turns), expected.values,
    )  # fmt: skip
    assert score.metrics["actions"] == len(episode.turns)
    assert None not in score.metrics.values()


def test_a_task_survives_json_and_names_its_cell(task):
    again = EpisodeTask(**json.loads(json.dumps(asdict(task))))
    assert (again, again.key, again.options) == (task, task.key, task.options)
    cell = [f"{name}={value}" for name, value in task.cell.items()]
    assert task.key.startswith("/".join([f"{task.task}@{task.version}", *cell, "s5"]))
    assert tuple(task.cell) == kind(task.kind).settings.grid


def test_moves_after_the_end_change_nothing_and_a_session_can_begin_again(task, episode, tmp_path: Path):
    session = played(task, episode, file=tmp_path / "log.jsonl", agent={"name": "outside"})
    before, whole = (tmp_path / "log.jsonl").read_bytes(), session.episode
    assert session.move("something else") == session.observation == whole.footer.observation
    assert (session.episode, (tmp_path / "log.jsonl").read_bytes()) == (whole, before)
    assert read_episode(tmp_path / "log.jsonl").header.agent == {"name": "outside"}
    with pytest.raises(LogError, match="holds a complete episode"):
        EpisodeSession(task, file=tmp_path / "log.jsonl").begin()
    again = played(task, episode)
    again.begin()
    assert (again.over, again.turn, again.score()) == (False, 0, None)


def test_a_torn_log_is_resumed_by_replay_and_a_folder_gets_a_log_each(task, episode, tmp_path: Path):
    file = tmp_path / "log.jsonl"
    session = EpisodeSession(task, file=file)
    session.begin()
    session.move(episode.actions[0])
    session.fail("the client went away")
    session.close()
    assert read_episode(file).status == "failed"
    again = EpisodeSession(task, file=file)
    assert (again.begin(), again.turn) == (session.observation, 1)
    for move in episode.actions[1:]:
        again.move(move)
    assert read_episode(file).fingerprint == episode.fingerprint
    for _ in range(2):
        other = EpisodeSession(task, folder=tmp_path / "logs")
        other.begin()
        other.close()
    assert len(list((tmp_path / "logs").iterdir())) == 2


def test_a_session_without_a_beginning_or_with_bad_settings_is_refused(task, tmp_path: Path):
    session = EpisodeSession(task)
    with pytest.raises(ResetNeeded):
        session.move("What is it?")
    with pytest.raises(LogError, match="no episode has been started"):
        session.score()
    with pytest.raises(OptionError, match="not both"):
        EpisodeSession(task, file=tmp_path / "log.jsonl", folder=tmp_path)
    with pytest.raises(OptionError, match="named by its id"):
        EpisodeSession(EpisodeTask(task.kind, "/etc/shadow", 1, 0))
    with pytest.raises(OptionError, match=r"gravity: is an unknown setting"):
        _ = EpisodeTask(task.kind, task.task, task.version, 0, settings={"gravity": 9.81}).options


def test_sessions_at_once_step_in_one_thread_and_play_as_one_after_the_other(task, episode):
    threads = set()

    def noted(session: EpisodeSession, move: str) -> str:
        threads.add(threading.current_thread().name)
        return session.move(move)

    async def whole() -> str:
        session = EpisodeSession(task)
        await in_step_thread(session.begin)
        for move in episode.actions:
            await in_step_thread(noted, session, move)
        return session.episode.fingerprint

    async def several() -> list[str]:
        return await asyncio.gather(*(whole() for _ in range(3)))

    assert set(asyncio.run(several())) == {episode.fingerprint}
    assert len(threads) == 1
    assert threads != {threading.main_thread().name}


def test_an_episode_is_a_row_of_messages(task, episode):
    row = message_row(episode)
    system, *others = row.pop("messages")
    assert (system["role"], [message["role"] for message in others]) == (
        "system", ["user", "assistant"] * len(episode.turns),
    )  # fmt: skip
    for message, turn in zip(others[::2], episode.turns, strict=True):
        assert message["content"].startswith(turn.observation)  # the exam is told with how to answer
    part = "" if task.kind == "projection" else "ACTION: "
    assert [message["content"] for message in others[1::2]] == [f"{part}{action}" for action in episode.actions]
    assert row == {
        **task.cell, "kind": task.kind, "task": task.task, "version": task.version, "seed": task.seed,
        "agent": episode.header.agent["name"], "reward": episode.footer.episode_return,
        "fingerprint": episode.fingerprint, "canary": CANARY,
    }  # fmt: skip


@pytest.mark.parametrize("text", [None, 7, "", " \n", "x" * (MAX_ACTION_LENGTH + 1), {"text": "hello"}], ids=repr)
def test_a_move_of_a_client_is_a_text_that_the_environment_reads(text: object):
    with pytest.raises(ActionError, match="a move "):
        check_move(text)
    assert check_move(" What is it?\n") == " What is it?\n"
