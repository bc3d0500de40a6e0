"""Texts from outside: length limits of actions and observations, and the frames that servers leave around replies."""

from __future__ import annotations

import re

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


_TAG = re.compile(
    r"""(?P<final>(?:<\|start\|>assistant)?<\|channel\|>final[^<|]{0,40}(?:<\|constrain\|>\w{0,40})?<\|message\|>
                  |(?-i:assistantfinal))
      | (?P<open><(?:think|thinking|thought|reasoning)>|\[THINK\]
                 |(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary)[^<|]{0,99}
                  (?:<\|constrain\|>\w{0,40})?<\|message\|>)
      | (?P<close></(?:think|thinking|thought|reasoning)>|\[/THINK\])
      | (?P<end><\|end\|>)""",
    re.IGNORECASE | re.VERBOSE,
)
END_TOKEN = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|end|return|endoftext|end_of_text)\|>|</s>|<(?:end_of_turn|eos)>"
    r"|<\uff5cend\u2581of\u2581sentence\uff5c>",
    re.IGNORECASE,
)
"""Token that ends a reply. Whatever follows it is invented."""


def strip_thinking(reply: str) -> str:
    """Return a reply without reasoning: pairs of tags, channels, and everything up to a closing tag alone.

    Reasoning that begins the reply and is never closed is its whole rest. Time is linear in the reply's length.

    >>> strip_thinking("[THINK]a[/THINK]b"), strip_thinking("a</think>b"), strip_thinking("<think>a")
    ('b', 'b', '')
    """
    kept: list[str] = []
    place, opened = 0, None
    for tag in _TAG.finditer(reply):
        kind = tag.lastgroup
        if kind == "open" and opened is None:
            kept.append(reply[place : tag.start()])
            place = opened = tag.start()
        elif kind == "final" or (kind == "close" and opened is None):
            kept.clear()
            place, opened = tag.end(), None
        elif kind != "open" and opened is not None:
            place, opened = tag.end(), None
    said = "".join(kept)
    return said if opened is not None and not said.strip() else said + reply[place:]


def own_words(reply: str) -> str:
    """Return a reply without reasoning, and without what follows a token that ends it."""
    return END_TOKEN.split(strip_thinking(reply), maxsplit=1)[0]
