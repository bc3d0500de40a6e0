"""Base of the agents that are language models."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from inquitree_gym.baselines.agent import Ask, BaselineAgent, ask_for_reply
from inquitree_gym.baselines.conversation import (
    Conversation,
    assistant,
    is_finished,
    move_fault,
    read_move,
    system,
    user,
)
from inquitree_gym.errors import OptionError
from inquitree_gym.llm import Chat, ChatModel, Message, run_sync
from inquitree_gym.llm.chat import innermost
from inquitree_gym.log import Episode, Reply
from inquitree_gym.prompts import Prompts

CONTEXT = 32_000
"""Limit of a request in estimated tokens for a model whose window litellm does not list."""
_SEEDS = 2**31
"""Services accept seeds below this."""


class ChatAgent(BaselineAgent):
    """Base of the agents of a kind of environment that ask a chat model.

    The model keeps the episode as a conversation and replies with THOUGHT and ACTION. A subclass names the package of
    its kind, whose template ``llm_system`` is the system prompt.

    Only the ACTION part is taken. A reply that is cut off before its end is asked for again. One without exactly one
    is answered once with its fault, which costs no turn. From the correction the ACTION part is taken, or the whole
    text if it has none. The conversation keeps only the correction.
    """

    name = "llm"
    package: ClassVar[str]
    """Package of the kind of environment, with the folder ``templates``."""
    template_names: tuple[str, ...] = ("llm_system", "llm_correction", "llm_dropped")
    """Names of the templates that the agent uses."""

    def __init__(
        self, chat: Chat, *, context: int | None = None, prompts: str | os.PathLike[str] | None = None
    ) -> None:
        """Play with ``chat``.

        Args:
            chat: the model.
            context: limit of a request in `estimated_tokens`. The oldest exchanges are dropped to stay within. The
                system prompt, the opening and the newest exchange stay. None for `ChatModel.largest_request`, or
                `CONTEXT` where that is unknown.
            prompts: ``"default"``, or a folder whose templates replace those of ``template_names``.

        Raises:
            OptionError: ``context`` is not a whole number from 1, or a template is invalid.
        """
        if context is not None and (isinstance(context, bool) or not isinstance(context, int) or context < 1):
            raise OptionError(f"context must be a number of tokens, an integer from 1, got {context!r}")
        super().__init__()
        self.chat = chat
        self.replies: list[Reply] = []
        """Replies behind the latest action of `act`, or of `decide` without ``ask``."""
        self._context = context
        self._prompts = Prompts(prompts, self.template_names, self.package)
        self._seed = 0
        self._conversation: Conversation | None = None

    @property
    def config(self) -> dict[str, Any]:
        """Name, model and settings, without a key. ``templates`` is the digest of the templates."""
        settings = {"context": self._limit, "templates": self._prompts.digest}
        return {"name": self.name, **self.chat.config, **settings}

    @property
    def _limit(self) -> int:
        """Limit of a request in estimated tokens."""
        if self._context is not None:
            return self._context
        model = innermost(self.chat)
        return (model.largest_request if isinstance(model, ChatModel) else None) or CONTEXT

    @property
    def system_text(self) -> str:
        """System prompt of a conversation."""
        return self._system_text()

    @property
    def templates(self) -> str:
        """Digest of the templates."""
        return self._prompts.digest

    def move_in(self, reply: str) -> str:
        """Return the action in a reply."""
        return self._take(reply)

    def told(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return an observation as the model is told it."""
        return observation

    def messages_of(self, episode: Episode[Any]) -> list[Message]:
        """Return the conversation of a logged episode. A malformed reply is left out where it was corrected."""
        messages = [system(self.system_text)]
        before = None
        for turn in episode.turns:
            replies = {reply.role: reply.text for reply in episode.replies_to(turn.turn)}
            said = replies.get("correction", replies.get("proposer", self._written(turn.action)))
            messages += [user(self._read(turn.observation, before, replies)), assistant(said)]
            before = turn.event
        return messages

    def _read(self, observation: str, before: Any, replies: Mapping[str, str]) -> str:
        """Return an observation as the model read it.

        Args:
            observation: the observation.
            before: logged event that led to it. None for the first.
            replies: logged replies of its turn by role.
        """
        return observation

    def reset(self, seed: int) -> None:
        """Start an episode. ``seed`` is also sent to a model that accepts one and has none of its own."""
        super().reset(seed)
        self._seed = seed % _SEEDS
        self._conversation = None

    async def decide(self, observation: str, info: Mapping[str, Any], ask: Ask | None = None) -> str:
        """Return the next action. See `ModelAgent.decide`.

        Without ``ask`` the replies are kept in ``replies`` until the next action. After an error the episode has to
        start again with `reset`.
        """
        ask = ask or self._asker(info)
        conversation = self._observe(self.told(observation, info))
        reply = await self._ask(ask, "proposer", conversation.messages(), self._move_fault, self._is_finished)
        if reply.fault:
            messages = conversation.messages(
                assistant(conversation.shorten(reply.text)), user(self._correction_text(reply.fault))
            )
            reply = await self._ask(ask, "correction", messages, self._move_fault, self._is_finished)
        conversation.add_reply(reply.text)
        return self._take(reply.text)

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action from synchronous code, for a loop of your own. See `decide`."""
        return run_sync(self.decide(observation, info))

    def recall(self, observation: str, info: Mapping[str, Any], action: str) -> None:
        """Remember a turn whose replies are not in the log."""
        self._observe(self.told(observation, info)).add_reply(self._written(action))

    def _system_text(self) -> str:
        return self._prompts.render("llm_system")

    def _correction_text(self, fault: str) -> str:
        return self._prompts.render("llm_correction", fault=fault)

    def _take(self, reply: str) -> str:
        """Return the action in a reply."""
        return read_move(reply)

    def _written(self, action: str) -> str:
        """Return an action in the form of a reply."""
        return f"ACTION: {action}"

    def _move_fault(self, reply: str) -> str:
        return move_fault(reply)

    def _is_finished(self, reply: str) -> bool:
        """Tell whether the move in a reply that was cut off is whole."""
        return is_finished(reply)

    def _asker(self, info: Mapping[str, Any]) -> Ask:
        self.replies = []

        async def ask(chat: Chat, messages: list[Message], **request: Any) -> Reply:
            turn, keep = info["turn"] + 1, self.replies.append
            return await ask_for_reply(chat, messages, turn=turn, keep=keep, **request)

        return ask

    async def _ask(
        self, ask: Ask, role: str, messages: list[Message], check: Callable[[str], str],
        finished: Callable[[str], bool] | None = None,
    ) -> Reply:  # fmt: skip
        return await ask(self.chat, messages, role=role, seed=self._seed, check=check, finished=finished)

    def _observe(self, observation: str) -> Conversation:
        if self._conversation is None:
            head = [system(self._system_text()), user(observation)]
            self._conversation = Conversation(head, self._limit, self._prompts)
        else:
            self._conversation.add_user(observation)
        return self._conversation
