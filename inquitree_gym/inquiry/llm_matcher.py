"""Readers that choose the candidate that an action means in place of the embedder: a chat model, or your own."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from inquitree_gym.errors import OptionError, ReaderError, ServiceError
from inquitree_gym.inquiry.prompts import inquiry_prompts
from inquitree_gym.llm.chat import Chat, Completion, Message, complete_with_text
from inquitree_gym.prompts import Prompts
from inquitree_gym.text_limits import strip_thinking

if TYPE_CHECKING:
    from inquitree_gym.llm import ReplyCache

LOCAL = "local"
"""Name of the reading by similarity."""
LLM_PREFIX = "llm:"
"""Prefix of the names of readers that ask a chat model."""
TEMPLATES = ("reader_system", "reader_request")
"""Templates of the messages."""
NONE = "none"
"""Answer of a reader to a text that means no candidate."""


class ReaderRequest(NamedTuple):
    """An action and the candidates that it may mean."""

    kind: Literal["subtopics", "studies"]
    candidates: tuple[tuple[str, str], ...]
    """Ids and canonical texts, in tree order."""
    text: str
    """The action, without lone surrogates."""


@dataclass(frozen=True, slots=True)
class ReaderAnswer:
    """Choice of a reader."""

    candidate: str | None
    """Id of the candidate that the action means. None for none of them."""
    reply: Completion | None = None
    """The reply behind the choice, for the log. None if no chat model was asked."""
    fault: str = ""
    """Fault in the reply, which then counts as a choice of none. Empty for a valid one."""


class Reader(Protocol):
    """Anything that chooses the candidate that an action means."""

    @property
    def config(self) -> dict[str, Any]:
        """Settings that determine the choices, for the log: plain values, at least ``name``."""

    async def choose(self, request: ReaderRequest) -> ReaderAnswer:
        """Return the choice, the same for the same request.

        Raises:
            ServiceError: there is no usable reply.
        """


class LLMReader:
    """Reader that asks a chat model. Every paid reply is cached before it is used, so it is paid for once."""

    def __init__(self, chat: Chat, *, cache: ReplyCache | None = None, prompts: Prompts | None = None) -> None:
        """Ask ``chat``.

        Args:
            chat: the model, with its temperature.
            cache: cache of replies. None for the folder ``reader`` of the package's cache.
            prompts: prompts with the templates `TEMPLATES`. None for the package's.

        Raises:
            OptionError: litellm knows no provider for the model.
        """
        from inquitree_gym.files import user_folder
        from inquitree_gym.llm.cache import CachedChat, ReplyCache
        from inquitree_gym.log.records import READER_ROLE

        self._chat = CachedChat(chat, cache or ReplyCache(user_folder(READER_ROLE)))
        self._prompts = prompts or inquiry_prompts(names=TEMPLATES)
        self.name = f"{LLM_PREFIX}{chat.config['model']}"

    @property
    def config(self) -> dict[str, Any]:
        """See `Reader.config`."""
        return {"name": self.name, "chat": self._chat.config, "prompts": self._prompts.digest}

    async def choose(self, request: ReaderRequest) -> ReaderAnswer:
        """Return the choice of the model. A reply without a candidate on its last line is a choice of none.

        Raises:
            ReaderError: the model gave no usable reply.
            BudgetError: a cap is reached.
            CacheError: a paid reply could not be cached.
        """
        try:
            completion = await complete_with_text(self._chat, self.messages(request))
        except ServiceError as error:
            raise ReaderError(
                f"the reader could not read an action: {error}", status=error.status, transient=error.transient
            ) from error
        candidate, fault = read_choice(completion.text, [name for name, _ in request.candidates])
        return ReaderAnswer(candidate, completion, fault)

    def messages(self, request: ReaderRequest) -> list[Message]:
        """Return the chat messages. All texts are inserted as values, never as templates."""
        fence = f"=== {hashlib.sha256(repr(request).encode()).hexdigest()[:24]} ==="
        return [
            {"role": "system", "content": self._prompts.render("reader_system", kind=request.kind)},
            {"role": "user", "content": self._prompts.render("reader_request", fence=fence, **request._asdict())},
        ]


def read_choice(reply: str, ids: list[str]) -> tuple[str | None, str]:
    r"""Return the chosen id, or None, and the fault of a reply: the last id or "none" on the last line counts.

    >>> read_choice("It is about salt.\n**S2**", ["s1", "s2"])
    ('s2', '')
    """
    lines = strip_thinking(reply).strip().splitlines()
    known = {name.casefold(): name for name in ids}
    words = re.findall(r"[\w.-]+", lines[-1].casefold()) if lines else []
    named = [
        word for word in (each if each in known else each.strip("_.-") for each in words) if word in {*known, NONE}
    ]
    if not named:
        return None, "its last line holds neither the id of a candidate nor none"
    return known.get(named[-1]), ""


def load_reader(reader: str | Reader) -> Reader | None:
    """Return a reader by name or as it is. None for ``"local"``, which reads by similarity.

    Raises:
        OptionError: the name is unknown, or litellm knows no provider for the model.
        MissingExtraError: litellm is not installed.
    """
    if reader == LOCAL:
        return None
    if isinstance(reader, str):
        from inquitree_gym.llm import ChatModel

        return LLMReader(ChatModel(model_name(reader)))
    if not hasattr(reader, "choose"):
        raise OptionError(f"reader must be a name or have the methods of Reader, got {reader!r:.80}")
    return reader


def model_name(reader: str) -> str:
    """Return the model of a reader's name.

    Raises:
        OptionError: the name does not begin with `LLM_PREFIX`, or names no model.
    """
    model = reader.removeprefix(LLM_PREFIX)
    if model == reader or not model.strip():
        raise OptionError(
            f"reader must be '{LOCAL}' or '{LLM_PREFIX}MODEL' with litellm's name of a model, such as "
            f"{LLM_PREFIX}openai/gpt-4o-mini, got '{reader:.80}'"
        )
    return model
