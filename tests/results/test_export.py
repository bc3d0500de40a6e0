"""Episodes as chat messages: exactly those of the model's conversation, valid wherever they are read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import inquitree_gym as it
from inquitree_gym.baselines import LLMAgent, ScepticAgent
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.integrations.messages import check_contamination, had_other_prompts, message_row
from inquitree_gym.llm import ChatModel
from inquitree_gym.log import Episode
from inquitree_gym.trees import load_tree
from tests.servers import Rote, Service, said

TREE = load_tree("paper2")
MALFORMED = said("I would rather not say.")


def play(service: Service, agent: type[LLMAgent] = LLMAgent, **settings) -> Episode:
    service.reply = Rote(TREE)
    model = ChatModel("openai/gpt-4o-mini", base_url=service.address)
    return it.play(InquiryEnv(TREE), agent(model, **settings), seed=3)


def asked_last(service: Service) -> list[dict[str, str]]:
    """The last request for a move."""
    return next(chat for chat in reversed(service.chats) if "VERDICT" not in chat[0]["content"])


@pytest.mark.weights
@pytest.mark.parametrize("agent", [LLMAgent, ScepticAgent])
@pytest.mark.parametrize("belief", [False, True])
def test_the_messages_are_those_that_the_model_saw_and_its_last_reply(service: Service, agent, belief):
    service.planned.append(MALFORMED)  # then corrected; the conversation keeps the correction alone
    episode = play(service, agent, belief=belief)
    assert [reply.role for reply in episode.replies].count("correction") == 1
    row = message_row(episode)
    assert row["messages"] == [*asked_last(service), {"role": "assistant", "content": episode.replies[-1].text}]
    assert row["agent"] == f"{agent.name} openai/gpt-4o-mini"


@pytest.mark.weights
def test_a_row_is_valid_utf_8_whatever_the_model_wrote(service: Service):
    service.planned.append(said("THOUGHT: \ud800\nACTION: How? \udfff"))
    row = message_row(play(service))
    assert json.dumps(row, ensure_ascii=False).encode()
    assert "How? ?" in row["messages"][2]["content"]


@pytest.mark.weights
def test_a_row_tells_of_other_prompts(service: Service, tmp_path: Path):
    (tmp_path / "llm_system.md").write_text("Answer with THOUGHT: and ACTION:.", encoding="utf-8")
    assert not had_other_prompts(play(service))
    assert not had_other_prompts(play(service, belief=True))
    assert had_other_prompts(play(service, prompts=tmp_path))
    episode = play(service)
    bare = replace(episode, header=episode.header.model_copy(update={"agent": {"name": "oracle"}}))
    assert not had_other_prompts(bare)


def test_trees_of_the_benchmark_need_leave():
    check_contamination(["own", "paper2"], allowed=True)
    check_contamination(["own", "synthetic-1"], allowed=False)
    with pytest.raises(OptionError, match=r"^paper2, paper12: .* give --benchmark"):
        check_contamination(["own", "paper2", "paper12", "paper2"], allowed=False)
    with pytest.raises(OptionError, match="--benchmark does nothing here"):
        check_contamination(["own"], allowed=True)
