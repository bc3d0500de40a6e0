"""Agents: baselines without a model, trained policies and language models."""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy

if TYPE_CHECKING:
    from inquitree_gym.baselines.agent import Agent, Ask, BaselineAgent, HumanAgent, ModelAgent, ReplayAgent
    from inquitree_gym.baselines.llm import ChatAgent
    from inquitree_gym.baselines.registry import make_agent
    from inquitree_gym.inquiry.agents.exact import BayesAgent, GreedyAgent
    from inquitree_gym.inquiry.agents.llm import LLMAgent, RecallAgent, ScepticAgent
    from inquitree_gym.inquiry.agents.policy import PolicyAgent, RetrievalAgent, sb3_policy
    from inquitree_gym.inquiry.agents.readers import CopyistAgent, CoverAgent, EchoAgent
    from inquitree_gym.inquiry.agents.scripted import (
        OracleAgent,
        RandomAgent,
        RandomMenuAgent,
        RandomWordsAgent,
        RedoUntilTrue,
        WorstCaseAgent,
    )
    from inquitree_gym.inquiry.play import AGENT_NAMES, BASELINE_NAMES, MODEL_AGENT_NAMES
    from inquitree_gym.projection.agents import ProjectingBaseline, ProjectingLLMAgent
    from inquitree_gym.projection.play import PROJECTION_AGENT_NAMES

__all__ = [
    "AGENT_NAMES",
    "BASELINE_NAMES",
    "MODEL_AGENT_NAMES",
    "PROJECTION_AGENT_NAMES",
    "Agent",
    "Ask",
    "BaselineAgent",
    "BayesAgent",
    "ChatAgent",
    "CopyistAgent",
    "CoverAgent",
    "EchoAgent",
    "GreedyAgent",
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
    "RecallAgent",
    "RedoUntilTrue",
    "ReplayAgent",
    "RetrievalAgent",
    "ScepticAgent",
    "WorstCaseAgent",
    "make_agent",
    "sb3_policy",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "baselines.agent": "Agent Ask BaselineAgent HumanAgent ModelAgent ReplayAgent",
        "baselines.llm": "ChatAgent",
        "baselines.registry": "make_agent",
        "inquiry.agents.exact": "BayesAgent GreedyAgent",
        "inquiry.agents.llm": "LLMAgent RecallAgent ScepticAgent",
        "inquiry.agents.policy": "sb3_policy PolicyAgent RetrievalAgent",
        "inquiry.agents.readers": "CopyistAgent CoverAgent EchoAgent",
        "inquiry.agents.scripted": (
            "OracleAgent RandomAgent RandomMenuAgent RandomWordsAgent RedoUntilTrue WorstCaseAgent"
        ),
        "inquiry.play": "AGENT_NAMES BASELINE_NAMES MODEL_AGENT_NAMES",
        "projection.agents": "ProjectingBaseline ProjectingLLMAgent",
        "projection.play": "PROJECTION_AGENT_NAMES",
    },
)
