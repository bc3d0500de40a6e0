"""Judges of any tree, by name: ``local``, ``nli:MODEL``, ``llm:MODEL``, ``llm-paper:MODEL``; and `judge`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from inquitree_gym.embeddings import load_embedder
from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.judges.llm import PAPER_PREFIX, LLMJudge
from inquitree_gym.judges.local import SETTINGS, local_judge
from inquitree_gym.judges.local import VERSION as LOCAL_VERSION
from inquitree_gym.judges.nli import VERSION as NLI_VERSION
from inquitree_gym.judges.nli import CrossEncoderInference, NLIJudge
from inquitree_gym.judges.quality import Judge, Verdict, mean_score
from inquitree_gym.judges.records import Judgement, version_of
from inquitree_gym.judges.sense import JUDGE_EMBEDDER
from inquitree_gym.llm import Budget, ChatModel, ReplyCache, run_sync
from inquitree_gym.trees import Tree, load_tree

S = TypeVar("S")
J = TypeVar("J")

LOCAL = "local"
KINDS = ("local", "nli:MODEL", "llm:MODEL", "llm-paper:MODEL")


class AsyncJudge(Protocol):
    """Judge of conclusions about any tree."""

    @property
    def name(self) -> str:
        """Name that it was requested by."""

    @property
    def config(self) -> dict[str, Any]:
        """Settings that determine its verdicts, besides tree and conclusion; plain values.

        ``version`` is the judge's version, 1 if absent.
        """

    async def judge(self, tree: Tree, conclusion: str) -> Judgement:
        """Judge one conclusion."""


@dataclass(frozen=True)
class Configured:
    """Base of judges that compute in this process."""

    name: str
    make_config: Callable[[], dict[str, Any]]

    @cached_property
    def config(self) -> dict[str, Any]:
        """See `AsyncJudge.config`; a model of the hub is loaded for it."""
        return self.make_config()


@dataclass(frozen=True)
class InProcessJudge(Configured):
    """`AsyncJudge` without a service: one judge per tree that computes in this process."""

    for_tree: Callable[[Tree], Judge]

    async def judge(self, tree: Tree, conclusion: str) -> Judgement:
        """See `AsyncJudge.judge`. Blocks the event loop while it computes."""
        return Judgement(self.for_tree(tree).judge(conclusion))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """Options of every judge that asks a chat model."""

    base_url: str | None = None
    """Address of the server; None for the providers'."""
    cache: Path | None = None
    """Folder of cached replies; None for the user's cache folder."""
    budget: Budget = field(default_factory=Budget)
    """Caps on cost and tokens, shared by all judges."""
    max_tokens: int | None = ChatModel.max_tokens
    """See `ChatModel`."""
    reasoning_effort: str | None = None
    """See `ChatModel`."""

    def chat(self, model: str) -> ChatModel:
        """Return the model with these options."""
        settings = {field: getattr(self, field) for field in ("base_url", "max_tokens", "reasoning_effort")}
        return ChatModel(model, **settings)

    @property
    def reply_cache(self) -> ReplyCache | None:
        """Cache in the folder that is named."""
        return None if self.cache is None else ReplyCache(self.cache)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions(ChatOptions):
    """Options of judges of conclusions that ask a chat model."""

    repeats: int = 1
    """Answers per order of the items."""
    orders: int = 2
    """Orders of the items that the model is asked in, 1 or 2; 1 for ``llm-paper:`` judges."""
    variants: bool = True
    """Show the false variants of the items; False for ``llm-paper:`` judges."""


@dataclass(frozen=True, slots=True)
class JudgedConclusion:
    """The verdicts on one conclusion."""

    tree: str
    """Id of the tree."""
    judge: str
    """Name of the judge."""
    version: int
    """Version of the judge."""
    verdicts: dict[str, Verdict]
    """Score S and reason by id of the conclusion item, in tree order."""

    @property
    def mean(self) -> float | None:
        """Mean S over the items, in [0, 1]; None if an item is unscored."""
        return mean_score(self.verdicts.values())


def make_judges(names: Sequence[str], options: JudgeOptions | None = None) -> list[AsyncJudge]:
    """Return the judges with these names, without duplicates.

    Raises:
        OptionError: a name is unknown, or the cost is capped for a model of unknown price.
    """
    options = options or JudgeOptions()
    return [_make_judge(name, options) for name in dict.fromkeys(names)]


def check_name(name: str, kinds: Sequence[str] = KINDS) -> None:
    """Check the form of a judge's name.

    Raises:
        OptionError: the name has none of the forms in ``kinds``.
    """
    kind, colon, model = name.partition(":")
    known = tuple(each.removesuffix("MODEL") for each in kinds)
    if name != LOCAL and not (model and kind + colon in known):
        near = suggest(kind + colon, known)
        raise OptionError(f"no judge is called '{name}'{near}; known: {', '.join(kinds)}")


def check_members(judge: object, members: Sequence[str], expected: str) -> None:
    """Check that an object has the members of a judge.

    Raises:
        OptionError: a member is missing; the message says what was expected.
    """
    if not all(hasattr(judge, name) for name in members):
        raise OptionError(f"judge is {expected}, not {judge!r:.80}")


def load_judge(judge: str | AsyncJudge, options: JudgeOptions | None = None) -> AsyncJudge:
    """Return a judge by name or as it is.

    Raises:
        OptionError: the name is unknown, or the object has not the methods of `AsyncJudge`.
        MissingExtraError: the judge asks a chat model, and litellm is not installed.
    """
    if isinstance(judge, str):
        return _make_judge(judge, options or JudgeOptions())
    check_members(judge, ("name", "config", "judge"), f"a name ({', '.join(KINDS)}) or has the members of AsyncJudge")
    return judge


def judge(
    tree: str | os.PathLike[str] | Tree,
    conclusion: str,
    judge: str | AsyncJudge = LOCAL,
    *,
    options: JudgeOptions | None = None,
) -> JudgedConclusion:
    """Judge a conclusion about a tree, whatever was seen of its results.

    Args:
        tree: an id, a path, or a `Tree`.
        conclusion: free text, such as a numbered list.
        judge: ``"local"``, ``"nli:MODEL"``, ``"llm:MODEL"``, ``"llm-paper:MODEL"``, or an `AsyncJudge`.
        options: of a named judge that asks a chat model.

    Raises:
        TreeError: the tree is unknown or invalid.
        OptionError: the judge is unknown.
        JudgeError: the judge cannot be loaded.
        ServiceError: the judge's service rejects every request.
        MissingExtraError: the judge asks a chat model, and litellm is not installed.
    """
    found, by = load_tree(tree), load_judge(judge, options)
    verdicts = run_sync(by.judge(found, conclusion)).verdicts
    named = {item.id: verdict for item, verdict in zip(found.conclusions, verdicts, strict=True)}
    return JudgedConclusion(found.id, by.name, version_of(by.config), named)


async def judge_all(
    ask: Callable[[S, str], Coroutine[Any, Any, J]],
    cases: Sequence[tuple[S, str]],
    max_concurrency: int,
    on_judgement: Callable[[int, J], None],
) -> list[J]:
    """Judge several texts, conclusions about trees or projections about tasks.

    Args:
        ask: judges one text, as `AsyncJudge.judge` does.
        cases: trees or tasks, and texts.
        max_concurrency: texts judged at the same time, at least 1.
        on_judgement: called with the index of each case and its judgement once it is there.

    Raises:
        OptionError: ``max_concurrency`` is below 1.
        ServiceError: the judge's service rejects every request; remaining texts are not judged.
    """
    if max_concurrency < 1:
        raise OptionError(f"max_concurrency is at least 1, not {max_concurrency}")
    semaphore = asyncio.Semaphore(max_concurrency)

    async def judge_case(index: int, subject: S, text: str) -> J:
        await semaphore.acquire()
        judgement = await ask(subject, text)
        semaphore.release()  # not after an error: the next case would start before it is cancelled
        on_judgement(index, judgement)
        return judgement

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(judge_case(index, *case)) for index, case in enumerate(cases)]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def _make_judge(name: str, options: JudgeOptions) -> AsyncJudge:
    check_name(name)
    kind, _, model = name.partition(":")
    if name == LOCAL:
        return _local()
    if kind == "nli":
        return _nli(model)
    paper = name.startswith(PAPER_PREFIX)
    return LLMJudge(
        options.chat(model),
        repeats=options.repeats,
        orders=1 if paper else options.orders,
        variants=options.variants and not paper,
        cache=options.reply_cache,
        budget=options.budget,
    )


def _local() -> InProcessJudge:
    embedder = load_embedder(JUDGE_EMBEDDER)
    config = {
        "version": LOCAL_VERSION,
        "embedder": embedder.name,
        "digest": embedder.digest,
        "settings": SETTINGS._asdict(),
    }
    return InProcessJudge(LOCAL, lambda: config, local_judge)


def _nli(model: str) -> InProcessJudge:
    inference = CrossEncoderInference(model)
    config = partial(inference.config, NLI_VERSION)
    return InProcessJudge(f"nli:{model}", config, cache(lambda tree: NLIJudge(tree, inference)))
