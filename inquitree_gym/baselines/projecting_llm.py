"""A language model that projects; it is asked at each level separately, or at all levels in one conversation."""

from __future__ import annotations

import os
from typing import Any, Literal, get_args

from inquitree_gym.baselines.conversation import Conversation, move_fault, read_move
from inquitree_gym.baselines.llm import LLMAgent
from inquitree_gym.errors import OptionError
from inquitree_gym.llm import Chat, strip_thinking
from inquitree_gym.prompts import PROJECTION_AGENT_TEMPLATE_NAMES

Memory = Literal["none", "conversation"]
ReplyForm = Literal["plain", "thought"]


class ProjectingLLMAgent(LLMAgent):
    """A chat model that says what a study will find.

    Without memory, as in ProjectionBench (arXiv:2605.30284), each level is a separate request with the system prompt
    and everything disclosed so far. In a conversation the model also reads its earlier projections. The difference
    between the two settings shows how strongly earlier projections anchor later ones.

    A reply that cannot be read is answered once with its fault; see `LLMAgent`.
    """

    template_names = PROJECTION_AGENT_TEMPLATE_NAMES

    def __init__(
        self,
        chat: Chat,
        *,
        context: int | None = None,
        prompts: str | os.PathLike[str] | None = None,
        memory: Memory = "none",
        reply: ReplyForm = "plain",
    ) -> None:
        """Project with ``chat``.

        Args:
            chat: the model.
            context: limit of a request; see `LLMAgent`. A request without memory is never shortened.
            prompts: ``"default"``, or a folder whose templates replace those of ``template_names``.
            memory: ``"none"`` asks at each level as if it were the first; ``"conversation"`` also sends the earlier
                levels and replies.
            reply: ``"plain"`` for the projection alone, ``"thought"`` for THOUGHT and ACTION.

        Raises:
            OptionError: an argument is out of range, or a template is invalid.
        """
        for name, given, form in (("memory", memory, Memory), ("reply", reply, ReplyForm)):
            if given not in get_args(form):
                raise OptionError(f"{name} is one of {', '.join(get_args(form))}, not {given!r:.80}")
        super().__init__(chat, context=context, prompts=prompts)
        self._memory, self._reply = memory, reply

    @property
    def config(self) -> dict[str, Any]:
        """Name, model and settings, without a key."""
        return super().config | {"memory": self._memory, "reply": self._reply}

    def _observe(self, observation: str) -> Conversation:
        if self._memory == "none":
            self._conversation = None
        return super()._observe(observation)

    def _system_text(self) -> str:
        return self._prompts.render("projection_system", memory=self._memory, reply=self._reply)

    def _correction_text(self, fault: str) -> str:
        return self._prompts.render("projection_correction", fault=fault, reply=self._reply)

    def _move_fault(self, reply: str) -> str:
        if self._reply == "thought":
            return move_fault(reply)
        return "" if strip_thinking(reply).strip() else "it is empty"

    def _take(self, reply: str) -> str:
        return read_move(reply) if self._reply == "thought" else strip_thinking(reply).strip()

    def _written(self, action: str) -> str:
        return super()._written(action) if self._reply == "thought" else action
