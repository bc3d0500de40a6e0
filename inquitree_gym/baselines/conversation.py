"""Conversations with chat models: messages within a number of tokens, and the form of replies."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from inquitree_gym.llm import Message, estimated_tokens
from inquitree_gym.llm.chat import BYTES_PER_TOKEN
from inquitree_gym.prompts import Prompts
from inquitree_gym.text_limits import END_TOKEN, own_words, strip_thinking

SHARE = 4
"""A reply may fill one part of the context in this many."""
CUT = "[…] "
"""Replaces the beginning of a reply that is too long."""
NOTHING = "(no reply)"
"""Replaces an empty reply, which some services refuse."""


class Conversation:
    """Messages in order. The head always stays. Beyond it, the oldest pairs are dropped if there are too many."""

    def __init__(self, head: Sequence[Message], context: int, prompts: Prompts) -> None:
        """Start with ``head``, and stay within ``context`` estimated tokens."""
        self._head = list(head)
        self._rest: list[Message] = []
        self._context = context
        self._prompts = prompts

    def add_user(self, text: str) -> None:
        """Add a message to the model."""
        self._rest.append(user(text))

    def add_reply(self, text: str) -> None:
        """Add a reply of the model."""
        self._rest.append(assistant(self.shorten(text)))

    def shorten(self, text: str) -> str:
        """Leave out reasoning, and truncate a long reply, keeping the end, which holds the action."""
        text = strip_thinking(text)
        encoded, limit = text.encode("utf-8", "replace"), self._context * BYTES_PER_TOKEN // SHARE
        return text if len(encoded) <= limit else CUT + encoded[-limit:].decode("utf-8", "ignore")

    def messages(self, *more: Message) -> list[Message]:
        """Return the request: the head, a note on the number of dropped exchanges, and the newest messages.

        ``more`` are messages that are sent once and not remembered. They always stay, and so does the newest message,
        or the newest exchange after a head that ends with the user's turn.
        """
        rest = [*self._rest, *more]
        left = self._context - sum(map(estimated_tokens, (*self._head, *rest)))
        start = 0
        while left < 0 and len(self._rest) - start > 2:
            left += sum(map(estimated_tokens, rest[start : start + 2]))
            start += 2
        if not start:
            return [*self._head, *rest]
        *first, last = self._head
        note = self._prompts.render("llm_dropped", dropped=start // 2)
        return [*first, {**last, "content": f"{last['content']}\n\n{note}"}, *rest[start:]]


def user(text: str) -> Message:
    """Return a message to the model."""
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    """Return a reply as a message."""
    return {"role": "assistant", "content": text if text.strip() else NOTHING}


def system(text: str) -> Message:
    """Return a system prompt as a message."""
    return {"role": "system", "content": text}


_OBSERVED = re.compile(r"^[ \t>#*_`]*observation[ \t*_`]*[:：]", re.MULTILINE | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
_OBJECT = re.compile(r"(?:^|(?<=\}))[ \t,]*(?=\{)", re.MULTILINE)
_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=list)
_NOTHING = re.compile(r"\W*(?:none|n\W?a|nothing)\W*", re.IGNORECASE)
NO_MOVE = "its ACTION part names no move"


class _Part(NamedTuple):
    name: str
    text: str
    closed: bool
    """True if something follows, so that its end was not cut off."""


class ReplyFormat:
    """A reply in two parts, each headed by its name and a colon, or by its name alone on a line.

    Reasoning is ignored, and so is Markdown around a name. Where no line begins with the name of the second part, the
    items of a list may, or the reply is a JSON object with the parts by name. The second part is required, once and
    not empty. It ends at an invented "Observation:", at the fence around the reply, or at a token that ends a reply.
    The first part is optional. Time is linear in the reply's length.
    """

    def __init__(self, first: str, second: str) -> None:
        self._first, self._second = first, second
        mark, item = r"[ \t*_`]*", r"(?:(?:[-+•]|\(?\d{1,2}[.)])[ \t>#*_`]*)?"
        self._heads = [
            re.compile(rf"^[ \t>#*_`]*{lead}({first}|{second}){mark}(?:[:：]{mark}|$)", re.MULTILINE | re.IGNORECASE)
            for lead in ("", item)
        ]

    def fault(self, reply: str) -> str:
        """Return the fault in a reply, or an empty string for a valid one."""
        if not reply.strip():
            return "it is empty"
        found = self.parts(reply, self._second)
        if not found:
            return f"no part of it begins with {self._second}:"
        if len(found) > 1:
            return f"{len(found)} parts of it begin with {self._second}:"
        return "" if found[0] else f"its {self._second} part is empty"

    def parts(self, reply: str, name: str) -> list[str]:
        """Return the text of every part with this name."""
        return [part.text for part in self._parts(reply) if part.name == name]

    def is_finished(self, reply: str) -> bool:
        """Tell whether a reply that was cut off is valid and its second part whole."""
        return not self.fault(reply) and all(part.closed for part in self._parts(reply) if part.name == self._second)

    def _parts(self, reply: str) -> list[_Part]:
        said, *ended = END_TOKEN.split(strip_thinking(reply), maxsplit=1)
        for heads in self._heads:
            _, *pieces = heads.split(said)
            names = [name.upper() for name in pieces[::2]]
            if self._second in names:
                return list(self._headed(names, pieces[1::2], bool(ended)))
        return list(self._keyed(said))

    def _headed(self, names: list[str], texts: list[str], ended: bool) -> Iterator[_Part]:
        for place, (name, text) in enumerate(zip(names, texts, strict=True), 1):
            own, observed = _before_observation(text) if name == self._second else (text, False)
            plain = _unfenced(own) if name == self._second else own
            yield _Part(name, plain.strip(), ended or observed or plain != own or place < len(names))
            if observed:
                return

    def _keyed(self, said: str) -> Iterator[_Part]:
        """Yield the parts of JSON objects that begin a line."""
        start = _OBJECT.search(said)
        while start is not None:
            try:
                entries, end = _DECODER.raw_decode(said, start.end())
            except (ValueError, RecursionError):
                return
            for name, value in entries:
                if name.strip().upper() in (self._first, self._second):
                    text = value if isinstance(value, str) else "" if value is None else json.dumps(value)
                    yield _Part(name.strip().upper(), text.strip(), True)
            start = _OBJECT.search(said, end)


def _before_observation(text: str) -> tuple[str, bool]:
    """Return a part without the observation that a model invented after it, and whether there is one."""
    found = _OBSERVED.search(text)
    invented = found is not None and bool(text[: found.start()].strip())
    return (text[: found.start()], True) if found is not None and invented else (text, False)


def _unfenced(text: str) -> str:
    """Return a part without the fence around it, or the closing one of a fence that opened before it."""
    fences = list(_FENCE.finditer(text))
    if len(fences) % 2:
        return text[: fences[-1].start()]
    is_framed = len(fences) == 2 and not text[: fences[0].start()].strip()
    return text[fences[0].end() : fences[1].start()] if is_framed else text


_MOVE = ReplyFormat("THOUGHT", "ACTION")


def move_fault(reply: str) -> str:
    """Return the fault in a move, or an empty string for a valid one."""
    fault = _MOVE.fault(reply)
    return fault or (NO_MOVE if is_nothing(_MOVE.parts(reply, "ACTION")[0]) else "")


def bare(text: str) -> str:
    """Return a text that should be a move and nothing else, without reasoning and what follows the move."""
    return _unfenced(_before_observation(own_words(text))[0])


def is_nothing(move: str) -> bool:
    """Tell whether a move says that there is none, such as "None" or "N/A"."""
    return _NOTHING.fullmatch(move) is not None


def is_finished(reply: str) -> bool:
    """Tell whether the move in a reply that was cut off is whole."""
    return _MOVE.is_finished(reply)


def read_move(reply: str) -> str:
    """Return the ACTION part of a reply. The whole reply if it is not valid."""
    return reply if move_fault(reply) else _MOVE.parts(reply, "ACTION")[0]


def read_tool_move(text: str) -> tuple[str, str]:
    """Return the move in the argument of a tool, in the form of a reply or bare, and its fault or an empty string."""
    if _MOVE.parts(text, "ACTION"):
        return read_move(text), move_fault(text)
    move = bare(text)
    return move, "it names no move" if not move.strip() or is_nothing(move) else ""
