"""Length limits of actions and observations."""

from __future__ import annotations

MAX_ACTION_LENGTH = 20_000
"""Maximum number of characters that are read from an action. The rest is ignored."""
MAX_OBSERVATION = 16_384
"""Longest observation, in characters."""


def readable(action: str) -> str:
    """Return the first `MAX_ACTION_LENGTH` characters of an action, with lone surrogates replaced.

    Two surrogates of one character are joined, as they are when a log is read.
    """
    if not action.isascii():
        units = action[: 2 * MAX_ACTION_LENGTH].encode("utf-16-le", "surrogatepass")
        action = units.decode("utf-16-le", "surrogatepass")
    return action[:MAX_ACTION_LENGTH].encode("utf-8", "replace").decode()
