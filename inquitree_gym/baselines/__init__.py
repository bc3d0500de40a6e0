"""Agents: baselines without a model, trained policies and language models."""

from inquitree_gym.baselines.agent import Agent, Ask, BaselineAgent, ModelAgent
from inquitree_gym.baselines.llm import LLMAgent, ScepticAgent
from inquitree_gym.baselines.oracle import OracleAgent, RedoUntilTrue, WorstCaseAgent
from inquitree_gym.baselines.policy import PolicyAgent, RetrievalAgent
from inquitree_gym.baselines.projecting import ProjectingBaseline
from inquitree_gym.baselines.projecting_llm import ProjectingLLMAgent
from inquitree_gym.baselines.random_agents import RandomAgent, RandomMenuAgent, RandomWordsAgent
from inquitree_gym.baselines.registry import (
    AGENT_NAMES,
    BASELINE_NAMES,
    MODEL_AGENT_NAMES,
    PROJECTION_AGENT_NAMES,
    make_agent,
)
from inquitree_gym.baselines.replay import HumanAgent, ReplayAgent

__all__ = [
    "AGENT_NAMES",
    "BASELINE_NAMES",
    "MODEL_AGENT_NAMES",
    "PROJECTION_AGENT_NAMES",
    "Agent",
    "Ask",
    "BaselineAgent",
    "HumanAgent",
    "LLMAgent",
    "ModelAgent",
    "OracleAgent",
    "PolicyAgent",
    "ProjectingBaseline",
    "ProjectingLLMAgent",
    "RandomAgent",
    "RandomMenuAgent",
    "RandomWordsAgent",
    "RedoUntilTrue",
    "ReplayAgent",
    "RetrievalAgent",
    "ScepticAgent",
    "WorstCaseAgent",
    "make_agent",
]
