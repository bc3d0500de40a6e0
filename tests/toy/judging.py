"""Judges of the toy kind: the words of a list that a text says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from inquitree_gym.errors import JudgeError
from inquitree_gym.judging.judgement import InProcessJudge, Judged, JudgedText, Judgement, JudgeReply
from inquitree_gym.judging.registry import ChatOptions
from inquitree_gym.judging.stored import Payload
from inquitree_gym.llm import Chat, Usage
from inquitree_gym.log import Episode
from tests.toy.tasks import WordList, words_in

Words = tuple[str, ...] | None


class ToyPayload(Payload):
    """Words that were said; None where the judge did not answer."""

    words: Words

    @classmethod
    def _of(cls, task: WordList, judged: Words) -> Self:
        return cls(words=judged)

    def check(self, task: WordList) -> None:
        if not set(self.words or ()) <= set(task.words):
            raise JudgeError(f"its words must be of {', '.join(task.words)}, got {', '.join(self.words or ())}")

    @property
    def value(self) -> Words:
        return self.words

    @property
    def unscored(self) -> int:
        return int(self.words is None)


@dataclass
class Ear:
    """The local judge of one list."""

    task: WordList

    def judge(self, text: str, /) -> Words:
        return words_in(self.task, text.upper())


@dataclass
class ToyLLMJudge:
    """A judge that asks a model which words it reads."""

    name: str
    chat: Chat

    @property
    def config(self) -> dict[str, Any]:
        return {**self.chat.config, "version": 1}

    async def judge(self, task: WordList, text: str, /) -> Judgement[Words]:
        question = f"Which of the words {', '.join(task.words)} are in this text, or none? {text}"
        reply = await self.chat.complete([{"role": "user", "content": question}])
        words = tuple(word for word in task.words if word in reply.text)
        fault = "" if words or reply.text == "none" else "it names no word"
        return Judgement(None if fault else words, Usage.of(reply), int(bool(fault)), (JudgeReply(reply, fault),))


class ToyJudging:
    """Judges of the toy kind; see `kinds.Judging`."""

    noun = "word"
    part = "text"
    options = ChatOptions
    payload = ToyPayload
    presets: Mapping[str, Mapping[str, Any]] = {"llm": {}}
    judges: Mapping[str, Callable[..., Any]] = {
        "local": lambda model, options: InProcessJudge("local", lambda: {"version": 1}, Ear),
        "llm": lambda model, options: ToyLLMJudge(f"llm:{model}", options.chat(model)),
    }

    def texts(self, episode: Episode[Any]) -> Iterator[JudgedText]:
        return (JudgedText(turn.turn, turn.action) for turn in episode.turns)

    def about(self, task: WordList, episode: Episode[Any]) -> WordList:
        return task

    def own_judged(self, episode: Episode[Any], task: WordList) -> Judged:
        judge = episode.header.setup.judge
        return Judged(judge["name"], judge["version"], {turn.turn: turn.event.heard for turn in episode.turns})


JUDGING = ToyJudging()
