"""Judges of any tree, by name: ``local``, ``nli:MODEL``, ``llm:MODEL``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.judges.llm import LLMJudge, Ruling
from inquitree_gym.judges.local import ASKED_AT, CLAIM_AT, CONTRADICTING_SENSE, FULL_SENSE, WEIGHTS, local_judge
from inquitree_gym.judges.nli import CONTRADICTS_AT, ENTAILS_AT, CrossEncoderInference, NLIJudge
from inquitree_gym.judges.quality import Judge
from inquitree_gym.llm import Budget, ChatModel, ReplyCache
from inquitree_gym.trees import Tree

LOCAL = "local"
KINDS = ("local", "nli:MODEL", "llm:MODEL")


class Panelist(Protocol):
    """A judge of any tree."""

    @property
    def name(self) -> str:
        """As it was asked for."""

    @property
    def config(self) -> dict[str, Any]:
        """What decides its verdicts, beside tree and conclusion; plain values."""

    async def rule(self, tree: Tree, conclusion: str) -> Ruling:
        """Judge one conclusion."""


@dataclass(frozen=True)
class Machine:
    """A judge that computes here: one judge per tree, kept."""

    name: str
    settings: Callable[[], dict[str, Any]]
    of: Callable[[Tree], Judge]

    @property
    def config(self) -> dict[str, Any]:
        """See `Panelist.config`; that of a model of the hub has to load it."""
        return self.settings()

    async def rule(self, tree: Tree, conclusion: str) -> Ruling:
        """See `Panelist.rule`; it takes no time of the event loop but its own."""
        return Ruling(self.of(tree).judge(conclusion))


@dataclass(frozen=True)
class Terms:
    """What the models of a panel are asked with."""

    repeats: int = 1
    """Answers per order of the items."""
    base_url: str | None = None
    """Address of the server of every ``llm:`` judge; None for the providers' own."""
    cache: Path | None = None
    """Folder of replies; None takes the user's cache folder."""
    budget: Budget = field(default_factory=Budget)
    """Shared by all."""


def make_panel(names: Sequence[str], terms: Terms | None = None) -> list[Panelist]:
    """Return the judges of these names, each once.

    Raises:
        OptionError: a name is unknown, or a cost cap is set for a model of unknown price.
    """
    terms = terms or Terms()
    return [_panelist(name, terms) for name in dict.fromkeys(names)]


async def rule_all(
    panelist: Panelist, cases: Sequence[tuple[Tree, str]], max_concurrency: int, done: Callable[[int, Ruling], None]
) -> list[Ruling]:
    """Judge several conclusions, each with its tree, ``max_concurrency`` of them at the same time.

    Args:
        panelist: the judge.
        cases: trees and conclusions.
        max_concurrency: at least 1.
        done: told the index of each case and its ruling as soon as it is there.

    Raises:
        OptionError: ``max_concurrency`` is below 1.
        ServiceError: the judge's service will answer no question; the rest is not asked.
    """
    if max_concurrency < 1:
        raise OptionError(f"at least 1 conclusion is judged at a time, not {max_concurrency}")
    room = asyncio.Semaphore(max_concurrency)

    async def rule(index: int, tree: Tree, conclusion: str) -> Ruling:
        await room.acquire()
        ruling = await panelist.rule(tree, conclusion)
        room.release()  # not after an error: the next one would ask before it is told to stop
        done(index, ruling)
        return ruling

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(rule(index, *case)) for index, case in enumerate(cases)]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def _panelist(name: str, terms: Terms) -> Panelist:
    kind, colon, model = name.partition(":")
    if name == LOCAL:
        return _local()
    if kind == "nli" and model:
        return _nli(model)
    if kind == "llm" and model:
        return _llm(model, terms)
    raise OptionError(
        f"no judge is called '{name}'{suggest(kind + colon, ('local', 'nli:', 'llm:'))}; known: {', '.join(KINDS)}"
    )


def _local() -> Machine:
    embedder = load_embedder(DEFAULT_EMBEDDER)
    config = {
        "embedder": embedder.name,
        "digest": embedder.digest,
        "claim_at": CLAIM_AT,
        "asked_at": ASKED_AT,
        "full_sense": FULL_SENSE,
        "contradicting_sense": CONTRADICTING_SENSE,
        "weights": WEIGHTS._asdict(),
    }
    return Machine(LOCAL, lambda: config, local_judge)


def _nli(model: str) -> Machine:
    inference = CrossEncoderInference(model)

    def settings() -> dict[str, Any]:
        return {
            "model": model,
            "digest": inference.digest,
            "entails_at": ENTAILS_AT,
            "contradicts_at": CONTRADICTS_AT,
        }

    return Machine(f"nli:{model}", settings, cache(lambda tree: NLIJudge(tree, inference)))


def _llm(model: str, terms: Terms) -> LLMJudge:
    chat = ChatModel(model, base_url=terms.base_url)
    cache = None if terms.cache is None else ReplyCache(terms.cache)
    return LLMJudge(chat, repeats=terms.repeats, cache=cache, budget=terms.budget)
