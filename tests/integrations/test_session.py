"""Sessions: the trajectory, log and scores of `play`, move by move."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from gymnasium.error import ResetNeeded

from inquitree_gym.baselines import make_agent
from inquitree_gym.embeddings import Embedder
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.errors import ActionError, LogError, OptionError
from inquitree_gym.integrations.session import InquirySession, check_move, play_task
from inquitree_gym.integrations.tasks import InquiryTask, make_tasks
from inquitree_gym.judges import local_judge
from inquitree_gym.log import read_episode
from inquitree_gym.matching import MAX_ACTION_LENGTH
from inquitree_gym.rollout import in_step_thread, play
from inquitree_gym.scoring import score_episode


@pytest.fixture(scope="module")
def task() -> InquiryTask:
    return make_tasks("paper8", seeds=[5], fake_level=4)[0]


@pytest.fixture(scope="module")
def moves(task: InquiryTask, minilm: Embedder) -> tuple[str, ...]:
    return play_task(task, "random", embedder=minilm).actions


def test_the_same_moves_leave_the_fingerprint_of_play(task, moves, minilm):
    session = InquirySession(task, embedder=minilm)
    assert session.begin() == session.observation
    for move in moves:
        assert not session.over
        session.move(move)
    assert session.over
    assert session.turn == len(moves)
    assert session.episode.fingerprint == play_task(task, "random", embedder=minilm).fingerprint


def test_a_preset_brings_its_rules_and_prompts(minilm):
    (task,) = make_tasks("paper8", seeds=[5], fake_level=4, rules="paper")
    env = InquiryEnv("paper8", embedder=minilm, rules="paper", fake_level=4, privileged=True)
    episode = play(env, make_agent("oracle", env), 5)
    session = InquirySession(task, embedder=minilm)
    session.begin()
    for move in episode.actions:
        session.move(move)
    assert session.episode.fingerprint == episode.fingerprint == play_task(task, embedder=minilm).fingerprint


def test_the_scores_are_those_of_the_package(task, minilm):
    for agent in ("oracle", "random"):
        episode = play_task(task, agent, embedder=minilm)
        session = InquirySession(task, embedder=minilm)
        session.begin()
        for move in episode.actions:
            assert session.score() is None
            session.move(move)
        score, found = session.score(), score_episode(episode, task.load(), local_judge(task.load()))
        assert score is not None
        assert score.conclusion == pytest.approx(found.quality_share)
        assert (score.coverage, score.unaided) == (found.trajectory.coverage, found.trajectory.unaided_coverage)
        assert score.turns == found.trajectory.turns


def test_moves_after_the_end_change_nothing(task, moves, minilm, tmp_path: Path):
    session = InquirySession(task, embedder=minilm, file=tmp_path / "log.jsonl", agent={"name": "outside"})
    session.begin()
    for move in moves:
        session.move(move)
    before, whole = (tmp_path / "log.jsonl").read_bytes(), session.episode
    assert session.move("explore new subtopic") == session.observation == whole.footer.observation
    assert session.episode == whole
    assert (tmp_path / "log.jsonl").read_bytes() == before
    assert read_episode(tmp_path / "log.jsonl").header.agent == {"name": "outside"}


def test_a_torn_log_is_resumed_by_replay(task, moves, minilm, tmp_path: Path):
    file = tmp_path / "log.jsonl"
    session = InquirySession(task, embedder=minilm, file=file)
    session.begin()
    for move in moves[:3]:
        session.move(move)
    session.fail("the client went away")
    session.close()
    assert read_episode(file).status == "failed"
    again = InquirySession(task, embedder=minilm, file=file)
    assert again.begin() == session.observation
    assert again.turn == 3
    for move in moves[3:]:
        again.move(move)
    assert read_episode(file).fingerprint == play_task(task, "random", embedder=minilm).fingerprint
    with pytest.raises(LogError, match="holds a complete episode"):
        InquirySession(task, embedder=minilm, file=file).begin()


def test_a_folder_gets_a_log_for_each_inquiry(task, moves, minilm, tmp_path: Path):
    for _ in range(2):
        session = InquirySession(task, embedder=minilm, folder=tmp_path)
        session.begin()
        session.move(moves[0])
        session.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["paper8-s5-2.jsonl", "paper8-s5.jsonl"]


def test_a_session_can_begin_again(task, moves, minilm):
    session = InquirySession(task, embedder=minilm)
    session.begin()
    for move in moves:
        session.move(move)
    first = session.episode.fingerprint
    session.begin()
    assert (session.over, session.turn, session.score()) == (False, 0, None)
    for move in moves:
        session.move(move)
    assert session.episode.fingerprint == first


def test_a_session_without_a_beginning_or_with_bad_settings_is_refused(task, minilm, tmp_path: Path):
    session = InquirySession(task, embedder=minilm)
    with pytest.raises(ResetNeeded):
        session.move("What is it?")
    with pytest.raises(LogError, match="no episode has been started"):
        session.score()
    with pytest.raises(OptionError, match="not both"):
        InquirySession(task, embedder=minilm, file=tmp_path / "log.jsonl", folder=tmp_path)
    with pytest.raises(OptionError, match="named by its id"):
        InquirySession(InquiryTask("/etc/shadow", 1, 0), embedder=minilm)
    with pytest.raises(OptionError, match="unknown option 'privileged'"):
        InquirySession(InquiryTask("paper8", task.version, 0, {"privileged": True}), embedder=minilm).begin()


@pytest.mark.parametrize("text", [None, 7, "", " \n", "x" * (MAX_ACTION_LENGTH + 1), {"text": "hello"}], ids=repr)
def test_a_move_of_a_client_is_a_text_that_the_environment_reads(text: object):
    with pytest.raises(ActionError, match="a move "):
        check_move(text)


def test_a_good_move_of_a_client_is_left_as_it_is():
    assert check_move("x" * MAX_ACTION_LENGTH) == "x" * MAX_ACTION_LENGTH
    assert check_move(" What is it?\n") == " What is it?\n"


def test_sessions_at_once_step_in_one_thread_and_play_as_one_after_the_other(task, moves, minilm):
    threads = set()

    def noted(session: InquirySession, move: str) -> str:
        threads.add(threading.current_thread().name)
        return session.move(move)

    async def whole() -> str:
        session = InquirySession(task, embedder=minilm)
        await in_step_thread(session.begin)
        for move in moves:
            await in_step_thread(noted, session, move)
        return session.episode.fingerprint

    async def several() -> list[str]:
        return await asyncio.gather(*(whole() for _ in range(4)))

    assert set(asyncio.run(several())) == {play_task(task, "random", embedder=minilm).fingerprint}
    assert len(threads) == 1
    assert threads != {threading.main_thread().name}
