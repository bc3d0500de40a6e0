"""Chat models over litellm: any provider, and any server that speaks OpenAI's protocol; cache, budget, rate limit."""

from inquitree_gym._litellm import run_sync
from inquitree_gym.llm.cache import CachedChat, ReplyCache
from inquitree_gym.llm.chat import Chat, ChatMiddleware, Completion, Message, estimated_tokens, strip_thinking
from inquitree_gym.llm.model import MAX_REPLY, ChatModel, MissingKey
from inquitree_gym.llm.rate_limit import RateLimit, RateLimitedChat, RateLimiter, Reservation
from inquitree_gym.llm.retry import SystemClock
from inquitree_gym.llm.usage import Budget, BudgetedChat, SpendingCap, Usage

__all__ = [
    "MAX_REPLY",
    "Budget",
    "BudgetedChat",
    "CachedChat",
    "Chat",
    "ChatMiddleware",
    "ChatModel",
    "Completion",
    "Message",
    "MissingKey",
    "RateLimit",
    "RateLimitedChat",
    "RateLimiter",
    "ReplyCache",
    "Reservation",
    "SpendingCap",
    "SystemClock",
    "Usage",
    "estimated_tokens",
    "run_sync",
    "strip_thinking",
]
