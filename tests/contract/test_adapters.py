"""Adapters for other frameworks on every kind: the moves of an episode leave its observations, reward and log.

The inquiry here is answered by heart in a world where the paper is wrong on every axis, which returns -1. The tests of
each adapter play others.

inspect_ai and OpenEnv do not go with the pins of the others; scripts/test.sh runs their tests on overlays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.inquiry.agents.answers import sheet_answers
from inquitree_gym.inquiry.exam import exam_of, sheet_of_world
from inquitree_gym.integrations.messages import message_row
from inquitree_gym.integrations.session import EpisodeSession, play_task
from inquitree_gym.integrations.tasks import EpisodeTask, make_tasks
from inquitree_gym.kinds import kind
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.trees.worlds import actual_world
from tests.servers import Service

pytestmark = [pytest.mark.weights, pytest.mark.e2e]
# inspect_ai leaves streams open
INSPECT = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::DeprecationWarning")

CHOSEN: dict[str, dict[str, Any]] = {
    "inquiry": {"papers": "paper2", "fake_level": 3, "world": "complement"},
    "projection": {"papers": "paper2", "levels": ["null", "question"]},
    "toy": {"papers": "bread"},
}


@pytest.fixture(scope="module", params=CHOSEN)
def chosen(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The choice of one task of each of these kinds."""
    return {"env": request.param, "seeds": [5], **CHOSEN[request.param]}


@pytest.fixture(scope="module")
def task(chosen: dict[str, Any]) -> EpisodeTask:
    (task,) = make_tasks(**chosen)
    return task


@pytest.fixture(scope="module")
def episode(task: EpisodeTask) -> Episode:
    """The task as an agent without a model plays it, an inquiry as the oracle does up to the exam."""
    if task.kind != "inquiry":
        return play_task(task, kind(task.kind).play.default_agents[0])
    oracle, tree = play_task(task), task.load()
    told = sheet_answers(tree, oracle.turns[-1].observation, sheet_of_world(exam_of(tree), actual_world(tree)))
    session = EpisodeSession(task)
    session.begin()
    for action in (*oracle.actions[:-1], told):
        session.move(action)
    assert (oracle.footer.episode_return, session.score().reward) == (1.0, -1.0)
    return session.episode


@pytest.fixture
def playing(service: Service, episode: Episode) -> Service:
    """A model that makes the moves of the episode."""
    messages = message_row(episode)["messages"]
    replies = [message["content"] for message in messages if message["role"] == "assistant"]
    following = iter(replies)
    service.reply = lambda body: next(following)
    return service


@pytest.fixture
def unanswered(chosen: dict[str, Any], episode: Episode) -> tuple[str, ...]:
    """The moves of an inquiry up to its conclusion, without the exam."""
    if chosen["env"] != "inquiry":
        pytest.skip("only inquiries have an exam")
    assert episode.turns[-1].observation.startswith("Exam.")
    return episode.actions[:-1]


def observations(episode: Episode) -> list[str]:
    assert episode.footer is not None
    return [*(turn.observation for turn in episode.turns), episode.footer.observation]


def check_log(folder: Path, episode: Episode) -> None:
    (file,) = folder.iterdir()
    assert read_episode(file).fingerprint == episode.fingerprint


def test_trl(chosen: dict[str, Any], episode: Episode, tmp_path: Path):
    pytest.importorskip("datasets")
    from inquitree_gym.integrations.trl import TRLSpec

    spec = TRLSpec(**chosen, folder=tmp_path)
    environment = spec.environment_factory()
    opening = environment.reset(**spec.train_dataset[0])
    told = [opening, *(asyncio.run(environment.move(action)) for action in episode.actions[:-1])]
    assert environment.get_reward() == 0.0  # also for an inquiry that stops at its conclusion
    assert [*told, asyncio.run(environment.move(episode.actions[-1]))] == observations(episode)
    assert environment.get_reward() == episode.footer.episode_return
    check_log(tmp_path, episode)


def test_verifiers(chosen: dict[str, Any], episode: Episode, playing: Service, tmp_path: Path, monkeypatch: Any):
    pytest.importorskip("verifiers")
    from tests.integrations.test_verifiers import PLUGIN, evaluate

    monkeypatch.syspath_prepend(PLUGIN)
    (played,) = evaluate(playing, chosen, episodes=str(tmp_path))
    (trace,) = played.traces
    assert played.ok
    assert (trace.reward, trace.metrics["actions"]) == (episode.footer.episode_return, len(episode.turns))
    check_log(tmp_path, episode)


def test_verifiers_gives_0_without_the_exam(
    chosen: dict[str, Any], unanswered: tuple[str, ...], playing: Service, monkeypatch: Any
):
    pytest.importorskip("verifiers")
    from tests.integrations.test_verifiers import PLUGIN, evaluate

    monkeypatch.syspath_prepend(PLUGIN)
    (played,) = evaluate(playing, chosen, player={"max_turns": len(unanswered)})
    (trace,) = played.traces
    assert len(playing.requests) == len(unanswered)
    assert (played.ok, trace.reward, trace.rewards) == (True, 0.0, {})


def test_mcp(task: EpisodeTask, episode: Episode, tmp_path: Path):
    pytest.importorskip("mcp")
    from mcp import Client

    from inquitree_gym.integrations.mcp import episode_server
    from tests.integrations.test_mcp import check_play, play

    session = EpisodeSession(task, folder=tmp_path)
    session.begin()

    async def ask() -> list[Any]:
        async with Client(episode_server(session)) as client:
            shown = await play(client, episode.actions[:-1])
            assert session.score() is None  # also for an inquiry that stops at its conclusion
            return [*shown, *(await play(client, episode.actions[-1:]))[1:]]

    check_play(asyncio.run(ask()), episode)
    assert session.score().reward == episode.footer.episode_return
    check_log(tmp_path, episode)


def test_openenv(task: EpisodeTask, episode: Episode, tmp_path: Path):
    pytest.importorskip("openenv")
    from inquitree_gym.integrations.openenv import EpisodeAction, EpisodeEnvironment

    env = EpisodeEnvironment([task], tmp_path)
    shown = [env.reset(), *(env.step(EpisodeAction(text=action)) for action in episode.actions)]
    env.close()
    assert [each.text for each in shown] == observations(episode)
    assert [each.reward for each in shown] == [0.0] * len(episode.turns) + [episode.footer.episode_return]
    assert [each.done for each in shown] == [False] * len(episode.turns) + [True]
    check_log(tmp_path, episode)


@pytest.fixture
def inspected(chosen: dict[str, Any], playing: Service, tmp_path: Path, monkeypatch: Any) -> Callable[..., Any]:
    """Evaluates the task with inspect_ai, and returns the values of its score."""
    pytest.importorskip("inspect_ai")
    from inspect_ai import eval as inspect_eval
    from inspect_ai.model import get_model

    from inquitree_gym.integrations.inspect import research

    monkeypatch.setenv("LOOP_BASE_URL", playing.address)
    monkeypatch.setenv("LOOP_API_KEY", "sk-loop")

    def run(**settings: Any) -> Any:
        model = get_model("openai-api/loop/m", memoize=False)
        task = research(**chosen, **settings)
        (log,) = inspect_eval(task, model=model, log_dir=str(tmp_path / "logs"), display="none")
        assert log.status == "success", log.error
        (score,) = log.samples[0].scores.values()
        return score.value

    return run


@INSPECT
def test_inspect(episode: Episode, inspected: Callable[..., Any], tmp_path: Path):
    value = inspected(episodes=str(tmp_path / "episodes"))
    assert value["reward"] == episode.footer.episode_return
    (file,) = (tmp_path / "episodes").rglob("*.jsonl")
    assert read_episode(file).fingerprint == episode.fingerprint


@INSPECT
def test_inspect_gives_0_without_answers(unanswered: tuple[str, ...], playing: Service, inspected: Callable[..., Any]):
    play = playing.reply
    playing.reply = lambda body: play(body) if len(playing.requests) <= len(unanswered) else "ACTION: I can't tell."
    value = inspected()
    assert (value["reward"], value["actions"]) == (0.0, len(unanswered) + 2)
