"""Language models that play, over a real server on loopback: the protocol, the memory, the faults, and what is paid."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.baselines import LLMAgent, RecallAgent, ScepticAgent
from inquitree_gym.baselines.conversation import CUT, NOTHING
from inquitree_gym.baselines.llm import CONTEXT
from inquitree_gym.embeddings import ReaderEmbedder
from inquitree_gym.errors import OptionError, ServiceError
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.exam import exam_of, sheet_of_world
from inquitree_gym.inquiry.results import inquiry_detail
from inquitree_gym.llm import MAX_REPLY, ChatModel, Completion, ReplyCache, estimated_tokens
from inquitree_gym.llm.cache import CachedChat
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.results.score import cost_of
from inquitree_gym.rollout import play
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.worlds import actual_world
from inquitree_gym.wrappers import LogEpisodes
from tests.frames import FRAMES, Framed
from tests.servers import FILTERED, REFUSED, USED_UP, Answer, Body, Hourglass, Rote, Service, failed, said
from tests.strategies import make_tree

pytestmark = pytest.mark.e2e

TURNS = 11
"""Of a faultless episode of the tree below, conclusion and exam included."""


@pytest.fixture(scope="module")
def tree() -> Tree:
    return make_tree([[], [0], [0]], [2, 1, 1], tree_id="three")


@pytest.fixture
def env(tree: Tree, reader: ReaderEmbedder) -> InquiryEnv:
    return InquiryEnv(tree, embedder=reader, world="actual")


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
def test_a_model_that_knows_everything_plays_perfectly_and_sees_the_conversation_so_far(
    env: InquiryEnv, service: Service
):
    agent = llm(service)
    episode = play(env, agent, 0)
    assert (len(episode.turns), episode.footer.episode_return) == (TURNS, 1.0)
    assert {(reply.role, reply.fault) for reply in episode.replies} == {("proposer", "")}
    assert [reply.text.partition("ACTION: ")[2] for reply in episode.replies] == list(episode.actions)
    first, *_, last = service.chats
    assert [message["role"] for message in first] == ["system", "user"]
    assert "THOUGHT" in first[0]["content"]
    assert [message["role"] for message in last] == ["system", *["user", "assistant"] * (TURNS - 1), "user"]
    told = [message["content"] for message in last[1::2]]
    assert told[:-1] == [turn.observation for turn in episode.turns[:-1]]
    assert told[-1].startswith(f"{episode.turns[-1].observation}\n\n(Your move is the whole answer sheet")
    assert agent.messages_of(episode)[:-1] == last
    assert [message["content"] for message in last[2::2]] == [reply.text for reply in episode.replies[:-1]]
    assert play(env, agent, 0).fingerprint == episode.fingerprint
    assert service.chats[:TURNS] == service.chats[TURNS:], "a second episode begins a new conversation"


@pytest.mark.parametrize("seed", [5, 2**64 - 1])
def test_the_seed_of_the_agent_is_sent_unless_the_model_has_one(seed: int, env: InquiryEnv, service: Service):
    play(env, llm(service), seed)
    (sent,) = {request.body["seed"] for request in service.requests}
    assert sent == env.agent_seed % 2**31 != seed % 2**31
    service.requests.clear()
    play(env, LLMAgent(chat_of(service, seed=77)), seed)
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


def test_a_long_conversation_is_cut_to_the_context(tree: Tree, reader: ReaderEmbedder, service: Service):
    env = InquiryEnv(tree, embedder=reader, max_turns="11n")
    service.reply = lambda body: f"THOUGHT: {'hm ' * 100}\nACTION: What decides question number 1?"
    episode = play(env, llm(service, context=1_000), 0)
    assert len(episode.turns) > 20
    note = "earlier exchanges left out here"
    for messages in service.chats:
        allowance = 40 if note in messages[1]["content"] else 0
        assert sum(map(estimated_tokens, messages)) <= 1_000 + allowance
        assert messages[1]["content"].startswith(episode.turns[0].observation)
    assert note in service.chats[-1][1]["content"]
    told = [messages[-1]["content"] for messages in service.chats]
    assert all(text.startswith(turn.observation) for text, turn in zip(told, episode.turns, strict=True))


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


# The exam and the agent that goes straight to it


def seen(service: Service) -> str:
    return "\n".join(message["content"] for chat in service.chats for message in chat)


@pytest.mark.parametrize("kind", [llm, sceptic])
def test_the_whole_action_of_many_lines_is_the_sheet(kind: Any, reader: ReaderEmbedder, service: Service):
    tree = load_tree("paper2")
    env = InquiryEnv(tree, embedder=reader, world="actual")
    rote = Rote(tree)

    def reply(body: Body) -> str:
        text = rote(body)
        told = body["messages"][-1]["content"]
        if told.startswith("Exam."):
            return "THOUGHT: 1 A, 2 A, or is it 1 B?"
        if not told.startswith("Your answer could not be read"):
            return text
        lines = text.partition("ACTION: ")[2].splitlines()
        return "THOUGHT: 6 A\nACTION:\n" + "\n".join(f"- Item {line.replace(' ', ': **')}**" for line in lines)

    service.reply = reply
    episode = play(env, kind(service), 0)
    assert [each.role for each in episode.replies[-2:]] == ["proposer", "correction"]
    assert len(episode.actions[-1].splitlines()) == len(tree.conclusions)
    assert episode.turns[-1].event.sheet.choices == sheet_of_world(exam_of(tree), actual_world(tree)).choices
    assert episode.footer.episode_return > 0.5


@pytest.mark.parametrize("resumed", [False, True])
def test_recall_sees_the_topic_alone_and_earns_nothing(
    resumed: bool, reader: ReaderEmbedder, service: Service, tmp_path: Path
):
    tree = load_tree("paper2")
    env = InquiryEnv(tree, embedder=reader, world="actual")
    service.reply = Rote(tree)
    agent = RecallAgent(chat_of(service))
    episode = play(env, agent, 0, file=tmp_path / "e.jsonl")
    if resumed:
        lines = (tmp_path / "e.jsonl").read_bytes().splitlines(keepends=True)
        (tmp_path / "e.jsonl").write_bytes(b"".join(lines[:4]))
        asked = service.chats
        service.requests.clear()
        again = play(env, agent, 0, file=tmp_path / "e.jsonl")
        assert (again.fingerprint, service.chats) == (episode.fingerprint, asked[1:])
    assert [turn.event.kind for turn in episode.turns] == ["conclusion", "exam", "end"]
    assert [reply.turn for reply in episode.replies] == [2, 3]
    assert episode.turns[-1].event.sheet.choices == sheet_of_world(exam_of(tree), actual_world(tree)).choices
    assert episode.footer.episode_return == 0
    assert agent.messages_of(episode)[:-1] == service.chats[-1]
    hidden = [node.text for node in (*tree.subtopics, *tree.studies)]
    assert not [text for text in hidden if text in seen(service)]
    assert service.chats[-1][0]["content"].startswith("You are asked what you know")


def test_recall_says_so_where_nothing_can_be_concluded_at_the_topic(env: InquiryEnv, service: Service):
    with pytest.raises(OptionError, match="give bare_decisions=True"):
        play(env, RecallAgent(chat_of(service)), 0, options={"bare_decisions": False})


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
    assert {turn.stated.get("belief") for turn in read_episode(tmp_path / "e.jsonl").turns} == {0.9}
    assert {turn.stated.get("belief") for turn in plain.turns} == {None}
    assert (agent.config["belief"], "belief" in kind(service).config) == (True, False)
    found = inquiry_detail(episode, tree, ())
    assert found.trajectory.beliefs == ((False, 0.9),) * 3
    assert found.as_plain()["calibration"] == {"stated": 3, "brier": pytest.approx(0.81), "auc": None}


def test_a_belief_is_asked_for_and_read_only_where_it_is_wanted(env: InquiryEnv, tree: Tree, service: Service):
    service.planned.extend([said("BELIEF: fake 0.7"), said("BELIEF: true 0.7\nACTION: Question 1?")])
    corrected = play(env, llm(service, belief=True), 0)
    assert roles(corrected)[:2] == ["proposer", "correction"]
    assert (corrected.turns[0].stated["belief"], corrected.actions[0]) == (pytest.approx(0.3), "Question 1?")
    asked = service.chats[0][0]["content"]
    service.requests.clear()
    service.reply = lambda body: "ACTION: draw conclusion\nBELIEF: fake"
    episode = play(env, llm(service), 0)
    unasked = service.chats[0][0]["content"]
    assert "BELIEF: true or fake" in asked
    assert asked.startswith(unasked)
    assert "BELIEF" not in unasked
    assert episode.actions[0] == "draw conclusion\nBELIEF: fake"
    assert {turn.stated.get("belief") for turn in episode.turns} == {None}


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


@pytest.mark.parametrize(
    ("last", "cut"), [("still no form", 0), ("", 0), ("ACTION: a\nACTION: b", 0), ("x" * (MAX_REPLY + 1_000), 1_000)]
)
def test_a_reply_that_stays_malformed_acts_whole(last: str, cut: int, env: InquiryEnv, service: Service):
    service.planned.extend([said("no form"), said(last)])
    episode = play(env, llm(service), 0)
    assert roles(episode)[:3] == ["proposer", "correction", "proposer"]
    assert episode.actions[0] == last[:MAX_REPLY]
    assert all(reply.fault for reply in episode.replies_to(1))
    assert episode.replies_to(1)[-1].cut == cut
    if not cut:
        assert service.chats[2][2] == {"role": "assistant", "content": last or NOTHING}


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
    episode = play(env, kind(service, context=1_600), 0)
    assert episode.footer.episode_return == 1.0
    assert {"correction", "proposer"} <= set(roles(episode))
    for messages in service.chats:
        assert sum(map(estimated_tokens, messages)) <= 1_600 + 40


# Resuming: nothing is paid twice


@pytest.mark.parametrize("kind", [llm, sceptic])
def test_a_log_torn_anywhere_goes_on_and_no_reply_is_paid_twice(
    kind: Any, env: InquiryEnv, tree: Tree, service: Service, tmp_path: Path
):
    file = tmp_path / "e.jsonl"
    service.reply = believing(tree)
    script = [lambda: None, said("no form"), lambda: None, lambda: None, said("bad"), said("worse")]
    service.planned.extend(script)
    whole = play(env, kind(service, belief=True), 0, file=file)
    chats = service.chats
    assert {"correction", "proposer"} <= set(roles(whole))
    assert 0.9 in {turn.stated.get("belief") for turn in whole.turns}
    lines = file.read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines), 1 if kind is llm else 3):
        paid = sum(line.startswith(b'{"kind":"reply"') for line in lines[:cut])
        file.write_bytes(b"".join(lines[:cut]) + lines[cut][: len(lines[cut]) // 2])
        service.requests.clear()
        service.planned.clear()
        service.planned.extend(script[paid:])
        again = play(env, kind(service, belief=True), 0, file=file)
        assert service.chats == chats[paid:], "the same is asked as without the tear, and nothing else"
        assert again.fingerprint == whole.fingerprint
        plain = [reply.model_dump(exclude={"seconds"}) for reply in again.replies]
        assert plain == [reply.model_dump(exclude={"seconds"}) for reply in whole.replies]
        for name in ("tokens", "cost", "stated"):
            assert [getattr(turn, name) for turn in again.turns] == [getattr(turn, name) for turn in whole.turns]


def test_the_time_that_a_reply_took_before_the_tear_still_counts(env: InquiryEnv, service: Service, tmp_path: Path):
    file = tmp_path / "e.jsonl"
    play(env, llm(service), 0, file=file)
    header, reply, *_ = file.read_text().splitlines(keepends=True)
    slow = json.loads(reply) | {"seconds": 500.0}
    file.write_text(header + json.dumps(slow) + "\n")
    first, second = play(env, llm(service), 0, file=file).turns[:2]
    assert 500 <= first.agent_seconds < 600
    assert second.agent_seconds < 100


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
    for wrong in (0, True, 1.5):
        with pytest.raises(OptionError, match="context must be a number of tokens, an integer from 1"):
            llm(service, context=wrong)


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


@pytest.mark.parametrize(
    ("verdict", "shown"), [("It looks fine to me.",) * 2, ("VERDICT: INVALID",) * 2, (FILTERED, NOTHING)]
)
def test_a_verdict_that_cannot_be_read_is_passed_on_whole(
    verdict: Any, shown: str, tree: Tree, env: InquiryEnv, service: Service
):
    service.planned.extend([lambda: None, lambda: None, said(verdict) if isinstance(verdict, str) else verdict])
    episode = play(env, sceptic(service), 0)
    assert (episode.replies[2].role, bool(episode.replies[2].fault)) == ("sceptic", True)
    assert episode.replies[3].role == "proposer", "a verdict is not corrected"
    assert service.chats[3][-1]["content"].endswith(f"says of this one: {shown}")


@pytest.mark.parametrize("rules", [{}, {"redo_turn": True}, {"reruns": "match"}])
@pytest.mark.parametrize("turns", [6, 7, 11, 30])
def test_results_are_told_from_everything_else(
    turns: int, rules: dict[str, Any], tree: Tree, reader: ReaderEmbedder, service: Service
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
    episode = play(InquiryEnv(tree, embedder=reader, max_turns=turns, **rules), sceptic(service), 0)
    shown = [turn.turn + 1 for turn in episode.turns if turn.event.kind == "result"]
    checked = [reply.turn for reply in episode.replies if reply.role == "sceptic"]
    if rules.get("redo_turn") and checked and checked[-1] > turns:
        checked = checked[: len(shown)]  # where the limit strikes at the turn of a redo, its prompt is checked
    assert checked == shown


# How a reply ended


CUT_REPLIES = {
    "thought": "Okay, so the user wants … Let me think about",
    "action": "ACTION: How steady is a fly's sense of hea",
    "conclusion": "THOUGHT: hm\nACTION:\n1. This rose.\n2. That f",
}


class OwnChat:
    """A chat of one's own, which says what is planned, with how it ended, and then plays."""

    def __init__(self, tree: Tree, *planned: tuple[str, str]) -> None:
        self.config, self._rote, self._planned = {"model": "own"}, Rote(tree), list(planned)

    async def complete(self, messages: Any, *, seed: int | None = None) -> Completion:
        text, ended = self._planned.pop(0) if self._planned else (self._rote({"messages": messages}), "stop")
        return Completion(text, ended, {}, None)


def served(service: Service, tree: Tree, *planned: tuple[str, str]) -> LLMAgent:
    service.planned.extend(said(*each) for each in planned)
    return llm(service)


def owned(service: Service, tree: Tree, *planned: tuple[str, str]) -> LLMAgent:
    return LLMAgent(OwnChat(tree, *planned))


doors = pytest.mark.parametrize("door", [served, owned])


@doors
@pytest.mark.parametrize("text", CUT_REPLIES.values(), ids=CUT_REPLIES)
def test_a_cut_reply_without_a_finished_move_is_asked_for_again_and_counted(
    door: Any, text: str, env: InquiryEnv, tree: Tree, service: Service
):
    clean = play(env, llm(service), 0)
    episode = play(env, door(service, tree, (text, "length")), 0)
    assert episode.fingerprint == clean.fingerprint
    cut, taken = episode.replies_to(1)
    assert (cut.text, cut.role, taken.role, taken.fault) == (text, "proposer", "proposer", "")
    assert cut.fault == "its tokens were used up before its move was finished"
    spent = cost_of(episode)
    assert (spent.cut_short, spent.without_text, spent.corrections) == (1, 0, 0)


@doors
def test_a_move_that_is_finished_before_the_cut_is_played(door: Any, env: InquiryEnv, tree: Tree, service: Service):
    episode = play(env, door(service, tree, ("ACTION: Who knows?\nTHOUGHT: as it we", "length")), 0)
    assert (episode.actions[0], len(episode.replies_to(1))) == ("Who knows?", 1)


@doors
@pytest.mark.parametrize(
    ("planned", "told"),
    [
        ([("ACTION: How stea", "FinishReason.MAX_TOKENS")] * 2, "before its move was finished; raise max_tokens"),
        ([("provider error", "model_length")], "too long for the model .* smaller context"),
        ([("ACTION: a", "model_context_window_exceeded")], "too long for the model .* smaller context"),
    ],
)
def test_replies_that_cannot_be_played_fail_the_episode_which_goes_on(
    door: Any, planned: Any, told: str, env: InquiryEnv, tree: Tree, service: Service, tmp_path: Path
):
    clean = play(env, llm(service), 0)
    file = tmp_path / "e.jsonl"
    agent = door(service, tree, *planned)
    with pytest.raises(ServiceError, match=told) as failure:
        play(env, agent, 0, file=file)
    assert not failure.value.concerns_all
    torn = read_episode(file)
    assert (torn.status, torn.footer, torn.turns) == ("failed", None, ())
    assert play(env, agent, 0, file=file).fingerprint == clean.fingerprint


@doors
@pytest.mark.parametrize("ended", ["refusal", "content_filter", "FinishReason.SAFETY"])
def test_a_refusal_in_the_form_of_a_move_is_corrected(
    door: Any, ended: str, env: InquiryEnv, tree: Tree, service: Service
):
    episode = play(env, door(service, tree, ("ACTION: I will not", ended)), 0)
    assert roles(episode)[:2] == ["proposer", "correction"]
    assert (episode.replies[0].fault != "", cost_of(episode).refused) == (True, 1)


def test_a_cut_reply_does_not_come_again_from_a_cache(env: InquiryEnv, tree: Tree, service: Service, tmp_path: Path):
    chat = CachedChat(OwnChat(tree, ("ACTION: How stea", "length")), ReplyCache(tmp_path), keeps_cut=False)
    assert [reply.cached for reply in play(env, LLMAgent(chat), 0).replies_to(1)] == [False, False]


@pytest.mark.parametrize("first", [0, len(FRAMES) // 2])
def test_the_same_framed_replies_give_the_same_game_and_stay_raw_in_the_log(
    first: int, env: InquiryEnv, tree: Tree, service: Service
):
    clean = play(env, llm(service), 0)
    service.reply = Framed(Rote(tree), first)
    own = OwnChat(tree)
    own._rote = service.reply
    for agent in (llm(service), LLMAgent(own)):
        episode = play(env, agent, 0)
        assert episode.fingerprint == clean.fingerprint
        assert roles(episode) == ["proposer"] * TURNS
    said = [frame(action) for frame, action in zip(list(FRAMES.values())[first + 1 :], clean.actions, strict=False)]
    assert [reply.text for reply in episode.replies][: len(said)] == said[:TURNS]
