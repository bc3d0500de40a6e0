"""The verb that writes a research tree from a paper: author."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.text import Text

from inquitree_gym.authoring import Author, AuthoredTree, PaperDocument, PaperRecord, read_document
from inquitree_gym.authoring.author import estimate
from inquitree_gym.authoring.drafts import check_words
from inquitree_gym.authoring.findings import SOURCES, side_file
from inquitree_gym.authoring.sources import publication_date
from inquitree_gym.cli.output import (
    BaseUrlOption,
    EffortOption,
    MaxCostOption,
    MaxTotalTokensOption,
    ReplyTokensOption,
    err,
    format_usage,
    note,
    note_missing_keys,
    out,
    plural,
    print_table,
    reply_limit,
    sigterm_as_interrupt,
    write,
)
from inquitree_gym.cli.reviews import EXAM_WORLDS, STAGES, audit_into, audit_questions
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.embeddings.protocol import embedded
from inquitree_gym.errors import OptionError
from inquitree_gym.files import user_folder
from inquitree_gym.llm import Budget, BudgetedChat, CachedChat, Chat, Completion, RateLimitedChat, ReplyCache, run_sync
from inquitree_gym.runs.specs import ModelSettings
from inquitree_gym.trees.catalogue import (
    CATALOGUE,
    SIDE_FILES,
    TREES_VARIABLE,
    CatalogueEntry,
    builtin_ids,
    first_user_folder,
)
from inquitree_gym.trees.fields import DOI_PATTERN, PublicationDate
from inquitree_gym.trees.reading import dump_document
from inquitree_gym.trees.schema import Tree

ROLE = "author"
"""Folder of the cached replies."""
SUBTOPICS = 5
"""Number of subtopics of a tree, unless it is given or in the catalogue."""

OutOption = Annotated[
    Path | None, typer.Option("--out", help=f"File of the tree; with --paper in the folder of {TREES_VARIABLE}.")
]
PaperOption = Annotated[str | None, typer.Option(help="Number of a paper of the pool, whose id the tree gets.")]
SubtopicsOption = Annotated[
    int | None, typer.Option(min=1, max=26, help=f"Number of subtopics; the pool's, or {SUBTOPICS}.")
]
TitleOption = Annotated[str | None, typer.Option(help="Title of the paper; by default as the model reads it.")]
PublishedOption = Annotated[str | None, typer.Option(help="Date of publication: 2026-05-17, 2026-05 or 2026.")]
EmbedderOption = Annotated[str, typer.Option(help="Embedder for the checks of meaning; none skips these checks.")]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of the requests; another one gives other replies.")]
CacheOption = Annotated[Path | None, typer.Option(help="Folder of replies; the user's cache by default.")]
CheckerOption = Annotated[str | None, typer.Option(help="Another model, which audits the tree when it is written.")]
DryOption = Annotated[bool, typer.Option("--dry-run", help="Estimate requests, tokens and cost, and stop.")]

app = typer.Typer()


@app.command("author")
def author_tree(  # noqa: PLR0913  (one parameter per flag)
    file: Annotated[Path, typer.Argument(metavar="PAPER", help="PDF, HTML, JATS XML, Markdown or text of a paper.")],
    model: Annotated[str, typer.Option(help="litellm's name of the model that writes: provider/name.")],
    out_file: OutOption = None,
    paper: PaperOption = None,
    subtopics: SubtopicsOption = None,
    title: TitleOption = None,
    authors: Annotated[str | None, typer.Option(help="Authors, separated by semicolons.")] = None,
    journal: Annotated[str | None, typer.Option(help="Journal of the paper.")] = None,
    published: PublishedOption = None,
    doi: Annotated[str | None, typer.Option(help="Digital object identifier, without resolver.")] = None,
    licence: Annotated[str | None, typer.Option(help="Licence of the paper.")] = None,
    embedder: EmbedderOption = DEFAULT_EMBEDDER,
    seed: SeedOption = 0,
    base_url: BaseUrlOption = None,
    reasoning_effort: EffortOption = None,
    reply_tokens: ReplyTokensOption = "16384",
    requests_per_minute: Annotated[float | None, typer.Option(help="Most requests per minute.")] = None,
    tokens_per_minute: Annotated[float | None, typer.Option(help="Most tokens per minute.")] = None,
    checker: CheckerOption = None,
    checker_base_url: Annotated[str | None, typer.Option(help="Server of the checker's model.")] = None,
    max_cost: MaxCostOption = None,
    max_total_tokens: MaxTotalTokensOption = None,
    cache: CacheOption = None,
    dry_run: DryOption = False,
) -> None:
    """Let a model write the research tree of a paper, and check it. Exit with status 1 if the checker left a question.

    Replies are kept: if the command ends early, the same command goes on and pays for no reply twice.
    """
    entry = _entry(paper)
    target = _target(out_file, entry)
    record = _completed(PaperRecord(title, _names(authors), journal, _date(published), doi, licence), entry)
    settings = ModelSettings(
        model=model, base_url=base_url, reasoning_effort=reasoning_effort, max_tokens=reply_limit(reply_tokens),
        requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute,
    )  # fmt: skip
    second = _checker(settings, checker, checker_base_url)
    job = _Job(_document(file, entry), entry.id if entry else target.stem, record, seed)
    count = subtopics or (entry.subtopics if entry else SUBTOPICS)
    if dry_run:
        _show_estimate(job.document, count, settings)
        return
    budget = Budget(max_cost=max_cost, max_total_tokens=max_total_tokens)
    replies = ReplyCache(cache or user_folder(ROLE))
    auditor = _cached(second, budget, replies)  # before anything is paid for, since it may have no price
    found = _written(job, CachedChat(_paced(settings, budget), replies, keeps_cut=False), count, embedder, budget)
    _write(found, target)
    _audit(found.tree, target, auditor, budget, seed)


def _cached(settings: ModelSettings | None, budget: Budget, replies: ReplyCache) -> Chat | None:
    return None if settings is None else CachedChat(_paced(settings, budget), replies)


def _audit(tree: Tree, target: Path, chat: Chat | None, budget: Budget, seed: int) -> None:
    """Let the checker audit a tree, if there is one, and say what comes next."""
    if chat is None:
        note(f"next: inquitree audit {target} --model MODEL, with another model than the one that wrote it")
        return
    note(f"next, after the audit: inquitree review {target}")
    questions = list(audit_questions(tree, STAGES, EXAM_WORLDS, seed))
    audit_into(side_file(target), tree, questions, chat, budget, seed=seed, as_json=False)


def _document(file: Path, entry: CatalogueEntry | None) -> PaperDocument:
    """Return the text of a paper. Raise `OptionError` if it is not that of an entry."""
    document = read_document(file)
    if entry:
        check_words(entry.title, document)
    return document


def _names(authors: str | None) -> tuple[str, ...] | None:
    return tuple(name.strip() for name in authors.split(";")) if authors else None


def _date(published: str | None) -> PublicationDate | None:
    return publication_date(published) if published else None


def _checker(writer: ModelSettings, model: str | None, base_url: str | None) -> ModelSettings | None:
    """Return the settings of the model that audits. Raise `OptionError` for the one that writes, or a lost address."""
    if model is None:
        if base_url is not None:
            raise OptionError("--checker-base-url without a model does nothing; name one with --checker MODEL")
        return None
    if model == writer.model:
        raise OptionError(f"--checker must be another model than --model, got '{model}' for both. Name a second model.")
    return writer.model_copy(update={"model": model, "base_url": base_url, "reasoning_effort": None})


class _Job(NamedTuple):
    """A paper and what its tree is called."""

    document: PaperDocument
    tree_id: str
    record: PaperRecord
    seed: int


def _completed(record: PaperRecord, entry: CatalogueEntry | None) -> PaperRecord:
    """Return a record with what the pool knows of the paper. Raise `OptionError` for what is no DOI."""
    if record.doi is not None and not re.fullmatch(DOI_PATTERN, record.doi):
        raise OptionError(f"--doi must be a DOI such as 10.1000/182, got '{record.doi:.80}'. Leave its resolver out.")
    if entry is None:
        return record
    doi = entry.doi if record.doi is None else record.doi
    return replace(record, title=record.title or entry.title, journal=record.journal or entry.journal, doi=doi)


def _written(job: _Job, chat: Chat, subtopics: int, embedder: str, budget: Budget) -> AuthoredTree:
    """Return the tree, and show the progress and what it took."""
    embed = None if embedder == "none" else partial(embedded, load_embedder(embedder))
    with _shown(budget) as show, sigterm_as_interrupt():
        author = Author(
            job.document,
            chat,
            tree_id=job.tree_id,
            subtopics=subtopics,
            record=job.record,
            seed=job.seed,
            embed=embed,
            on_pass=show.finish,
            on_reply=show.count,
        )
        found = run_sync(author.write())
    paid = format_usage(budget)
    note(f"{plural(show.replies, 'reply')}, {show.cached} from the cache{f'; {paid}' if paid else ''}")
    return found


def _entry(paper: str | None) -> CatalogueEntry | None:
    """Return the entry of a paper of the pool. Raise `OptionError` if there is none, or its tree is shipped."""
    if paper is None:
        return None
    entry = CATALOGUE.get(f"paper{paper.removeprefix('paper').lstrip('0')}")
    if entry is None:
        raise OptionError(f"--paper must be a number from 1 to {len(CATALOGUE)}, got '{paper:.80}'. See the list.")
    if entry.id in builtin_ids():
        raise OptionError(
            f"--paper must be a paper whose tree is not shipped, got {entry.id}. Leave --paper out, and give "
            "a name with --out."
        )
    return entry


def _target(out_file: Path | None, entry: CatalogueEntry | None) -> Path:
    """Return the file to write. Raise `OptionError` without a place, or if it exists or has another name."""
    target = out_file
    if target is None and entry is not None:
        folder = first_user_folder()
        target = None if folder is None else folder / f"{entry.id}.json"
    if target is None:
        advice = f"name an existing folder in {TREES_VARIABLE}, or give --out" if entry else "give --out"
        raise OptionError(f"the tree needs a file, got none; {advice}")
    if target.suffix != ".json" or (entry is not None and target.stem != entry.id):
        wanted = f"{entry.id}.json" if entry else "ID.json"
        raise OptionError(f"the file of the tree must be named {wanted}, got '{target.name}'. Change --out.")
    for each in (target, *(side_file(target, end) for end in SIDE_FILES)):
        if each.exists():
            raise OptionError(f"'{each}' exists already; give another file with --out, or move it")
    return target


def _paced(settings: ModelSettings, budget: Budget) -> Chat:
    chat: Chat = BudgetedChat(settings.chat_model(), budget)
    limit = settings.rate_limit()
    return chat if limit is None else RateLimitedChat(chat, limit)


def _show_estimate(document: PaperDocument, subtopics: int, settings: ModelSettings) -> None:
    chat = settings.chat_model()
    rows = [["", "requests", "prompt tokens", "reply tokens", "US dollars"]]
    for name, usage in zip(("no repairs", "all repairs"), estimate(document, subtopics), strict=True):
        prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
        price = chat.price(prompt, completion)
        dollars = "unknown price" if price is None else f"{price:,.2f}"
        rows.append([name, f"{usage.replies:,}", f"{prompt:,}", f"{completion:,}", dollars])
    print_table(f"Estimate for {document.file} and {settings.model}", rows)
    if (key := chat.missing_key()) is not None:
        note_missing_keys({settings.model: key})


class _Shown:
    """Progress of the passes and the cost so far."""

    def __init__(self, budget: Budget, update: partial[None]) -> None:
        self._budget, self._update = budget, update
        self.replies = self.cached = 0
        self._last = "reading"

    def finish(self, name: str) -> None:
        """Show that a pass is finished."""
        self._last = f"{name} written"
        self._update(self._text())
        if not err.is_terminal:
            note(self._text())

    def count(self, completion: Completion) -> None:
        """Show a reply."""
        self.replies += 1
        self.cached += completion.cached
        self._update(self._text())

    def _text(self) -> str:
        paid = format_usage(self._budget)
        return " · ".join(filter(None, (self._last, plural(self.replies, "reply"), paid)))


@contextmanager
def _shown(budget: Budget) -> Iterator[_Shown]:
    with err.status("reading the paper") as status:
        yield _Shown(budget, partial(status.update))


def _write(found: AuthoredTree, target: Path) -> None:
    """Write the tree and its sources, and list what is left to mend."""
    sources = {node: [each.model_dump() for each in quoted] for node, quoted in found.quotations.items()}
    target.parent.mkdir(parents=True, exist_ok=True)
    write(target, dump_document(found.tree))
    write(side_file(target, SOURCES), json.dumps(sources, indent=2, ensure_ascii=False) + "\n")
    studies = len(found.tree.studies)
    note(f"'{target}' holds {plural(studies, 'study')}; read it against the paper before you use it")
    for reason in found.left_out:
        out.print(Text(f"  left out: {reason}"), soft_wrap=True)
    for fault in found.faults:
        out.print(Text(f"  {fault.severity} {fault.code} {fault}"), soft_wrap=True)
