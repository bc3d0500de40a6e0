"""Language models that play, over a real server on loopback: the protocol, the memory, the faults, and what is paid."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.analysis.load import cost_of
from inquitree_gym.baselines import LLMAgent, ScepticAgent
from inquitree_gym.baselines.conversation import CUT, NOTHING
from inquitree_gym.baselines.llm import CONTEXT
from inquitree_gym.embeddings import MiniLMEmbedder, ReaderEmbedder
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.errors import LogError, OptionError, ServiceError
from inquitree_gym.llm import MAX_REPLY, ChatModel, estimated_tokens
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.rollout import aplay, play
from inquitree_gym.scoring import score_episode
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.wrappers import LogEpisodes
from tests.scoring.test_episode import GivenJudge
from tests.servers import (
    FILTERED,
    PASSING,
    REFUSED,
    SERVER_FAULT,
    SLOW,
    USED_UP,
    Answer,
    Body,
    Hourglass,
    Rote,
    Service,
    failed,
    said,
)
from tests.strategies import make_tree

pytestmark = pytest.mark.e2e

TURNS = 10
"""Of a faultless episode of the tree below, conclusion included."""


@pytest.fixture(scope="module")
def tree() -> Tree:
    return make_tree([[], [0], [0]], [2, 1, 1], tree_id="three")


@pytest.fixture
def env(tree: Tree, minilm: MiniLMEmbedder) -> InquiryEnv:
    return InquiryEnv(tree, embedder=minilm)


@pytest.fixture(autouse=True)
def _rote(service: Service, tree: Tree) -> None:
    service.reply = Rote(tree)


def chat_of(service: Service, **settings: Any) -> ChatModel:
    return ChatModel("gpt-4o-mini", **{"base_url": service.address, "clock": Hourglass(), **settings})


def llm(service: Service, **settings: Any) -> LLMAgent:
    return LLMAgent(chat_of(service), **settings)


def sceptic(service: Service, **settings: Any) -> ScepticAgent:
    return ScepticAgent(chat_of(service), **settings)


def roles(episode: Episode) -> list[str]:
    return [reply.role for reply in episode.replies]


# Playing


@pytest.mark.weights
def test_a_model_that_knows_everything_plays_perfectly(env: InquiryEnv, service: Service):
    episode = play(env, llm(service), 0)
    assert (len(episode.turns), episode.footer.episode_return) == (TURNS, 1.0)
    assert len(service.requests) == TURNS
    assert {reply.fault for reply in episode.replies} == {""}
    assert [reply.text.partition("ACTION: ")[2] for reply in episode.replies] == list(episode.actions)


def test_the_model_sees_the_conversation_so_far(env: InquiryEnv, service: Service):
    episode = play(env, llm(service), 0)
    first, *_, last = service.chats
    assert [message["role"] for message in first] == ["system", "user"]
    assert "THOUGHT" in first[0]["content"]
    assert [message["role"] for message in last] == ["system", *["user", "assistant"] * (TURNS - 1), "user"]
    assert [message["content"] for message in last[1::2]] == [turn.observation for turn in episode.turns]
    assert [message["content"] for message in last[2::2]] == [reply.text for reply in episode.replies[:-1]]


def test_a_second_episode_begins_a_new_conversation(env: InquiryEnv, service: Service):
    agent = llm(service)
    one, other = play(env, agent, 0), play(env, agent, 0)
    assert one.fingerprint == other.fingerprint
    assert service.chats[:TURNS] == service.chats[TURNS:]


@pytest.mark.parametrize("seed", [0, 5, 2**31, 2**64 - 1])
def test_the_seed_of_the_agent_is_sent_and_not_that_of_the_episode(seed: int, env: InquiryEnv, service: Service):
    play(env, llm(service), seed)
    (sent,) = {request.body["seed"] for request in service.requests}
    assert sent == env.agent_seed % 2**31
    assert sent != seed % 2**31


def test_the_seed_of_the_episode_is_sent_under_the_former_use_of_seeds(env: InquiryEnv, service: Service):
    play(env, llm(service), 2**31 + 5, options={"fake_key": 1})
    assert {request.body["seed"] for request in service.requests} == {5}


def test_a_seed_of_the_model_comes_before_that_of_the_agent(env: InquiryEnv, service: Service):
    play(env, LLMAgent(chat_of(service, seed=77)), 5)
    assert {request.body["seed"] for request in service.requests} == {77}


def test_the_header_tells_the_model_and_its_settings_and_no_key(env: InquiryEnv, service: Service):
    agent = LLMAgent(chat_of(service, temperature=0.5, max_tokens=500, reasoning_effort="low"), context=900)
    header = play(env, agent, 0).header.agent
    assert len(header.pop("templates")) == 64
    assert header == {
        "name": "llm", "model": "gpt-4o-mini", "base_url": service.address, "temperature": 0.5,
        "reasoning_effort": "low", "seed": None, "max_tokens": 500, "dropped": ["reasoning_effort"], "context": 900,
    }  # fmt: skip


def test_templates_of_ones_own_are_used_and_told_apart(env: InquiryEnv, service: Service, tmp_path: Path):
    (tmp_path / "llm_system.md").write_text("Speak like a pirate.")
    own = llm(service, prompts=tmp_path)
    assert own.config["templates"] != llm(service).config["templates"]
    play(env, own, 0)
    assert service.chats[0][0] == {"role": "system", "content": "Speak like a pirate."}


@pytest.mark.parametrize("context", [0, -1, True, 1.5])
def test_a_context_out_of_range_is_told(context: Any, service: Service):
    with pytest.raises(OptionError, match="context is a whole number of tokens from 1"):
        llm(service, context=context)


def test_a_long_conversation_is_cut_to_the_context(env: InquiryEnv, service: Service):
    service.reply = lambda body: f"THOUGHT: {'hm ' * 100}\nACTION: What decides question number 1?"
    episode = play(env, llm(service, context=1_000), 0)
    assert len(episode.turns) > 20
    note = "earlier exchanges left out here"
    for messages in service.chats:
        allowance = 40 if note in messages[1]["content"] else 0
        assert sum(map(estimated_tokens, messages)) <= 1_000 + allowance
        assert messages[1]["content"].startswith(episode.turns[0].observation)
    assert note in service.chats[-1][1]["content"]
    assert [messages[-1]["content"] for messages in service.chats] == [turn.observation for turn in episode.turns]


def test_a_loop_of_ones_own_asks_and_logs_by_itself(env: InquiryEnv, service: Service, tmp_path: Path):
    agent, logged = llm(service), LogEpisodes(env, file=tmp_path / "own.jsonl", agent={"name": "mine"})
    observation, info = logged.reset(seed=3)
    agent.reset(env.agent_seed)
    over = False
    while not over:
        action = agent.act(observation, info) if info["turn"] % 2 else asyncio.run(agent.decide(observation, info))
        for reply in agent.replies:
            logged.add_reply(reply)
        observation, _, over, _, info = logged.step(action)
    own, played = read_episode(tmp_path / "own.jsonl"), play(env, llm(service), 3)
    assert own.fingerprint == played.fingerprint
    assert [(reply.turn, reply.text) for reply in own.replies] == [(r.turn, r.text) for r in played.replies]


def test_what_was_played_without_known_replies_is_remembered(env: InquiryEnv, service: Service):
    episode = play(env, llm(service), 0)
    for agent in (llm(service), sceptic(service)):
        service.requests.clear()
        agent.reset(0)
        observation, info = env.reset(seed=0)
        for action in episode.actions[:4]:
            agent.recall(observation, info, action)
            observation, *_, info = env.step(action)
        assert service.requests == []
        agent.act(observation, info)
        said = [message["content"] for message in service.chats[-1] if message["role"] == "assistant"]
        assert said == [f"ACTION: {action}" for action in episode.actions[:4]]


# Beliefs


def believing(tree: Tree, line: str = "BELIEF: fake 0.9") -> Callable[[Body], str]:
    """Play by heart, and state a belief with every move."""
    rote = Rote(tree)
    return lambda body: rote(body).replace("\nACTION:", f"\n{line}\nACTION:")


@pytest.mark.parametrize("kind", [llm, sceptic])
def test_a_belief_is_logged_with_its_turn_and_changes_nothing_else(
    kind: Any, env: InquiryEnv, tree: Tree, service: Service, tmp_path: Path
):
    plain = play(env, kind(service), 0)
    service.reply = believing(tree)
    agent = kind(service, belief=True)
    episode = play(env, agent, 0, file=tmp_path / "e.jsonl")
    assert episode.fingerprint == plain.fingerprint
    assert {turn.belief for turn in read_episode(tmp_path / "e.jsonl").turns} == {0.9}
    assert {turn.belief for turn in plain.turns} == {None}
    assert (agent.config["belief"], "belief" in kind(service).config) == (True, False)
    found = score_episode(episode, tree, GivenJudge(1, 1, 1))
    assert found.trajectory.beliefs == ((False, 0.9),) * 3
    assert found.as_plain()["calibration"] == {"stated": 3, "brier": pytest.approx(0.81), "auc": None}


def test_a_belief_is_asked_for_and_read_only_where_it_is_wanted(env: InquiryEnv, tree: Tree, service: Service):
    play(env, llm(service, belief=True), 0)
    asked = service.chats[0][0]["content"]
    service.requests.clear()
    service.reply = lambda body: "ACTION: draw conclusion\nBELIEF: fake"
    episode = play(env, llm(service), 0)
    unasked = service.chats[0][0]["content"]
    assert "BELIEF: true or fake" in asked
    assert asked.startswith(unasked)
    assert "BELIEF" not in unasked
    assert episode.actions[0] == "draw conclusion\nBELIEF: fake"
    assert {turn.belief for turn in episode.turns} == {None}


def test_a_belief_without_a_move_is_corrected_and_that_of_the_correction_counts(
    env: InquiryEnv, tree: Tree, service: Service
):
    service.planned.extend([said("BELIEF: fake 0.7"), said("BELIEF: true 0.7\nACTION: Question 1?")])
    episode = play(env, llm(service, belief=True), 0)
    assert roles(episode)[:2] == ["proposer", "correction"]
    assert (episode.turns[0].belief, episode.actions[0]) == (pytest.approx(0.3), "Question 1?")


def test_a_torn_log_keeps_the_beliefs_and_takes_those_of_paid_replies(
    env: InquiryEnv, tree: Tree, service: Service, tmp_path: Path
):
    file = tmp_path / "e.jsonl"
    service.reply = believing(tree)
    play(env, llm(service, belief=True), 0, file=file)
    lines = file.read_text().splitlines(keepends=True)
    reply_to_3 = next(i for i, line in enumerate(lines) if '"kind":"reply","turn":3' in line.replace(" ", ""))
    file.write_text("".join(lines[: reply_to_3 + 1]))
    service.requests.clear()
    episode = play(env, llm(service, belief=True), 0, file=file)
    assert len(service.requests) == TURNS - 3
    assert [turn.belief for turn in episode.turns] == [0.9] * TURNS


# Malformed replies


MALFORMED = {
    "no action": said("Let us measure it."),
    "empty": said(""),
    "two actions": said("ACTION: this\nACTION: that"),
    "empty action": said("THOUGHT: hm\nACTION:"),
    "filtered": FILTERED,
    "refused": REFUSED,
    "filtered request": failed(400, "no", code="content_filter"),
    "enormous": said("x" * (MAX_REPLY + 9)),
}


@pytest.mark.parametrize("malformed", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_reply_is_corrected_at_no_turn(malformed: Answer, env: InquiryEnv, service: Service):
    clean = play(env, llm(service), 0)
    service.requests.clear()
    service.planned.extend([lambda: None, malformed])
    episode = play(env, llm(service), 0)
    assert episode.fingerprint == clean.fingerprint
    assert roles(episode) == ["proposer", "proposer", "correction", *["proposer"] * (TURNS - 2)]
    broken, mended = episode.replies_to(2)
    assert (broken.fault != "", mended.fault) == (True, "")
    *before, shown, correction = service.chats[2]
    assert before == service.chats[1]
    assert shown["role"] == "assistant"
    assert (broken.text or NOTHING).endswith(shown["content"].removeprefix(CUT))
    assert broken.fault in correction["content"]
    told = [message["content"] for message in service.chats[3]]
    assert mended.text in told, "the conversation goes on with the correction"
    assert correction["content"] not in told
    assert shown["content"] not in told


def test_what_a_corrected_turn_took_is_summed(env: InquiryEnv, service: Service):
    service.planned.append(said("no form"))
    first, second = play(env, llm(service), 0).turns[:2]
    assert first.tokens == {kind: 2 * number for kind, number in second.tokens.items()}
    assert first.cost == pytest.approx(2 * second.cost)


@pytest.mark.parametrize("last", ["still no form", "", "ACTION: a\nACTION: b"])
def test_a_reply_that_stays_malformed_acts_whole(last: str, env: InquiryEnv, service: Service):
    service.planned.extend([said("no form"), said(last)])
    episode = play(env, llm(service), 0)
    assert roles(episode)[:3] == ["proposer", "correction", "proposer"]
    assert episode.actions[0] == last
    assert all(reply.fault for reply in episode.replies_to(1))
    assert service.chats[2][2] == {"role": "assistant", "content": last or NOTHING}


def test_an_enormous_reply_is_kept_in_part_and_its_loss_is_logged(env: InquiryEnv, service: Service):
    service.planned.append(said("ACTION: " + "x" * (MAX_REPLY + 1_000)))
    episode = play(env, llm(service), 0)
    (reply,) = episode.replies_to(1)
    assert (len(reply.text), reply.cut, reply.fault) == (MAX_REPLY, 1_008, "")
    assert len(episode.actions[0]) == MAX_REPLY - 8


@pytest.mark.weights
@pytest.mark.parametrize("kind", [llm, sceptic])
def test_enormous_replies_do_not_burst_the_context(kind: Any, env: InquiryEnv, tree: Tree, service: Service):
    moves = iter(play(env, llm(service), 0).actions)
    service.requests.clear()
    thoughts = iter(range(99))

    def reply(body: Body) -> str:
        if "VERDICT" in body["messages"][0]["content"]:
            return f"REASON: {'x' * MAX_REPLY}\nVERDICT: VALID"[-MAX_REPLY:]
        return "x" * MAX_REPLY if next(thoughts) % 2 else f"THOUGHT: {'x' * 50_000}\nACTION: {next(moves)}"

    service.reply = reply
    episode = play(env, kind(service, context=1_200), 0)
    assert episode.footer.episode_return == 1.0
    assert {"correction", "proposer"} <= set(roles(episode))
    for messages in service.chats:
        assert sum(map(estimated_tokens, messages)) <= 1_200 + 40


# Faults


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_a_fault_that_passes_changes_nothing_but_the_number_of_requests(
    fault: Answer, env: InquiryEnv, service: Service
):
    clean = play(env, llm(service), 0)
    service.requests.clear()
    service.planned.extend([lambda: None, lambda: None, fault])
    episode = asyncio.run(aplay(env, llm(service), 0))
    assert episode.fingerprint == clean.fingerprint
    assert [reply.retries for reply in episode.replies] == [0, 0, 1, *[0] * (TURNS - 3)]
    assert len(service.requests) == TURNS + 1


@pytest.mark.weights
def test_a_slow_answer_is_given_up_and_asked_for_again(env: InquiryEnv, service: Service):
    service.planned.extend([lambda: None, SLOW])
    episode = play(env, LLMAgent(chat_of(service, timeout=0.5)), 0)
    assert (episode.footer.episode_return, episode.replies[1].retries) == (1.0, 1)
    assert len(service.requests) == TURNS + 1


@pytest.mark.parametrize(
    ("answers", "status", "transient"), [([SERVER_FAULT] * 9, 500, True), ([failed(401, "no")], 401, False)]
)
def test_a_service_that_fails_leaves_an_episode_that_goes_on_later(
    answers: list[Answer], status: int, transient: bool, env: InquiryEnv, service: Service, tmp_path: Path
):
    file = tmp_path / "e.jsonl"
    service.planned.extend([*[lambda: None] * 4, *answers])
    with pytest.raises(ServiceError) as caught:
        play(env, llm(service), 0, file=file)
    assert (caught.value.status, caught.value.transient) == (status, transient)
    failed_one = read_episode(file)
    assert (failed_one.status, len(failed_one.turns), len(failed_one.replies)) == ("failed", 4, 4)
    assert failed_one.failure.error.startswith("ServiceError: the model 'gpt-4o-mini' was asked")
    service.planned.clear()
    service.requests.clear()
    whole = play(env, llm(service), 0, file=file)
    assert len(service.requests) == TURNS - 4
    assert whole.fingerprint == play(env, llm(service), 0).fingerprint


# Resuming: nothing is paid twice


@pytest.mark.parametrize("kind", [llm, sceptic])
def test_a_log_torn_anywhere_goes_on_and_no_reply_is_paid_twice(
    kind: Any, env: InquiryEnv, service: Service, tmp_path: Path
):
    file = tmp_path / "e.jsonl"
    script = [lambda: None, said("no form"), lambda: None, lambda: None, said("bad"), said("worse")]
    service.planned.extend(script)
    whole = play(env, kind(service), 0, file=file)
    chats = service.chats
    assert {"correction", "proposer"} <= set(roles(whole))
    lines = file.read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines), 1 if kind is llm else 3):
        paid = sum(line.startswith(b'{"kind":"reply"') for line in lines[:cut])
        file.write_bytes(b"".join(lines[:cut]) + lines[cut][: len(lines[cut]) // 2])
        service.requests.clear()
        service.planned.clear()
        service.planned.extend(script[paid:])
        again = play(env, kind(service), 0, file=file)
        assert service.chats == chats[paid:], "the same is asked as without the tear, and nothing else"
        assert again.fingerprint == whole.fingerprint
        plain = [reply.model_dump(exclude={"seconds"}) for reply in again.replies]
        assert plain == [reply.model_dump(exclude={"seconds"}) for reply in whole.replies]
        assert [(turn.tokens, turn.cost) for turn in again.turns] == [(turn.tokens, turn.cost) for turn in whole.turns]


KILLED = """
import os, signal, sys
import gymnasium as gym
from inquitree_gym.baselines import LLMAgent
from inquitree_gym.llm import ChatModel
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.rollout import play

class Killing(gym.Wrapper):
    def step(self, action):
        if self.unwrapped.state.turn == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)

file, address = sys.argv[1:]
play(Killing(InquiryEnv("paper2")), LLMAgent(ChatModel("gpt-4o-mini", address)), 0, file=file)
"""


@pytest.mark.weights
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_after_a_kill_no_paid_reply_is_asked_for_again(service: Service, tmp_path: Path, reader: ReaderEmbedder):
    paper2, file = load_tree("paper2"), tmp_path / "e.jsonl"
    service.reply = Rote(paper2)
    env = InquiryEnv(paper2, embedder=reader)
    clean = play(env, llm(service), 0)
    service.requests.clear()
    process: list[subprocess.Popen[str]] = []

    def kill() -> None:
        process[-1].kill()
        process[-1].wait()

    # The first process dies while its malformed reply is corrected; the second between a reply and its action.
    service.planned.extend([lambda: None, said("no form"), kill])
    for _ in range(2):
        process.append(subprocess.Popen([sys.executable, "-c", KILLED, str(file), service.address]))
        assert process[-1].wait() == -signal.SIGKILL
    torn = read_episode(file)
    assert ([turn.turn for turn in torn.turns], torn.replies[-1].turn) == ([1, 2, 3, 4], 5)
    whole = play(env, llm(service), 0, file=file)
    assert whole.fingerprint == clean.fingerprint
    assert roles(whole)[:4] == ["proposer", "proposer", "correction", "proposer"]
    assert len(service.requests) == len(whole.replies) + 1, "only the request whose answer never came is made again"


def test_the_time_that_a_reply_took_before_the_tear_still_counts(env: InquiryEnv, service: Service, tmp_path: Path):
    file = tmp_path / "e.jsonl"
    play(env, llm(service), 0, file=file)
    header, reply, *_ = file.read_text().splitlines(keepends=True)
    slow = json.loads(reply) | {"seconds": 500.0}
    file.write_text(header + json.dumps(slow) + "\n")
    first, second = play(env, llm(service), 0, file=file).turns[:2]
    assert 500 <= first.agent_seconds < 600
    assert second.agent_seconds < 100


@pytest.mark.parametrize("settings", [{"temperature": 1.0}, {"seed": 1}, {"reasoning_effort": "low"}])
def test_a_torn_episode_does_not_go_on_with_another_setting(
    settings: dict[str, Any], env: InquiryEnv, service: Service, tmp_path: Path
):
    file = tmp_path / "e.jsonl"
    play(env, llm(service), 0, file=file)
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:4]))
    with pytest.raises(LogError, match=r"recorded settings differ \(agent: recorded"):
        play(env, LLMAgent(chat_of(service, **settings)), 0, file=file)
    play(env, LLMAgent(chat_of(service, timeout=9, retries=1, max_tokens=9)), 0, file=file)


# Reasoning


@pytest.mark.parametrize("kind", [LLMAgent, ScepticAgent])
def test_a_reply_of_reasoning_alone_takes_no_turn_and_is_counted(
    kind: type[LLMAgent], tree: Tree, env: InquiryEnv, service: Service
):
    service.reply = judge("VALID", tree)
    clean = play(env, kind(chat_of(service)), 0)
    asked = len(service.requests)
    service.planned.extend([None, None, None, USED_UP])
    episode = play(env, kind(chat_of(service)), 0)
    assert episode.actions == clean.actions
    assert len(service.requests) - asked == asked + 1
    wasted, taken = (next(each for each in episode.replies if each.finish_reason == why) for why in ("length", "stop"))
    assert wasted.fault == "its tokens were used up before any text"
    assert (wasted.tokens["reasoning"], wasted.cost > taken.cost) == (500, True)
    assert episode.turns[wasted.turn - 1].tokens["reasoning"] == 500
    spent = cost_of(episode)
    assert (spent.without_text, spent.cut_short, spent.corrections, spent.reasoning_tokens) == (1, 1, 0, 500)


def test_an_episode_without_tokens_for_a_text_fails_and_goes_on_with_more_of_them(
    env: InquiryEnv, service: Service, tmp_path: Path
):
    file = tmp_path / "e.jsonl"
    clean = play(env, llm(service), 0)
    service.begin(service.reply)
    service.planned.extend([None, USED_UP, USED_UP])
    with pytest.raises(ServiceError, match=r"used up its 600 tokens \(500 of them for reasoning\) before any text"):
        play(env, LLMAgent(chat_of(service, max_tokens=600)), 0, file=file)
    torn = read_episode(file)
    assert (torn.status, len(torn.turns), len(torn.replies)) == ("failed", 1, 3)
    whole = play(env, LLMAgent(chat_of(service, max_tokens=6000)), 0, file=file)
    assert whole.actions == clean.actions
    assert len(service.requests) == TURNS + 2, "what was answered is not asked again"


@pytest.mark.parametrize(
    ("model", "context", "limit"),
    [("gpt-4o-mini", None, 128_000 * 9 // 10 - 16_384), ("gpt-4o-mini", 5000, 5000), ("my-own", None, CONTEXT)],
)
def test_the_context_is_the_window_of_the_model_where_none_is_given(
    model: str, context: int | None, limit: int, service: Service
):
    assert LLMAgent(ChatModel(model, base_url=service.address), context=context).config["context"] == limit


# The sceptic


def judge(verdict: str, tree: Tree) -> Any:
    rote = Rote(tree)

    def reply(body: Body) -> str:
        return f"REASON: so it is.\nVERDICT: {verdict}" if "VERDICT" in body["messages"][0]["content"] else rote(body)

    return reply


def test_every_result_is_checked_before_the_next_move(tree: Tree, env: InquiryEnv, service: Service):
    service.reply = judge("DOUBTFUL", tree)
    episode = play(env, sceptic(service), 0)
    shown = [turn.turn + 1 for turn in episode.turns if turn.event.kind == "result"]
    assert len(shown) == 3
    assert [reply.turn for reply in episode.replies if reply.role == "sceptic"] == shown
    for turn in shown:
        assert [reply.role for reply in episode.replies_to(turn)] == ["sceptic", "proposer"]
        assert episode.turns[turn - 1].cost == pytest.approx(sum(r.cost for r in episode.replies_to(turn)))
    checks = [messages for messages in service.chats if "VERDICT" in messages[0]["content"]]
    assert tree.topic in checks[0][0]["content"]
    for number, messages in enumerate(checks):
        assert [message["role"] for message in messages] == ["system", *["user", "assistant"] * number, "user"]
        assert episode.turns[shown[number] - 1].observation in messages[-1]["content"]
    moves = [messages for messages in service.chats if "VERDICT" not in messages[0]["content"]]
    for turn in shown:
        told = moves[turn - 1][-1]["content"]
        assert told.startswith(episode.turns[turn - 1].observation)
        assert told.endswith("says of this one: DOUBTFUL. so it is.")


def test_without_a_sceptic_nothing_else_is_asked(env: InquiryEnv, service: Service):
    assert set(roles(play(env, llm(service), 0))) == {"proposer"}


@pytest.mark.parametrize("said_of_it", ["It looks fine to me.", "VERDICT: INVALID"])
def test_a_verdict_that_cannot_be_read_is_passed_on_whole(
    said_of_it: str, tree: Tree, env: InquiryEnv, service: Service
):
    rote = Rote(tree)
    service.reply = lambda body: said_of_it if "VERDICT" in body["messages"][0]["content"] else rote(body)
    episode = play(env, sceptic(service), 0)
    verdicts = [reply for reply in episode.replies if reply.role == "sceptic"]
    assert all(reply.fault for reply in verdicts)
    assert set(roles(episode)) == {"proposer", "sceptic"}, "a verdict is not corrected"
    assert any(messages[-1]["content"].endswith(f"says of this one: {said_of_it}") for messages in service.chats)


def test_a_verdict_that_is_filtered_is_told_as_none(tree: Tree, env: InquiryEnv, service: Service):
    service.planned.extend([lambda: None, lambda: None, FILTERED])
    episode = play(env, sceptic(service), 0)
    assert episode.replies[2].role == "sceptic"
    assert service.chats[3][-1]["content"].endswith(f"says of this one: {NOTHING}")
    assert episode.status == "concluded"


def results_checked(episode: Episode) -> tuple[list[int], list[int]]:
    shown = [turn.turn + 1 for turn in episode.turns if turn.event.kind == "result"]
    return shown, [reply.turn for reply in episode.replies if reply.role == "sceptic"]


@pytest.mark.parametrize("rules", [{}, {"study_turn": True}, {"explore": "direct"}, {"on_last_hint": "repeat"}])
@pytest.mark.parametrize("turns", [2, 6, 7, 8, 10, 11, 30])
def test_results_are_told_from_everything_else(
    turns: int, rules: dict[str, Any], tree: Tree, minilm: MiniLMEmbedder, service: Service
):
    moves = iter(
        [
            tree.subtopics[0].text, "nonsense", *[""] * 5, "redo the study", "hm?", "redo the study", "redo the study",
            "explore new subtopic", tree.subtopics[1].text, tree.subtopics[1].studies[0].text, "redo the study",
        ]
    )  # fmt: skip
    service.reply = lambda body: (
        "VERDICT: VALID"
        if "VERDICT" in body["messages"][0]["content"]
        else f"THOUGHT: x\nACTION: {next(moves, 'draw conclusion') or 'nothing'}"
    )
    env = InquiryEnv(tree, embedder=minilm, max_turns=turns, **rules)
    shown, checked = results_checked(play(env, sceptic(service), 0))
    if rules.get("study_turn") and checked and checked[-1] > turns:
        checked = checked[: len(shown)]  # where the limit strikes at a study turn, its prompt is checked
    assert checked == shown


def test_a_sceptic_goes_by_its_own_context(env: InquiryEnv, tree: Tree, service: Service):
    moves = iter(play(env, llm(service), 0).actions)
    service.requests.clear()
    service.reply = lambda body: (
        "VERDICT: VALID" if "VERDICT" in body["messages"][0]["content"] else f"ACTION: {next(moves)}"
    )
    play(env, sceptic(service, context=250), 0)
    checks = [messages for messages in service.chats if "VERDICT" in messages[0]["content"]]
    assert [len(messages) for messages in checks] == [2, 2, 2]
    assert "2 earlier exchanges left out here" in checks[-1][0]["content"]
