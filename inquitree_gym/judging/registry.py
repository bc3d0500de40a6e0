"""Judges of the texts of each kind of environment by their names: ``local``, ``nli:MODEL``, ``llm:MODEL``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.judging.judgement import LOCAL, AsyncJudge
from inquitree_gym.kinds import DEFAULT_KIND, kind
from inquitree_gym.llm import Budget, Chat, ChatModel, ReplyCache
from inquitree_gym.llm.chat import all_results

T = TypeVar("T")
J = TypeVar("J")


@dataclass(frozen=True, kw_only=True)
class ChatOptions:
    """Options of every judge that asks a chat model. Each kind adds its own."""

    base_url: str | None = None
    """Address of the server. None for the providers'."""
    cache: Path | ReplyCache | None = None
    """Cached replies, or their folder. None for the user's cache folder."""
    budget: Budget = field(default_factory=Budget)
    """Caps on cost and tokens, shared by all judges."""
    max_tokens: int | None = ChatModel.max_tokens
    """See `ChatModel`."""
    reasoning_effort: str | None = None
    """See `ChatModel`."""
    connect: Callable[[str], Chat] | None = None
    """Function that returns the chat with a model. The settings of `ChatModel` above do not apply to it."""

    @classmethod
    def own_fields(cls) -> dict[str, tuple[Any, Any]]:
        """Return type and default of each option that a kind adds, by name."""
        hints = get_type_hints(cls, include_extras=True)
        common = {option.name for option in fields(ChatOptions)}
        return {
            option.name: (hints[option.name], option.default) for option in fields(cls) if option.name not in common
        }

    def chat(self, model: str) -> Chat:
        """Return the chat with a model."""
        if self.connect is not None:
            return self.connect(model)
        return ChatModel(
            model, base_url=self.base_url, max_tokens=self.max_tokens, reasoning_effort=self.reasoning_effort
        )

    @property
    def reply_cache(self) -> ReplyCache | None:
        """The cache that is named."""
        return ReplyCache(self.cache) if isinstance(self.cache, Path) else self.cache

    @property
    def requests(self) -> str:
        """Requests about each text, in words."""
        return "1 request each"


def judge_forms(task_kind: str) -> tuple[str, ...]:
    """Return the forms of the names of the judges of a kind of environment, for messages."""
    return tuple(prefix if prefix == LOCAL else f"{prefix}:MODEL" for prefix in kind(task_kind).judging.judges)


def has_judge(name: str, task_kind: str = DEFAULT_KIND) -> bool:
    """Tell whether a kind of environment has judges with names of this form."""
    prefix, colon, model = name.partition(":")
    return prefix in kind(task_kind).judging.judges and (bool(model) if prefix != LOCAL else not colon)


def check_name(name: str, task_kind: str = DEFAULT_KIND) -> None:
    """Check the form of a judge's name. Raise `OptionError` if the kind of environment has no such judge."""
    if not has_judge(name, task_kind):
        prefix, colon, _ = name.partition(":")
        near = suggest(prefix + colon, [form.removesuffix("MODEL") for form in judge_forms(task_kind)])
        raise OptionError(f"no judge is called '{name}'{near}; known: {', '.join(judge_forms(task_kind))}")


def load_judge(
    judge: str | AsyncJudge[Any], options: ChatOptions | None = None, task_kind: str = DEFAULT_KIND
) -> AsyncJudge[Any]:
    """Return a judge by name or as it is.

    Args:
        judge: a name, or an object with the members of `AsyncJudge`.
        options: options of a judge that asks a chat model, of the type that the kind names.
        task_kind: kind of environment whose texts are judged.

    Raises:
        OptionError: the name is unknown, the object lacks members of `AsyncJudge`, or the cost is capped for a model of
            unknown price.
        MissingExtraError: the judge asks a chat model, and litellm is not installed.
    """
    if isinstance(judge, str):
        check_name(judge, task_kind)
        prefix, _, model = judge.partition(":")
        judging = kind(task_kind).judging
        made: AsyncJudge[Any] = judging.judges[prefix](model, options or judging.options())
        return made
    if not all(hasattr(judge, name) for name in ("name", "config", "judge")):
        forms = ", ".join(judge_forms(task_kind))
        raise OptionError(f"judge must be a name ({forms}) or have the members of AsyncJudge, got {judge!r:.80}")
    return judge


def make_judges(
    names: Sequence[str], options: ChatOptions | None = None, task_kind: str = DEFAULT_KIND
) -> list[AsyncJudge[Any]]:
    """Return the judges with these names, without duplicates. See `load_judge`."""
    return [load_judge(name, options, task_kind) for name in dict.fromkeys(names)]


async def judge_all(
    ask: Callable[[T, str], Coroutine[Any, Any, J]],
    cases: Sequence[tuple[T, str]],
    max_concurrency: int,
    on_judgement: Callable[[int, J], None],
) -> list[J]:
    """Judge several texts.

    Args:
        ask: judges one text, as `AsyncJudge.judge` does.
        cases: tasks and texts.
        max_concurrency: texts judged at the same time, at least 1.
        on_judgement: called with the index of each case and its judgement once it is there.

    Raises:
        OptionError: ``max_concurrency`` is below 1.
        ServiceError: the judge's service rejects every request. Remaining texts are not judged.
    """
    if max_concurrency < 1:
        raise OptionError(f"max_concurrency must be at least 1, got {max_concurrency}")
    semaphore = asyncio.Semaphore(max_concurrency)

    async def judge_case(index: int, task: T, text: str) -> J:
        await semaphore.acquire()
        judgement = await ask(task, text)
        semaphore.release()  # not after an error: the next case would start before it is cancelled
        on_judgement(index, judgement)
        return judgement

    return await all_results(judge_case(index, *case) for index, case in enumerate(cases))
