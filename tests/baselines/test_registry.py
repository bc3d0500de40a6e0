"""Agents by name, and the settings that some of them need."""

from __future__ import annotations

from typing import Any

import pytest

from inquitree_gym.baselines import (
    AGENT_NAMES,
    BASELINE_NAMES,
    MODEL_AGENT_NAMES,
    LLMAgent,
    ScepticAgent,
    make_agent,
)
from inquitree_gym.baselines.agent import asks
from inquitree_gym.embeddings import MiniLMEmbedder, TreeVectors, tree_vectors
from inquitree_gym.errors import OptionError
from inquitree_gym.llm import ChatModel
from inquitree_gym.trees import load_tree


@pytest.fixture(scope="module")
def vectors(minilm: MiniLMEmbedder) -> TreeVectors:
    return tree_vectors(load_tree("paper12"), minilm)


def test_the_names_are_those_of_baselines_and_of_agents_with_a_model():
    assert (*BASELINE_NAMES, *MODEL_AGENT_NAMES) == AGENT_NAMES
    assert MODEL_AGENT_NAMES == ("llm", "sceptic")


@pytest.mark.parametrize(("name", "kind"), [("llm", LLMAgent), ("sceptic", ScepticAgent)])
def test_an_agent_with_a_model_takes_the_settings_of_both(name: str, kind: type, vectors: TreeVectors):
    settings = {"base_url": "http://localhost:1/v1", "temperature": 0.3, "max_tokens": 7, "retries": 2}
    agent = make_agent(name, vectors, model="llama3", context=123, **settings)
    assert type(agent) is kind
    assert agent.chat == ChatModel("llama3", **settings)
    assert (agent.config["name"], agent.config["context"]) == (name, 123)
    assert asks(agent)


def test_a_chat_of_ones_own_takes_the_place_of_a_model(vectors: TreeVectors):
    chat = ChatModel("gpt-4o-mini")
    assert make_agent("llm", vectors, chat=chat).chat is chat


@pytest.mark.parametrize("name", BASELINE_NAMES)
def test_an_agent_without_a_model_takes_no_settings(name: str, vectors: TreeVectors):
    assert not asks(make_agent(name, vectors))
    with pytest.raises(OptionError, match=f"the agent '{name}' takes no settings; leave out model, seed"):
        make_agent(name, vectors, model="gpt-4o-mini", seed=3)


@pytest.mark.parametrize("name", MODEL_AGENT_NAMES)
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "needs a model: give model='provider/name', or chat="),
        ({"context": 9}, "needs a model"),
        ({"model": "gpt-4o-mini", "chat": ChatModel("gpt-4o-mini")}, "needs a model: .* not both"),
        ({"chat": ChatModel("gpt-4o-mini"), "timeout": 3}, "chat= has settings of its own; leave out timeout"),
        ({"model": "gpt-4o-mini", "temprature": 3}, r"unknown setting 'temprature' \(did you mean 'temperature'\?\)"),
        ({"model": "gpt-4o-mini", "temperature": -3}, "temperature is a number from 0"),
        ({"model": "gpt-4o-mini", "context": 0}, "context is a whole number"),
        ({"model": "gpt-4o-mini", "prompts": "/no/such/folder"}, "no folder of templates"),
    ],
)
def test_settings_at_fault_are_told(name: str, settings: dict[str, Any], told: str, vectors: TreeVectors):
    with pytest.raises(OptionError, match=told):
        make_agent(name, vectors, **settings)
