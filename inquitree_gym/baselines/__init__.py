"""Agents that need no model service."""

from inquitree_gym.baselines.agent import Agent, BaselineAgent, Call, Menu
from inquitree_gym.baselines.chance import RandomAgent, RandomMenuAgent, RandomWordsAgent
from inquitree_gym.baselines.extremes import OracleAgent, WorstCaseAgent
from inquitree_gym.baselines.given import HumanAgent, ReplayAgent
from inquitree_gym.baselines.make import AGENT_NAMES, make_agent
from inquitree_gym.baselines.retrieval import RetrievalAgent

__all__ = [
    "AGENT_NAMES",
    "Agent",
    "BaselineAgent",
    "Call",
    "HumanAgent",
    "Menu",
    "OracleAgent",
    "RandomAgent",
    "RandomMenuAgent",
    "RandomWordsAgent",
    "ReplayAgent",
    "RetrievalAgent",
    "WorstCaseAgent",
    "make_agent",
]
