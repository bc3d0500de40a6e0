"""Agents that are language models: one alone, and one with a sceptic at its side."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from inquitree_gym._waiting import at_once
from inquitree_gym.baselines.agent import Ask, BaselineAgent, Request
from inquitree_gym.baselines.conversation import NOTHING, Conversation, replied, system, told
from inquitree_gym.engine import Decision
from inquitree_gym.errors import OptionError
from inquitree_gym.llm import Chat, Completion, Message
from inquitree_gym.llm.parsing import move_fault, opinion_fault, read_move, read_opinion
from inquitree_gym.log import Reply
from inquitree_gym.matching import read_decision
from inquitree_gym.prompts import AGENT_TEMPLATE_NAMES, Prompts

CONTEXT = 32_000
"""Estimated tokens that a request may have, unless told otherwise."""
_SEEDS = 2**31
"""Services take seeds up to here."""


class LLMAgent(BaselineAgent):
    """A chat model that remembers the episode as a conversation, and says THOUGHT and ACTION at every turn.

    Only the ACTION part acts. A reply without exactly one is answered once with what is wrong, at no turn; what comes
    back acts by its ACTION part, or whole where it has none. Of a corrected reply the conversation keeps the
    correction alone.
    """

    name = "llm"

    def __init__(self, chat: Chat, *, context: int = CONTEXT, prompts: str | os.PathLike[str] | None = None) -> None:
        """Play with ``chat``.

        Args:
            chat: the model.
            context: tokens that a request may have, by `estimated_tokens`; the oldest exchanges are left out to stay
                within. The system prompt, the opening and the newest exchange stay.
            prompts: folder whose templates replace the package's `AGENT_TEMPLATE_NAMES`.

        Raises:
            OptionError: ``context`` is not a whole number from 1, or the folder is at fault.
        """
        if isinstance(context, bool) or not isinstance(context, int) or context < 1:
            raise OptionError(f"context is a whole number of tokens from 1, not {context!r}")
        super().__init__()
        self.chat = chat
        self.replies: list[Reply] = []
        """What was replied for the last action of `act` or `aact`."""
        self._context = context
        self._prompts = Prompts(prompts, AGENT_TEMPLATE_NAMES)
        self._seed = 0
        self._talk: Conversation | None = None

    @property
    def config(self) -> dict[str, Any]:
        """Name, model and settings; ``templates`` is the digest of the templates. No key."""
        return {"name": self.name, **self.chat.config, "context": self._context, "templates": self._prompts.digest}

    def reset(self, seed: int) -> None:
        """Begin an episode, whose seed is also sent to the model where it takes one and has none of its own."""
        super().reset(seed)
        self._seed = seed % _SEEDS
        self._talk = None

    async def decide(self, observation: str, info: Mapping[str, Any], ask: Ask) -> str:
        """See `AskingAgent.decide`."""
        talk = self._hear(observation)
        reply = await ask(self._request("proposer", talk.messages(), move_fault))
        if reply.fault:
            correction = told(self._prompts.render("llm_correction", fault=reply.fault))
            messages = talk.messages(replied(talk.short(reply.text)), correction)
            reply = await ask(self._request("correction", messages, move_fault))
        talk.say(reply.text)
        return read_move(reply.text)

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Ask the model and return the next action, for a loop of one's own; `play` and `aplay` log what was paid for.

        After an error the episode has to begin again with `reset`.
        """

        async def complete(request: Request) -> Completion:
            return request.chat.complete_now(request.messages, seed=request.seed)

        return at_once(self.decide(observation, info, self._asking(complete, info)))

    async def aact(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the same as `act`, letting others go on while the model is asked."""

        async def complete(request: Request) -> Completion:
            return await request.chat.complete(request.messages, seed=request.seed)

        return await self.decide(observation, info, self._asking(complete, info))

    def recall(self, observation: str, info: Mapping[str, Any], action: str) -> None:
        """Remember a turn whose replies are not known; nothing is asked."""
        self._hear(observation).say(f"ACTION: {action}")

    def _asking(self, complete: Callable[[Request], Awaitable[Completion]], info: Mapping[str, Any]) -> Ask:
        self.replies = []

        async def ask(request: Request) -> Reply:
            self.replies.append(request.to_reply(info["turn"] + 1, await complete(request)))
            return self.replies[-1]

        return ask

    def _hear(self, observation: str) -> Conversation:
        if self._talk is None:
            head = [system(self._prompts.render("llm_system")), told(observation)]
            self._talk = Conversation(head, self._context, self._prompts)
        else:
            self._talk.hear(observation)
        return self._talk

    def _request(self, role: str, messages: list[Message], fault: Callable[[str], str]) -> Request:
        return Request(role, self.chat, messages, self._seed, fault)


class ScepticAgent(LLMAgent):
    """A proposer and a sceptic: a second call checks each result before the next move.

    The sceptic sees the opening, every result and what it said of it. Its answer, VALID or DOUBTFUL with a reason,
    stands under the result that the proposer reads.
    """

    name = "sceptic"

    def __init__(self, chat: Chat, *, context: int = CONTEXT, prompts: str | os.PathLike[str] | None = None) -> None:
        """See `LLMAgent`; both are asked of ``chat``, and ``context`` holds for each."""
        super().__init__(chat, context=context, prompts=prompts)
        self._checks: Conversation | None = None
        self._state_before = ""
        self._redone = False

    def reset(self, seed: int) -> None:
        """Begin an episode."""
        super().reset(seed)
        self._checks = None
        self._state_before = ""

    async def decide(self, observation: str, info: Mapping[str, Any], ask: Ask) -> str:
        """See `AskingAgent.decide`."""
        if self._checks is None:
            head = [system(self._prompts.render("sceptic_system", opening=observation))]
            self._checks = Conversation(head, self._context, self._prompts)
        if self._shows_result(info):
            self._checks.hear(self._prompts.render("sceptic_check", observation=observation))
            reply = await ask(self._request("sceptic", self._checks.messages(), opinion_fault))
            self._checks.say(reply.text)
            opinion = self._checks.short(read_opinion(reply.text).strip()) or NOTHING
            observation = self._prompts.render("sceptic_note", observation=observation, opinion=opinion)
        action = await super().decide(observation, info, ask)
        self._note(info, action)
        return action

    def recall(self, observation: str, info: Mapping[str, Any], action: str) -> None:
        """Remember a turn whose replies are not known; nothing is asked."""
        super().recall(observation, info, action)
        self._note(info, action)

    def _note(self, info: Mapping[str, Any], action: str) -> None:
        self._state_before, self._redone = info["state"], read_decision(action) is Decision.REDO

    def _shows_result(self, info: Mapping[str, Any]) -> bool:
        """Tell whether the observation shows a result, which it may also do where the turn limit struck with it."""
        if not (info["accepted"] or info["forced"]):
            return False
        if info["state"] == "conclusion":
            return self._state_before in ("subtopic", "study") or (self._state_before == "result" and self._redone)
        return bool(info["state"] == "result")
