"""Compare a reader with the embedder on labelled proposals: ``python -m research.reader_agreement llm:MODEL``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Literal

import typer

from inquitree_gym.cli import judge_verb as cli
from inquitree_gym.cli import output, run_app
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, Embedder, load_embedder
from inquitree_gym.errors import InquiTreeError, OptionError
from inquitree_gym.inquiry.llm_matcher import NONE, LLMReader, Reader, ReaderAnswer, ReaderRequest, model_name
from inquitree_gym.llm import Budget, BudgetedChat, ChatModel, ReplyCache, run_sync
from inquitree_gym.runs.study import ALL
from research.blind.readings import blind_sets
from research.kappa import cohen_kappa
from research.proposals import (
    MatchedProposal,
    MatchingCase,
    ReadingShares,
    match_cases,
    matched,
    matching_cases,
    reading_shares,
)

CHOSEN = 0.5
"""Threshold between the similarities 0 and 1 of a reader's choices."""
CONCURRENCY = 8

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@dataclass(frozen=True, slots=True)
class ReaderAgreement:
    """Readings of the same proposals by a reader and by an embedder."""

    reader: str
    embedder: str
    asked: ReadingShares
    """Shares of the reader."""
    local: ReadingShares
    """Shares of the embedder at its threshold."""
    same: float
    """Share of the proposals that both read as the same candidate, or both as none, in [0, 1]."""
    kappa: float | None
    """Cohen's κ over these readings, in [-1, 1]. None if both read every proposal as one and the same."""
    unread: int
    """Replies of the reader that name no candidate."""


def measure_agreement(
    cases: Sequence[MatchingCase],
    reader: Reader,
    embedder: Embedder,
    *,
    threshold: float,
    max_concurrency: int = CONCURRENCY,
) -> ReaderAgreement:
    """Put every proposal to a reader and to an embedder.

    Raises:
        OptionError: there is no proposal.
        InquiTreeError: the reader failed or a cap is reached. What was asked so far is in the reader's cache.
    """
    if not cases:
        raise OptionError("there is no proposal to read; choose other papers or another origin")
    local = match_cases(cases, embedder)
    answers = run_sync(_choose(reader, [_request(case) for case in cases], max_concurrency))
    asked = [_matched(case, answer) for case, answer in zip(cases, answers, strict=True)]
    ours, theirs = _labels(asked, CHOSEN), _labels(local, threshold)
    return ReaderAgreement(
        reader=str(reader.config["name"]),
        embedder=embedder.name,
        asked=reading_shares(asked, CHOSEN),
        local=reading_shares(local, threshold),
        same=sum(one == other for one, other in zip(ours, theirs, strict=True)) / len(cases),
        kappa=cohen_kappa(zip(ours, theirs, strict=True)),
        unread=sum(bool(answer.fault) for answer in answers),
    )


async def _choose(reader: Reader, requests: Sequence[ReaderRequest], max_concurrency: int) -> list[ReaderAnswer]:
    """Return the choices. After a failure, requests under way are waited for and no further one is made."""
    slots, failures = asyncio.Semaphore(max_concurrency), list[InquiTreeError]()

    async def choose(request: ReaderRequest) -> ReaderAnswer:
        async with slots:
            if not failures:
                try:
                    return await reader.choose(request)
                except InquiTreeError as error:
                    failures.append(error)
        return ReaderAnswer(None)

    answers = await asyncio.gather(*map(choose, requests))
    if failures:
        raise failures[0]
    return answers


def _request(case: MatchingCase) -> ReaderRequest:
    candidates = tuple((node.id, node.text) for node in case.candidates)
    return ReaderRequest("studies" if case.is_study else "subtopics", candidates, case.text)


def _matched(case: MatchingCase, answer: ReaderAnswer) -> MatchedProposal:
    index = next((i for i, node in enumerate(case.candidates) if node.id == answer.candidate), -1)
    return matched(case, index, float(index >= 0))


def _labels(found: Sequence[MatchedProposal], threshold: float) -> list[str]:
    """Name the readings. Ids are unique within a tree."""
    return [f"{each.tree} {each.nearest}" if each.similarity >= threshold else NONE for each in found]


@app.command()
def reader_agreement(  # noqa: PLR0913  (one parameter per flag)
    reader: Annotated[str, typer.Argument(help="llm:MODEL, with litellm's name of a model.")],
    embedder: Annotated[str, typer.Option(help="Embedder to compare with, at its threshold.")] = DEFAULT_EMBEDDER,
    papers: Annotated[str, typer.Option(help="all, or ids and paper numbers, comma-separated.")] = ALL,
    origin: Annotated[Literal["played", "written", "all"], typer.Option(help="Proposals that are read.")] = "played",
    base_url: output.BaseUrlOption = None,
    max_cost: output.MaxCostOption = None,
    max_total_tokens: output.MaxTotalTokensOption = None,
    max_concurrency: Annotated[int, typer.Option(min=1, help="Proposals read at the same time.")] = CONCURRENCY,
    cache: cli.CacheOption = None,
    as_json: output.JsonOption = False,
) -> None:
    """Read labelled proposals with a model and with an embedder, and compare both with the labels and each other."""
    budget, local = Budget(max_cost, max_total_tokens), load_embedder(embedder)
    if local.threshold is None:
        raise OptionError(f"no threshold has been calibrated for the embedder '{embedder}'; choose another one")
    chat = BudgetedChat(ChatModel(model_name(reader), base_url=base_url), budget)
    asked = LLMReader(chat, cache=None if cache is None else ReplyCache(cache))
    cases = _cases(output.split(papers), origin)
    found = measure_agreement(cases, asked, local, threshold=local.threshold, max_concurrency=max_concurrency)
    if as_json:
        output.print_json({**asdict(found), "paid": budget.usage})
        return
    output.print_table("Readings of labelled proposals", _table(found))
    kappa = "–" if found.kappa is None else f"{found.kappa:.2f}"
    output.note(f"read alike: {found.same:.2f}, κ {kappa}; replies without a choice: {found.unread}")
    output.note(f"replies paid for: {budget.usage.replies} ({budget.usage.tokens} tokens)")


def _cases(papers: Sequence[str], origin: str) -> list[MatchingCase]:
    wanted = {f"paper{name}" if name.isdigit() else name for name in papers}
    sets = blind_sets()
    if unknown := wanted - {each.tree for each in sets} - {ALL}:
        raise OptionError(f"no labelled proposals about {', '.join(sorted(unknown))}")
    chosen = [each for each in sets if ALL in wanted or each.tree in wanted]
    return [case for case in matching_cases(chosen) if origin in ("all", case.origin)]


def _table(found: ReaderAgreement) -> Iterator[list[str]]:
    yield ["share", found.reader, found.embedder]
    for field in fields(ReadingShares):
        pair = [getattr(shares, field.name) for shares in (found.asked, found.local)]
        yield [field.name.replace("_", " "), *(str(each) for each in pair)]


if __name__ == "__main__":
    run_app(app)
