"""Agents by name, and the settings that some of them need."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

from inquitree_gym.baselines import BASELINE_NAMES, MODEL_AGENT_NAMES, LLMAgent, ScepticAgent, make_agent
from inquitree_gym.baselines.agent import asks_models
from inquitree_gym.embeddings import ReaderEmbedder, tree_vectors
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.vector import SyntheticEnv
from inquitree_gym.llm import ChatModel
from inquitree_gym.rollout import play
from inquitree_gym.trees import load_tree


@pytest.fixture(scope="module")
def env(reader: ReaderEmbedder) -> InquiryEnv:
    return InquiryEnv("paper12", embedder=reader)


@pytest.mark.parametrize(("name", "kind"), [("llm", LLMAgent), ("sceptic", ScepticAgent)])
def test_an_agent_with_a_model_takes_the_settings_of_both(name: str, kind: type, env: InquiryEnv):
    settings = {"base_url": "http://localhost:1/v1", "temperature": 0.3, "max_tokens": 7, "retries": 2}
    agent = make_agent(name, env, model="llama3", context=123, **settings)
    assert type(agent) is kind
    assert agent.chat == ChatModel("llama3", **settings)
    assert (agent.config["name"], agent.config["context"]) == (name, 123)
    assert asks_models(agent)


@pytest.mark.parametrize("name", BASELINE_NAMES)
def test_an_agent_without_a_model_takes_no_settings(name: str, reader: ReaderEmbedder):
    env = InquiryEnv("paper2", embedder=reader, privileged=True)
    assert not asks_models(make_agent(name, env))
    with pytest.raises(OptionError, match=f"the agent '{name}' takes no settings; leave out model, seed"):
        make_agent(name, env, model="gpt-4o-mini", seed=3)


@pytest.mark.parametrize("name", MODEL_AGENT_NAMES)
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "needs a model: give model='provider/name' or chat="),
        ({"context": 9}, "needs a model"),
        ({"model": "gpt-4o-mini", "chat": ChatModel("gpt-4o-mini")}, "needs a model: .* not both"),
        ({"chat": ChatModel("gpt-4o-mini"), "timeout": 3}, "chat= has its own settings; leave out timeout"),
        ({"model": "gpt-4o-mini", "temprature": 3}, r"unknown setting 'temprature' \(did you mean 'temperature'\?\)"),
        ({"model": "gpt-4o-mini", "temperature": -3}, "temperature must be a number from 0"),
        ({"model": "gpt-4o-mini", "context": 0}, "context must be a number of tokens, an integer from 1"),
        ({"model": "gpt-4o-mini", "prompts": "/no/such/folder"}, "no folder of templates"),
    ],
)
def test_settings_at_fault_are_told(name: str, settings: dict[str, Any], told: str, env: InquiryEnv):
    with pytest.raises(OptionError, match=told):
        make_agent(name, env, **settings)


@pytest.mark.parametrize("name", BASELINE_NAMES)
def test_an_agent_made_before_a_reset_plays_as_one_made_after_it(name: str, reader: ReaderEmbedder):
    env = InquiryEnv("paper2", embedder=reader, privileged=True)
    before = play(env, make_agent(name, gym.wrappers.TimeLimit(env, 9)), 4)
    assert play(env, make_agent(name, env), 4).fingerprint == before.fingerprint


@pytest.mark.parametrize("name", ["oracle", "worst-case", "random-redo"])
def test_an_agent_that_needs_to_be_told_fails_at_once_where_it_is_not(name: str):
    told = f"^the {name} agent needs an environment made with privileged=True$"
    for env in (gym.make("InquiTree-paper2-v0"), InquiryEnv("paper2")):
        with pytest.raises(OptionError, match=told):
            make_agent(name, env)
    assert make_agent(name, gym.make("InquiTree-paper2-v0", privileged=True)).needs_privileged


def test_the_tree_is_that_of_the_episode(reader: ReaderEmbedder):
    env = InquiryEnv(["paper2", "paper8"], embedder=reader)
    synthetic = SyntheticEnv(embedder=reader)
    for several in (env, synthetic):
        with pytest.raises(OptionError, match=r"draws its tree at each reset; call env\.reset\(\) before make_agent"):
            make_agent("random", several)
        assert make_agent("random-words", several).config == {"name": "random-words"}
    for tree in ("paper2", "paper8"):
        env.reset(seed=0, options={"tree": tree})
        assert play(env, make_agent("random", env), 1, options={"tree": tree}).status == "concluded"


def test_what_is_no_environment_is_told(reader: ReaderEmbedder):
    for wrong, told in ((tree_vectors(load_tree("paper2"), reader), "TreeVectors"), ("paper2", "str")):
        with pytest.raises(OptionError, match=rf"takes an environment in free text, such as gym\.make\(.*not {told}"):
            make_agent("random", wrong)
    with pytest.raises(OptionError, match="not TimeLimit"):
        make_agent("llm", gym.make("CartPole-v1"), model="gpt-4o-mini")
