"""About how many tokens a message takes, by a rule that is the same for every model."""

from __future__ import annotations

from inquitree_gym.llm.model import Message

BYTES_PER_TOKEN = 4
"""Bytes of UTF-8 that count as one token: an estimate, the same for every model, so that a replay trims alike."""
TOKENS_PER_MESSAGE = 4
"""Tokens that count for the frame of a message."""


def estimated_tokens(message: Message) -> int:
    """Return about how many tokens a message takes.

    >>> estimated_tokens({"role": "user", "content": "How much of it is noise?"})
    10
    """
    return TOKENS_PER_MESSAGE - -len(message["content"].encode("utf-8", "replace")) // BYTES_PER_TOKEN
