"""The verb of projections: disclose."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from inquitree_gym.authoring import disclose, read_paper
from inquitree_gym.authoring.sources import UNKNOWN, publication_date
from inquitree_gym.cli.output import (
    REPLY_TOKENS,
    BaseUrlOption,
    MaxCostOption,
    ReplyTokensOption,
    note,
    out,
    plural,
    reply_limit,
    write,
)
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.embeddings.protocol import embedded
from inquitree_gym.errors import OptionError
from inquitree_gym.files import user_folder
from inquitree_gym.llm import Budget, BudgetedChat, CachedChat, ChatModel, ReplyCache
from inquitree_gym.trees.disclosure_lint import lint_task
from inquitree_gym.trees.fields import Paper
from inquitree_gym.trees.reading import dump_document

ROLE = "author"
"""Folder of the cached replies."""

app = typer.Typer()


@app.command("disclose")
def disclose_file(  # noqa: PLR0913  (one parameter per flag)
    file: Annotated[Path, typer.Argument(help="Text of a paper, UTF-8.")],
    model: Annotated[str, typer.Option(help="litellm's name of the model that writes: provider/name.")],
    published: Annotated[str, typer.Option(help="Date of publication: 2026-05-17, 2026-05 or 2026.")],
    out_file: Annotated[Path | None, typer.Option("--out", help="File of the task; ID.json by default.")] = None,
    task_id: Annotated[str | None, typer.Option("--id", help="Id of the task; the file's name by default.")] = None,
    domain: Annotated[str, typer.Option(help="Group of papers in reports.")] = "papers",
    title: Annotated[str, typer.Option(help="Title of the paper; by default as the model reads it.")] = UNKNOWN,
    authors: Annotated[str, typer.Option(help="Authors, separated by semicolons.")] = UNKNOWN,
    journal: Annotated[str, typer.Option(help="Journal of the paper.")] = UNKNOWN,
    doi: Annotated[str, typer.Option(help="Digital object identifier, without resolver.")] = "",
    licence: Annotated[str, typer.Option(help="Licence of the paper.")] = UNKNOWN,
    base_url: BaseUrlOption = None,
    reply_tokens: ReplyTokensOption = REPLY_TOKENS,
    max_cost: MaxCostOption = None,
) -> None:
    """Let a model write the projection task of a paper, and check it."""
    date = publication_date(published)
    paper = Paper(
        title=title,
        authors=tuple(name.strip() for name in authors.split(";")),
        journal=journal,
        year=int(date.date[:4]),
        published=date,
        doi=doi,
        licence=licence,
    )
    name = task_id or file.stem
    target = out_file or Path(f"{name}.json")
    if target.exists():
        raise OptionError(f"'{target}' exists already; give another file with --out")
    chat = ChatModel(model, base_url=base_url, max_tokens=reply_limit(reply_tokens))
    asked = CachedChat(BudgetedChat(chat, Budget(max_cost=max_cost)), ReplyCache(user_folder(ROLE)))
    task = disclose(read_paper(file, paper), asked, task_id=name, domain=domain)
    write(target, dump_document(task))
    faults = lint_task(task, partial(embedded, load_embedder(DEFAULT_EMBEDDER)))
    note(f"'{target}' holds {plural(len(task.claims), 'claim')}; read it before you use it")
    for fault in faults:
        out.print(Text(f"  {fault.severity} {fault.code} {fault}"))
