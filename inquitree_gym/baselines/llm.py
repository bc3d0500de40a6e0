"""Agents that are language models: one alone, and one with a sceptic."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from inquitree_gym.baselines.agent import Ask, BaselineAgent, ask_for_reply
from inquitree_gym.baselines.conversation import (
    NOTHING,
    Conversation,
    assistant,
    move_fault,
    opinion_fault,
    read_move,
    read_opinion,
    split_belief,
    system,
    user,
)
from inquitree_gym.decisions import read_decision
from inquitree_gym.engine import Decision
from inquitree_gym.errors import OptionError
from inquitree_gym.llm import Chat, ChatModel, Message, run_sync
from inquitree_gym.llm.chat import innermost
from inquitree_gym.log import Reply
from inquitree_gym.prompts import AGENT_TEMPLATE_NAMES, BELIEF_TEMPLATE, Prompts

CONTEXT = 32_000
"""Limit of a request in estimated tokens for a model whose window litellm does not list."""
_SEEDS = 2**31
"""Services accept seeds below this."""


class LLMAgent(BaselineAgent):
    """A chat model that keeps the episode as a conversation and replies with THOUGHT and ACTION.

    Only the ACTION part is taken. A reply without exactly one is answered once with its fault, which costs no turn; of
    the correction the ACTION part is taken, or the whole if there is none. The conversation keeps only the correction.
    """

    name = "llm"
    template_names: tuple[str, ...] = AGENT_TEMPLATE_NAMES
    """Names of the templates that the agent uses."""

    def __init__(
        self,
        chat: Chat,
        *,
        context: int | None = None,
        prompts: str | os.PathLike[str] | None = None,
        belief: bool = False,
    ) -> None:
        """Play with ``chat``.

        Args:
            chat: the model.
            context: limit of a request in `estimated_tokens`; the oldest exchanges are dropped to stay within. The
                system prompt, the opening and the newest exchange stay. None for `ChatModel.largest_request`, or
                `CONTEXT` where that is unknown.
            prompts: ``"default"``, ``"paper"``, or a folder whose templates replace those of ``template_names``.
            belief: ask for a line ``BELIEF: true|fake [probability]`` at each result, with the template
                `BELIEF_TEMPLATE`; see `split_belief`. It is optional and not part of the action.

        Raises:
            OptionError: ``context`` is not a whole number from 1, or a template is invalid.
        """
        if context is not None and (isinstance(context, bool) or not isinstance(context, int) or context < 1):
            raise OptionError(f"context is a whole number of tokens from 1, not {context!r}")
        super().__init__()
        self.chat = chat
        self.replies: list[Reply] = []
        """Replies behind the latest action of `act`, or of `decide` without ``ask``."""
        self.belief: float | None = None
        """Belief stated with the latest action: the probability that the result is fake; None without a statement."""
        self._asks_belief = belief
        self._context = context
        self._prompts = Prompts(prompts, (*self.template_names, *[BELIEF_TEMPLATE] * belief))
        self._seed = 0
        self._conversation: Conversation | None = None

    @property
    def config(self) -> dict[str, Any]:
        """Name, model and settings, without a key; ``templates`` is the digest of the templates."""
        settings = {"context": self._limit, "templates": self._prompts.digest}
        return {"name": self.name, **self.chat.config, **settings, **({"belief": True} if self._asks_belief else {})}

    @property
    def _limit(self) -> int:
        """Limit of a request in estimated tokens."""
        if self._context is not None:
            return self._context
        model = innermost(self.chat)
        return (model.largest_request if isinstance(model, ChatModel) else None) or CONTEXT

    def reset(self, seed: int) -> None:
        """Start an episode; ``seed`` is also sent to a model that accepts one and has none of its own."""
        super().reset(seed)
        self._seed = seed % _SEEDS
        self._conversation = None
        self.belief = None

    async def decide(self, observation: str, info: Mapping[str, Any], ask: Ask | None = None) -> str:
        """Return the next action; see `ModelAgent.decide`.

        Without ``ask`` the replies are kept in ``replies`` until the next action. After an error the episode has to
        start again with `reset`.
        """
        ask = ask or self._asker(info)
        conversation = self._observe(observation)
        reply = await self._ask(ask, "proposer", conversation.messages(), self._move_fault)
        if reply.fault:
            messages = conversation.messages(
                assistant(conversation.shorten(reply.text)), user(self._correction_text(reply.fault))
            )
            reply = await self._ask(ask, "correction", messages, self._move_fault)
        conversation.add_reply(reply.text)
        return self._take(reply.text)

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action from synchronous code, for a loop of your own; see `decide`."""
        return run_sync(self.decide(observation, info))

    def recall(self, observation: str, info: Mapping[str, Any], action: str) -> None:
        """Remember a turn whose replies are not in the log."""
        self._observe(observation).add_reply(self._written(action))

    def _system_text(self) -> str:
        return "\n\n".join(map(self._prompts.render, ["llm_system", *[BELIEF_TEMPLATE] * self._asks_belief]))

    def _correction_text(self, fault: str) -> str:
        return self._prompts.render("llm_correction", fault=fault)

    def _take(self, reply: str) -> str:
        """Return the action in a reply, and keep the belief in it."""
        move, self.belief = self._split(reply)
        return read_move(move)

    def _written(self, action: str) -> str:
        """Return an action in the form of a reply."""
        return f"ACTION: {action}"

    def _split(self, reply: str) -> tuple[str, float | None]:
        """Return a reply without a belief, and the belief, if the agent asks for it."""
        return split_belief(reply) if self._asks_belief else (reply, None)

    def _move_fault(self, reply: str) -> str:
        return move_fault(self._split(reply)[0])

    def _asker(self, info: Mapping[str, Any]) -> Ask:
        self.replies = []

        async def ask(
            chat: Chat, messages: list[Message], *, role: str, seed: int, check: Callable[[str], str]
        ) -> Reply:
            turn, keep = info["turn"] + 1, self.replies.append
            return await ask_for_reply(chat, messages, turn=turn, role=role, seed=seed, check=check, keep=keep)

        return ask

    async def _ask(self, ask: Ask, role: str, messages: list[Message], check: Callable[[str], str]) -> Reply:
        return await ask(self.chat, messages, role=role, seed=self._seed, check=check)

    def _observe(self, observation: str) -> Conversation:
        if self._conversation is None:
            head = [system(self._system_text()), user(observation)]
            self._conversation = Conversation(head, self._limit, self._prompts)
        else:
            self._conversation.add_user(observation)
        return self._conversation


class ScepticAgent(LLMAgent):
    """A proposer and a sceptic: a second conversation checks each result before the next move.

    The sceptic sees the opening, every result and its earlier answers. Its answer, VALID or DOUBTFUL with a reason, is
    added to the result that the proposer reads. Both use the same model and the same limit of tokens.
    """

    name = "sceptic"

    def __init__(
        self,
        chat: Chat,
        *,
        context: int | None = None,
        prompts: str | os.PathLike[str] | None = None,
        belief: bool = False,
    ) -> None:
        """See `LLMAgent`."""
        super().__init__(chat, context=context, prompts=prompts, belief=belief)
        self._checks: Conversation | None = None
        self._previous_state = ""
        self._redone = False

    def reset(self, seed: int) -> None:
        """Start an episode."""
        super().reset(seed)
        self._checks = None
        self._previous_state = ""

    async def decide(self, observation: str, info: Mapping[str, Any], ask: Ask | None = None) -> str:
        """Return the next action; see `LLMAgent.decide`."""
        ask = ask or self._asker(info)
        if self._checks is None:
            head = [system(self._prompts.render("sceptic_system", opening=observation))]
            self._checks = Conversation(head, self._limit, self._prompts)
        if self._shows_result(info):
            self._checks.add_user(self._prompts.render("sceptic_check", observation=observation))
            reply = await self._ask(ask, "sceptic", self._checks.messages(), opinion_fault)
            self._checks.add_reply(reply.text)
            opinion = self._checks.shorten(read_opinion(reply.text).strip()) or NOTHING
            observation = self._prompts.render("sceptic_note", observation=observation, opinion=opinion)
        action = await super().decide(observation, info, ask)
        self._note(info, action)
        return action

    def recall(self, observation: str, info: Mapping[str, Any], action: str) -> None:
        """Remember a turn whose replies are not in the log."""
        super().recall(observation, info, action)
        self._note(info, action)

    def _note(self, info: Mapping[str, Any], action: str) -> None:
        self._previous_state, self._redone = info["state"], read_decision(action) is Decision.REDO

    def _shows_result(self, info: Mapping[str, Any]) -> bool:
        """Tell whether the observation shows a result, which it may do even after the turn limit struck."""
        if not (info["accepted"] or info["forced"]):
            return False
        if info["state"] == "conclusion":
            previous = self._previous_state
            return previous in ("subtopic", "study") or (previous == "result" and self._redone)
        return bool(info["state"] == "result")
