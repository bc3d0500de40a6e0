"""The verb closed-book: what does a model conclude from the topic alone?"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from inquitree_gym.analysis.aggregate import as_plain
from inquitree_gym.analysis.cutoff_models import find_model, load_models
from inquitree_gym.analysis.judging import JudgingResult, judge_conclusions
from inquitree_gym.analysis.memorisation import (
    ask_closed_book,
    closed_book_conclusions,
    grade_closed_book,
    memory_table,
    summarise_memory,
)
from inquitree_gym.analysis.questions import AskingResult
from inquitree_gym.cli.output import FAILED, as_table, err, out, print_json, progress, split
from inquitree_gym.cli.trees import JsonOption
from inquitree_gym.errors import OptionError
from inquitree_gym.judges import AsyncJudge, JudgeOptions, make_judges
from inquitree_gym.llm import Budget, BudgetedChat, Chat, ChatModel
from inquitree_gym.runner.study import ALL
from inquitree_gym.trees import Tree, builtin_ids, load_tree

LEGEND = (
    "memory: mean S of conclusions from the topic alone; [low, high] is the 95 % interval over trees, from five on.\n"
    "before, after: papers from before and from after the training cutoff; their difference has Welch's interval."
)

app = typer.Typer()


@app.command("closed-book")
def closed_book(  # noqa: PLR0913  (one parameter per flag)
    model: Annotated[str, typer.Option(help="litellm's names of models, comma-separated: provider/name.")],
    papers: Annotated[str, typer.Option(help="all, or ids, paper numbers and paths, comma-separated.")] = ALL,
    repeats: Annotated[int, typer.Option(min=1, help="Conclusions per model and tree.")] = 1,
    judges: Annotated[
        str, typer.Option("--judge", help="Judges, comma-separated: local, nli:MODEL, llm:MODEL.")
    ] = "local",
    base_url: Annotated[str | None, typer.Option(help="Server of the models; without it their providers'.")] = None,
    judge_base_url: Annotated[str | None, typer.Option(help="Server of the llm judges, likewise.")] = None,
    reasoning_effort: Annotated[str | None, typer.Option(help="The provider's word, such as low or high.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="US dollars at which no more is asked.")] = None,
    max_total_tokens: Annotated[int | None, typer.Option(help="Tokens at which no more is asked.")] = None,
    max_concurrency: Annotated[int, typer.Option(min=1, help="Questions asked at the same time.")] = 8,
    cache: Annotated[Path | None, typer.Option(help="Folder of the llm judges' replies; default the user's.")] = None,
    models: Annotated[
        Path | None, typer.Option(help="TOML file of models with their training cutoffs, beside the package's own.")
    ] = None,
    out_folder: Annotated[Path, typer.Option("--out", help="Folder of the conclusions.")] = Path("closed-book"),
    as_json: JsonOption = False,
) -> None:
    """Ask models to conclude from the topic alone, and judge it; the same command again does what is missing."""
    known, budget, trees = load_models(models), Budget(max_cost, max_total_tokens), _trees(papers)
    panel = make_judges(split(judges), JudgeOptions(base_url=judge_base_url, cache=cache, budget=budget))
    chats = [
        BudgetedChat(ChatModel(name, base_url=base_url, reasoning_effort=reasoning_effort), budget)
        for name in dict.fromkeys(split(model))
    ]
    asked = [_asked(chat, trees, out_folder, repeats, max_concurrency) for chat in chats]
    judged = [_judged(trees, out_folder, judge, max_concurrency) for judge in panel]
    found = summarise_memory(grade_closed_book(out_folder, trees), known)
    if as_json:
        print_json(as_plain(found))
    else:
        out.print(as_table("Conclusions from the topic alone: mean S", memory_table(found)))
        out.print(Text(LEGEND))
    for chat, each in zip(chats, asked, strict=True):
        _tell_asked(str(chat.config["model"]), each)
    for done in judged:
        err.print(Text(f"{done.judge}: conclusions judged: {done.judged}; judged before: {done.found}"), soft_wrap=True)
    for name in dict.fromkeys(each.model for each in found if find_model(known, each.model) is None):
        err.print(Text(f"no training cutoff is known of '{name}'; add it in a file with --models"), soft_wrap=True)
    if any(each.failed or each.left for each in asked):
        raise typer.Exit(FAILED)


def _asked(chat: Chat, trees: Mapping[str, Tree], folder: Path, repeats: int, max_concurrency: int) -> AskingResult:
    with progress(f"asking {chat.config['model']}", len(trees) * repeats) as advance:
        return asyncio.run(
            ask_closed_book(chat, list(trees.values()), folder, repeats, max_concurrency, lambda: advance(""))
        )


def _judged(trees: Mapping[str, Tree], folder: Path, judge: AsyncJudge, max_concurrency: int) -> JudgingResult:
    found = closed_book_conclusions(folder, trees)
    with progress(f"{judge.name} judging", len(found)) as advance:
        return asyncio.run(judge_conclusions(folder, found, judge, max_concurrency, lambda _: advance("")))


def _trees(papers: str) -> dict[str, Tree]:
    names = [name for part in split(papers) for name in (builtin_ids() if part == ALL else (part,))]
    found: dict[str, Tree] = {}
    for tree in map(load_tree, names):
        if found.setdefault(tree.id, tree).digest != tree.digest:
            raise OptionError(f"two of the trees have the id '{tree.id}'; give each an id of its own")
    return found


def _tell_asked(model: str, asked: AskingResult) -> None:
    """Say on the error stream what asking a model brought, took and left."""
    price = f"${asked.paid.dollars:.4f}" + (f" and {asked.paid.unpriced} of unknown price" * bool(asked.paid.unpriced))
    took = f"{asked.answered} now ({asked.paid.tokens} tokens, {price}), {asked.found} from before"
    err.print(Text(f"{model}: conclusions: {took}"), soft_wrap=True)
    if asked.failed:
        err.print(
            Text(f"{model}: {len(asked.failed)} without an answer, the last for: {asked.failed[-1]}"), soft_wrap=True
        )
    if asked.left:
        err.print(Text(f"{model}: {asked.left}"), soft_wrap=True)
