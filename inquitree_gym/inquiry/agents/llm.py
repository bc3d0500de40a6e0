"""Language models that lead an inquiry, alone or with a sceptic that checks results."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from inquitree_gym.baselines.agent import Ask
from inquitree_gym.baselines.conversation import NOTHING, Conversation, ReplyFormat, system
from inquitree_gym.baselines.llm import ChatAgent
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.decisions import read_decision
from inquitree_gym.inquiry.engine import Decision
from inquitree_gym.inquiry.menu import CONCLUDE
from inquitree_gym.inquiry.prompts import AGENT_TEMPLATE_NAMES, BELIEF_TEMPLATE, PACKAGE
from inquitree_gym.llm import Chat, strip_thinking

_BELIEF = re.compile(r"^[ \t>#*_`]*BELIEF[ \t*_`]*[:：](.*)$\n?", re.MULTILINE | re.IGNORECASE)
_STATED = re.compile(r"\W*(?P<word>TRUE|FAKE)\b[\s,:;(*_`]*(?P<sure>1(?:\.0*)?|0?\.\d+|0)?[\s.)*_`]*", re.IGNORECASE)


class LLMAgent(ChatAgent):
    """A chat model that leads an inquiry, and may be asked what it believes of each result.

    It keeps the episode as a conversation and replies with THOUGHT and ACTION. See `ChatAgent`.
    """

    package = PACKAGE
    template_names: tuple[str, ...] = AGENT_TEMPLATE_NAMES

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
            context: limit of a request. See `ChatAgent`.
            prompts: ``"default"``, ``"paper"``, or a folder whose templates replace those of ``template_names``.
            belief: ask for a line ``BELIEF: true|fake [probability]`` at each result, with the template
                `BELIEF_TEMPLATE`. See `split_belief`. It is optional and not part of the action.

        Raises:
            OptionError: ``context`` is not a whole number from 1, or a template is invalid.
        """
        if belief:
            self.template_names = (*self.template_names, BELIEF_TEMPLATE)
        super().__init__(chat, context=context, prompts=prompts)
        self.belief: float | None = None
        """Belief stated with the latest action: the probability that the result is fake. None without a statement."""
        self._asks_belief = belief

    @property
    def config(self) -> dict[str, Any]:
        """Name, model and settings, without a key. ``templates`` is the digest of the templates."""
        return super().config | ({"belief": True} if self._asks_belief else {})

    def reset(self, seed: int) -> None:
        """Start an episode. See `ChatAgent.reset`."""
        super().reset(seed)
        self.belief = None

    def _read(self, observation: str, before: Any, replies: Mapping[str, str]) -> str:
        return self.told(observation, {"state": "" if before is None else before.state})

    def told(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return an observation as the model is told it: in the exam, with how to answer."""
        is_exam = info["state"] == "exam"
        return self._prompts.render("llm_exam", observation=observation) if is_exam else observation

    def _system_text(self) -> str:
        text = super()._system_text()
        return f"{text}\n\n{self._prompts.render(BELIEF_TEMPLATE)}" if self._asks_belief else text

    def _take(self, reply: str) -> str:
        """Return the action in a reply, and keep the belief in it."""
        move, self.belief = self._split(reply)
        return super()._take(move)

    def _split(self, reply: str) -> tuple[str, float | None]:
        """Return a reply without a belief, and the belief, if the agent asks for it."""
        return split_belief(reply) if self._asks_belief else (reply, None)

    def _move_fault(self, reply: str) -> str:
        return super()._move_fault(self._split(reply)[0])

    def _is_finished(self, reply: str) -> bool:
        return super()._is_finished(self._split(reply)[0])


def split_belief(reply: str) -> tuple[str, float | None]:
    """Return a reply without its lines ``BELIEF: true|fake [probability]``, and the belief that the last one states.

    The belief is the probability that the result is fake, in [0, 1]. It is None if there is no such line, or if the
    last one says something else.

    >>> split_belief("ACTION: redo study BELIEF: BELIEF:"), split_belief("BELIEF: true 0.75")
    (('ACTION: redo study BELIEF: BELIEF:', None), ('', 0.25))
    """
    answer = strip_thinking(reply)
    *_, last = ["", *_BELIEF.findall(answer)]
    stated = _STATED.fullmatch(last)
    if stated is None:
        return _BELIEF.sub("", answer), None
    sure = float(stated["sure"] or 1)
    return _BELIEF.sub("", answer), sure if stated["word"].upper() == "FAKE" else 1 - sure


class RecallAgent(LLMAgent):
    """A chat model that is asked for the conclusion and the exam from the topic alone.

    It concludes at once, without any result. So its return is 0, and its answers are what it knew or guessed.
    """

    name = "recall"

    async def decide(self, observation: str, info: Mapping[str, Any], ask: Ask | None = None) -> str:
        """Return the next action. At the topic that is the decision to conclude, for which no model is asked.

        Raises:
            OptionError: the rules take no decision at the topic.
        """
        if info["state"] != "topic":
            return await super().decide(observation, info, ask)
        if info["turn"]:
            raise OptionError(
                "the recall agent needs rules that take a decision at the topic; give bare_decisions=True"
            )
        self.replies = []
        self.recall(observation, info, CONCLUDE)
        return CONCLUDE

    def _system_text(self) -> str:
        return self._prompts.render("recall_system")


_OPINION = re.compile(r"\W*(VALID|DOUBTFUL)\b", re.IGNORECASE)
_CHECK = ReplyFormat("REASON", "VERDICT")


class ScepticAgent(LLMAgent):
    """A proposer and a sceptic: a second conversation checks each result before the next move.

    The sceptic sees the opening, every result and its earlier answers. Its answer, VALID or DOUBTFUL with a reason, is
    added to the result that the proposer reads. Both use the same model and the same limit of tokens.
    """

    name = "sceptic"
    _checks: Conversation | None = None
    _previous_state = ""
    _redone = False

    def reset(self, seed: int) -> None:
        """Start an episode."""
        super().reset(seed)
        self._checks = None
        self._previous_state = ""

    async def decide(self, observation: str, info: Mapping[str, Any], ask: Ask | None = None) -> str:
        """Return the next action. See `LLMAgent.decide`."""
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

    def _read(self, observation: str, before: Any, replies: Mapping[str, str]) -> str:
        """Return a result with the sceptic's opinion where there is one."""
        if "sceptic" not in replies:
            return super()._read(observation, before, replies)
        opinion = read_opinion(replies["sceptic"]).strip() or NOTHING
        return self._prompts.render("sceptic_note", observation=observation, opinion=opinion)

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


def opinion_fault(reply: str) -> str:
    """Return the fault in a second opinion, or an empty string for a valid one."""
    fault = _CHECK.fault(reply)
    return fault or ("" if _verdict(reply) else "its VERDICT is neither VALID nor DOUBTFUL")


def read_opinion(reply: str) -> str:
    """Return verdict and reason of a second opinion, or the whole reply if it is not valid."""
    if opinion_fault(reply):
        return reply
    return " ".join([f"{_verdict(reply)}.", *_CHECK.parts(reply, "REASON")])


def _verdict(reply: str) -> str:
    found = _OPINION.match(_CHECK.parts(reply, "VERDICT")[0])
    return found[1].upper() if found else ""
