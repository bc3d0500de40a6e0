"""Chat models over litellm: any provider, and any server that speaks OpenAI's protocol; cache, budget, pace."""

from inquitree_gym.llm.budget import Budget, BudgetedChat, Paid
from inquitree_gym.llm.cache import CachedChat, ReplyCache
from inquitree_gym.llm.model import Chat, ChatModel, Clock, Message, SystemClock
from inquitree_gym.llm.rate_limit import Pace, PacedChat
from inquitree_gym.llm.response import MAX_REPLY, Completion
from inquitree_gym.llm.tokens import estimated_tokens

__all__ = [
    "MAX_REPLY",
    "Budget",
    "BudgetedChat",
    "CachedChat",
    "Chat",
    "ChatModel",
    "Clock",
    "Completion",
    "Message",
    "Pace",
    "PacedChat",
    "Paid",
    "ReplyCache",
    "SystemClock",
    "estimated_tokens",
]
