"""Language models that project, over a real server on loopback: what they are sent, and what is paid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.baselines import ProjectingLLMAgent, make_agent
from inquitree_gym.baselines.conversation import NOTHING
from inquitree_gym.envs import ProjectionEnv
from inquitree_gym.errors import OptionError
from inquitree_gym.llm import ChatModel
from inquitree_gym.log import Episode
from inquitree_gym.rollout import play
from tests.projection.tasks import WORDS
from tests.servers import Body, Hourglass, Service, said
from tests.tasks import make_task

pytestmark = pytest.mark.e2e

TASK = make_task()
TOLD = TASK.disclosure
FORMS = [{"memory": memory, "reply": reply} for memory in ("none", "conversation") for reply in ("plain", "thought")]


class Rising:
    """Projects that yeast raises dough, in the form that the system prompt asks for; every level has its own text."""

    def __call__(self, body: Body) -> str:
        system, *told = (message["content"] for message in body["messages"])
        text = TASK.claims[0].text[:-1] + f" at least {sum('Procedure' in each for each in told)} times"
        return f"THOUGHT: it is baking.\nACTION: {text}." if "THOUGHT" in system else f"{text}."


@pytest.fixture(autouse=True)
def _rising(service: Service) -> None:
    service.reply = Rising()


@pytest.fixture
def env() -> ProjectionEnv:
    return ProjectionEnv(TASK, judge=WORDS)


def llm(service: Service, **settings: Any) -> ProjectingLLMAgent:
    chat = ChatModel("gpt-4o-mini", base_url=service.address, clock=Hourglass())
    return ProjectingLLMAgent(chat, **settings)


def roles(episode: Episode) -> list[str]:
    return [reply.role for reply in episode.replies]


def senders(chat: list[dict[str, str]]) -> list[str]:
    return [message["role"] for message in chat]


# Memory


@pytest.mark.parametrize("reply", ["plain", "thought"])
def test_without_memory_each_level_is_one_system_and_one_user_message(reply: Any, env: ProjectionEnv, service: Service):
    episode = play(env, llm(service, reply=reply, context=1), 0)  # it is sent whole however long it is
    assert [senders(chat) for chat in service.chats] == [["system", "user"]] * 3
    assert [chat[1]["content"] for chat in service.chats] == [turn.observation for turn in episode.turns]
    assert len({chat[0]["content"] for chat in service.chats}) == 1
    assert "Each message" not in service.chats[0][0]["content"]
    for chat, action in zip(service.chats[1:], episode.actions[:-1], strict=True):
        assert action not in "\n".join(message["content"] for message in chat)


@pytest.mark.parametrize("reply", ["plain", "thought"])
def test_a_conversation_sends_every_earlier_projection(reply: Any, env: ProjectionEnv, service: Service):
    episode = play(env, llm(service, memory="conversation", reply=reply), 0)
    assert [senders(chat) for chat in service.chats] == [
        ["system", *["user", "assistant"] * earlier, "user"] for earlier in range(3)
    ]
    assert "Each message" in service.chats[0][0]["content"]
    last = [message["content"] for message in service.chats[-1]]
    assert last[1::2] == [turn.observation for turn in episode.turns]
    assert last[2::2] == [reply.text for reply in episode.replies[:-1]]


def test_nothing_that_a_model_reads_tells_what_it_earned(service: Service):
    sent = []
    for task_claims in (TASK.claims, TASK.claims[::-1]):  # the same disclosure, another outcome
        claims = [claim.model_dump(mode="json") for claim in task_claims[:2]]
        play(ProjectionEnv(make_task(claims=claims), judge=WORDS), llm(service, memory="conversation"), 0)
        sent.append(list(service.chats))
        service.requests.clear()
    assert sent[0] == sent[1]


# Replies


@pytest.mark.parametrize(
    ("reply", "text", "action"),
    [
        ("plain", "  Yeast raises dough.\n", "Yeast raises dough."),
        ("plain", "<think>It is alive.</think>Yeast raises dough.", "Yeast raises dough."),
        ("plain", "THOUGHT: why\nACTION: Yeast raises dough.", "THOUGHT: why\nACTION: Yeast raises dough."),
        ("plain", "[THINK]It is alive.[/THINK]```\nYeast raises dough.\n```", "Yeast raises dough."),
        ("plain", "Yeast raises dough.</s>\nuser", "Yeast raises dough."),
        ("plain", "Yeast raises dough.\nObservation: it did", "Yeast raises dough."),
        ("thought", '{"thought": "why", "action": "Yeast rises."}', "Yeast rises."),
        ("thought", "**THOUGHT:** why\n**ACTION:** Yeast rises.\nSalt slows.", "Yeast rises.\nSalt slows."),
    ],
)  # fmt: skip
def test_the_projection_is_taken_from_the_reply(reply: Any, text: str, action: str, env: Any, service: Service):
    service.planned.append(said(text))
    assert play(env, llm(service, reply=reply), 0).actions[0] == action


@pytest.mark.parametrize("form", FORMS)
def test_a_malformed_reply_is_corrected_once_and_then_taken_whole(form: Any, env: ProjectionEnv, service: Service):
    bad = "" if form["reply"] == "plain" else "Yeast raises dough."
    service.planned.extend([lambda: None, said(bad), lambda: None, said(bad), said(bad)])
    episode = play(env, llm(service, **form), 0)
    assert roles(episode) == ["proposer", "proposer", "correction", "proposer", "correction"]
    corrected = service.chats[2]
    assert senders(corrected)[-3:] == ["user", "assistant", "user"]
    assert corrected[-2]["content"] == (bad or NOTHING)
    assert corrected[-1]["content"].startswith("Your answer could not be read:")
    assert ("ACTION:" in corrected[-1]["content"]) == (form["reply"] == "thought")
    assert len(service.chats[3]) == (2 if form["memory"] == "none" else 6), "the malformed reply is forgotten"
    assert episode.actions[2] == bad


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("text", "ended", "fault"),
    [
        ("I cannot help with that.", "refusal", "it is a refusal"),
        ("Yeast", "content_filter", "it was filtered"),
        ("N/A", "stop", "it names no outcome"),
    ],
)
def test_a_refusal_is_malformed_in_either_form(
    form: Any, text: str, ended: str, fault: str, env: ProjectionEnv, service: Service
):
    service.planned.append(said(None, refusal=text) if ended == "refusal" else said(text, ended))
    episode = play(env, llm(service, **form), 0)
    assert roles(episode)[:3] == ["proposer", "correction", "proposer"]
    assert episode.replies[0].text == text
    assert episode.replies[0].fault == (fault if form["reply"] == "plain" else "no part of it begins with ACTION:")
    assert text not in episode.actions


# Settings


def test_the_header_tells_memory_and_reply(env: ProjectionEnv, service: Service):
    agent = llm(service, memory="conversation", reply="thought", context=900)
    header = play(env, agent, 0).header.agent
    told = {name: header[name] for name in ("name", "model", "memory", "reply", "context")}
    assert told == {"name": "llm", "model": "gpt-4o-mini", "memory": "conversation", "reply": "thought", "context": 900}
    assert len({str(llm(service, **form).config) for form in FORMS}) == 4


@pytest.mark.parametrize(("name", "value"), [("memory", "both"), ("memory", None), ("reply", 1)])
def test_a_setting_out_of_range_is_told(name: str, value: Any, service: Service):
    with pytest.raises(OptionError, match=rf"{name} must be one of \w+, \w+, got {value!r}"):
        llm(service, **{name: value})


def test_the_model_is_made_by_name_for_projections(env: ProjectionEnv, service: Service):
    agent = make_agent("llm", env, model="gpt-4o-mini", base_url=service.address, memory="conversation", context=123)
    assert type(agent) is ProjectingLLMAgent
    assert (agent.config["memory"], agent.config["context"]) == ("conversation", 123)
    with pytest.raises(OptionError, match=r"unknown setting 'belief'; the agent 'llm' takes: .*memory, reply"):
        make_agent("llm", env, model="gpt-4o-mini", belief=True)


def test_templates_of_ones_own_are_used_beside_those_of_the_environment(service: Service, tmp_path: Path):
    (tmp_path / "projection_system.md").write_text("Bake {{ memory }} {{ reply }}.")
    (tmp_path / "projection_correction.md").write_text("Again: {{ fault }}.")
    (tmp_path / "projection_end.md").write_text("Done.")
    own = llm(service, prompts=tmp_path)
    assert own.config["templates"] != llm(service).config["templates"]
    service.planned.append(said(""))
    episode = play(ProjectionEnv(TASK, judge=WORDS, prompts=tmp_path), own, 0)
    assert service.chats[0][0]["content"] == "Bake none plain."
    assert service.chats[1][-1]["content"] == "Again: it is empty."
    assert episode.footer.observation == "Done."


# Resuming: nothing is paid twice


@pytest.mark.parametrize("reply", ["plain", "thought"])
def test_turns_without_replies_in_the_log_are_remembered(reply: Any, env: ProjectionEnv, service: Service):
    agent = llm(service, memory="conversation", reply=reply)
    _, info = env.reset(seed=0)
    agent.reset(env.agent_seed)
    agent.recall("first", info, "Dough rises.")
    agent.act("second", info)
    contents = [message["content"] for message in service.chats[0][1:]]
    assert contents == ["first", "Dough rises." if reply == "plain" else "ACTION: Dough rises.", "second"]
