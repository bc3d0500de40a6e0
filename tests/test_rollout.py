"""The one loop: playing, replaying in another process, and resuming what was torn."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from inquitree_gym.baselines import Ask, BaselineAgent, RandomAgent, ReplayAgent
from inquitree_gym.embeddings import ReaderEmbedder
from inquitree_gym.errors import EmbedderError
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.llm import Completion, Message
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.rollout import play
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.wrappers import FakeResults, LogEpisodes, RewardShaping, Transcript, TurnLimit
from tests.strategies import make_tree

pytestmark = pytest.mark.e2e


class PaidAgent(BaselineAgent):
    """A random agent whose every action has its price, its own chat model that keeps count of what it was asked."""

    name = "paid"

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self._chooser = RandomAgent(tree)
        self.asked: list[int] = []

    @property
    def config(self) -> dict[str, Any]:
        return {"name": self.name, "model": "some-model", "temperature": 0}

    def reset(self, seed: int) -> None:
        self._chooser.reset(seed)

    async def decide(self, observation: str, info: Mapping[str, Any], ask: Ask | None = None) -> str:
        question = {"turn": str(info["turn"] + 1), "content": self._chooser.act(observation, info)}
        assert ask is not None
        reply = await ask(self, [question], role="proposer", seed=0, check=lambda text: "")
        return reply.text.partition("ACTION ")[2]

    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        await asyncio.sleep(0)
        turn = int(messages[0]["turn"])
        self.asked.append(turn)
        price = None if turn % 3 == 0 else turn / 8
        text = f"THOUGHT {turn}\nACTION {messages[0]['content']}"
        return Completion(text, "stop", {"prompt": 100 + turn, "completion": turn}, price, seconds=turn)


def behind(episode: Episode) -> tuple[Any, ...]:
    """What stood behind the actions, which has to survive as well."""
    return episode.replies, [(turn.tokens, turn.cost) for turn in episode.turns]


# Playing


@pytest.fixture(scope="module")
def paper8() -> Tree:
    return load_tree("paper8")


def test_what_stands_behind_an_action_lands_in_the_log(paper8: Tree, tmp_path: Path):
    agent = PaidAgent(paper8)
    play(InquiryEnv(paper8), agent, 1, file=tmp_path / "paid.jsonl")
    episode = read_episode(tmp_path / "paid.jsonl")
    assert episode.header.agent == agent.config
    for turn, reply in zip(episode.turns, episode.replies, strict=True):
        assert (reply.turn, reply.role, reply.finish_reason) == (turn.turn, "proposer", "stop")
        assert reply.text == f"THOUGHT {turn.turn}\nACTION {turn.action}"
        assert reply.tokens == turn.tokens
        assert turn.tokens == {"prompt": 100 + turn.turn, "completion": turn.turn}
        assert turn.cost == (None if turn.turn % 3 == 0 else turn.turn / 8)
        assert turn.agent_seconds >= 0
        assert turn.env_seconds >= 0


def test_play_goes_through_gymnasiums_and_our_wrappers(paper8: Tree):
    made = gym.make("InquiTree-paper8-v0")
    env = TurnLimit(FakeResults(RewardShaping(Transcript(made, keep=2), gamma=0.9, turn=0.5), 8), 11)
    episode = play(env, RandomAgent(paper8), 2)
    plain = play(InquiryEnv(paper8, fake_level=8, max_turns=11), RandomAgent(paper8), 2)
    assert [(t.observation, t.action, t.event) for t in episode.turns] == [
        (t.observation, t.action, t.event) for t in plain.turns
    ]
    assert episode.header.rules == plain.header.rules
    assert episode.footer.episode_return < plain.footer.episode_return
    env.close()


def test_a_log_among_the_wrappers_is_used_as_it_is(paper8: Tree, tmp_path: Path):
    env = Transcript(LogEpisodes(InquiryEnv(paper8), tmp_path, agent={"name": "mine", "depth": 3}))
    episodes = [play(env, PaidAgent(paper8), seed) for seed in (5, 5, 6)]
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["paper8-s5-2.jsonl", "paper8-s5.jsonl", "paper8-s6.jsonl"]
    logged = [read_episode(file) for file in (files[1], files[0], files[2])]
    assert logged == episodes
    assert all(episode.header.agent == {"name": "mine", "depth": 3} for episode in logged)
    assert len(logged[0].replies) == len(logged[0].turns)


# Resuming


@pytest.fixture(scope="module")
def small() -> Tree:
    return make_tree([[], [0]], [2, 1], tree_id="small")


def test_a_log_cut_at_every_byte_of_its_last_lines_goes_on_as_if_nothing_had_happened(
    small: Tree, reader: ReaderEmbedder, tmp_path: Path
):
    env = InquiryEnv(small, embedder=reader, fake_level=5)
    whole_file, torn_file = tmp_path / "whole.jsonl", tmp_path / "torn.jsonl"
    whole = play(env, PaidAgent(small), 2, file=whole_file)
    content = whole_file.read_bytes()
    lines = content.splitlines(keepends=True)
    for end in range(len(content) - sum(map(len, lines[-3:])), len(content)):
        torn_file.write_bytes(content[:end])
        paid = sum(line.startswith(b'{"kind":"reply"') for line in content[:end].split(b"\n")[:-1])
        agent = PaidAgent(small)
        resumed = play(env, agent, 2, file=torn_file)
        assert agent.asked == list(range(paid + 1, len(whole.turns) + 1))
        assert resumed.fingerprint == whole.fingerprint
        assert behind(resumed) == behind(whole)
        if end % 50 == 0 or content[end : end + 1] == b"\n":
            again = read_episode(torn_file)
            assert (again.turns, again.footer) == (resumed.turns, resumed.footer)
            assert behind(again) == behind(whole)
        torn_file.unlink()


def test_a_log_may_be_torn_more_than_once(small: Tree, reader: ReaderEmbedder, tmp_path: Path):
    env = InquiryEnv(small, embedder=reader)
    file = tmp_path / "torn.jsonl"
    whole = play(env, PaidAgent(small), 9, file=file)
    for kept, first in ((12, 7), (6, 4), (3, 2), (2, 2), (1, 1)):
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(lines[:kept]) + lines[kept][:25])
        agent = PaidAgent(small)
        assert play(env, agent, 9, file=file).fingerprint == whole.fingerprint
        assert agent.asked[0] == first, "header, then reply and turn by turn"


class Stopped(PaidAgent):
    """Its service breaks down once."""

    def __init__(self, tree: Tree, at: int, error: BaseException) -> None:
        super().__init__(tree)
        self._at = at
        self._error: BaseException | None = error

    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        if int(messages[0]["turn"]) == self._at + 1 and self._error is not None:
            error, self._error = self._error, None
            raise error
        return await super().complete(messages, seed=seed)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (EmbedderError("the service is down"), "EmbedderError: the service is down"),
        (ValueError("a bug"), "ValueError: a bug"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
)
def test_what_stops_an_episode_is_logged_and_the_episode_can_be_resumed(
    paper8: Tree, tmp_path: Path, error: BaseException, told: str
):
    file = tmp_path / "stopped.jsonl"
    agent = Stopped(paper8, 4, error)
    with pytest.raises(type(error)) as caught:
        play(InquiryEnv(paper8), agent, 6, file=file)
    assert caught.value is error
    stopped = read_episode(file)
    assert (stopped.status, len(stopped.turns)) == ("failed", 4)
    assert stopped.failure.error.startswith(told)
    resumed = play(InquiryEnv(paper8), agent, 6, file=file)
    assert agent.asked == list(range(1, len(resumed.turns) + 1))
    assert resumed.fingerprint == play(InquiryEnv(paper8), PaidAgent(paper8), 6).fingerprint
    assert read_episode(file).status == "concluded"


def test_two_surrogates_of_one_character_are_read_as_it_so_that_their_log_can_be_resumed(tmp_path: Path):
    tree, pair = load_tree("paper8"), "\ud83d\ude00"
    text = f"{pair} {tree.subtopics[0].text.replace(' ', pair)}"
    course = [text, tree.studies[0].text, "draw conclusion", f"1. {pair} {tree.conclusions[0].options[0]}", "1 A"]
    whole = play(InquiryEnv(tree), ReplayAgent(course), 0, file=tmp_path / "log.jsonl")
    joined = [action.replace(pair, "\U0001f600") for action in course]
    lines = (tmp_path / "log.jsonl").read_text().splitlines(keepends=True)
    for kept in (2, 5):
        torn = tmp_path / f"{kept}.jsonl"
        torn.write_text("".join(lines[:kept]))
        again = play(InquiryEnv(tree), ReplayAgent(course), 0, file=torn)
        assert [turn.event.reading for turn in again.turns] == [turn.event.reading for turn in whole.turns]
        assert read_episode(torn).actions == tuple(joined)
