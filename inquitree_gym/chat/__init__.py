"""Chat models over litellm: any provider, and any server that speaks OpenAI's protocol; cache, budget, pace."""

from inquitree_gym.chat.answers import MAX_REPLY, Completion
from inquitree_gym.chat.budget import Budget, BudgetedChat, Paid
from inquitree_gym.chat.cache import CachedChat, ReplyCache
from inquitree_gym.chat.estimate import estimated_tokens
from inquitree_gym.chat.model import Chat, ChatModel, Clock, Message, SystemClock
from inquitree_gym.chat.pace import Pace, PacedChat

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
