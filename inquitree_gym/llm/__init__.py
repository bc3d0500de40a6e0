"""Chat models over litellm: any provider, and any server that speaks OpenAI's protocol. Cache, budget, rate limit."""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy

if TYPE_CHECKING:
    from inquitree_gym.llm.budget import Budget, BudgetedChat, SpendingCap
    from inquitree_gym.llm.cache import CachedChat, ReplyCache
    from inquitree_gym.llm.chat import Chat, ChatMiddleware, Completion, Message, Usage, estimated_tokens
    from inquitree_gym.llm.litellm import run_sync
    from inquitree_gym.llm.model import MAX_REPLY, ChatModel, MissingKey
    from inquitree_gym.llm.retry import RateLimit, RateLimitedChat, RateLimiter, Reservation, SystemClock
    from inquitree_gym.text_limits import strip_thinking

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

__getattr__, __dir__ = lazy(
    __name__,
    {
        "llm.cache": "CachedChat ReplyCache",
        "llm.chat": "Chat ChatMiddleware Completion Message Usage estimated_tokens",
        "llm.litellm": "run_sync",
        "llm.model": "MAX_REPLY ChatModel MissingKey",
        "llm.retry": "RateLimit RateLimitedChat RateLimiter Reservation SystemClock",
        "llm.budget": "Budget BudgetedChat SpendingCap",
        "text_limits": "strip_thinking",
    },
)
