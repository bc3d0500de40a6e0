"""Verbs that check and review a tree: audit, review."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from inquitree_gym.cli.output import (
    FAULTY,
    REPLY_TOKENS,
    BaseUrlOption,
    EffortOption,
    JsonOption,
    MaxCostOption,
    MaxTotalTokensOption,
    ReplyTokensOption,
    TreeArgument,
    format_usage,
    note,
    out,
    plural,
    print_json,
    print_table,
    progress,
    reply_limit,
    split,
)
from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.trees.load import load_tree

if TYPE_CHECKING:
    from inquitree_gym.authoring.audit import AuditQuestion, AuditResult
    from inquitree_gym.llm import ChatModel
    from inquitree_gym.trees.schema import Tree

STAGES = ("texts", "edges", "exam")

app = typer.Typer()


@app.command("audit")
def audit_tree(  # noqa: PLR0913  (one parameter per flag)
    tree: TreeArgument,
    model: Annotated[str, typer.Option(help="Model by litellm's name. Not the one that wrote the tree.")],
    stages: Annotated[str, typer.Option(help="Stages, comma-separated.")] = ",".join(STAGES),
    worlds: Annotated[int, typer.Option(min=0, help="Drawn worlds whose exam the model takes.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of worlds, orders, fakes and requests.")] = 0,
    out_file: Annotated[
        Path | None, typer.Option("--out", help="File of the findings; TREE.findings.json by default.")
    ] = None,
    base_url: BaseUrlOption = None,
    reasoning_effort: EffortOption = None,
    reply_tokens: ReplyTokensOption = REPLY_TOKENS,
    max_cost: MaxCostOption = None,
    max_total_tokens: MaxTotalTokensOption = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder of cached replies; default: the user's cache folder.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print requests and cost, and ask nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Let a model look for faults in a tree, and take its exam. Add what it finds to the file of the findings.

    Exit with status 1 if a request has no answer.
    """
    from inquitree_gym.authoring.audit import ask_all
    from inquitree_gym.authoring.findings import read_findings, side_file, write_findings
    from inquitree_gym.judging.asking import judging_chat
    from inquitree_gym.llm import Budget, ChatModel, ReplyCache

    loaded = load_tree(tree)
    chat = ChatModel(model, base_url=base_url, reasoning_effort=reasoning_effort, max_tokens=reply_limit(reply_tokens))
    questions = list(_questions(loaded, split(stages), worlds, seed))
    if dry_run:
        _show_estimate(questions, chat, as_json)
        return
    file = out_file or side_file(tree)
    before, budget = read_findings(file, loaded), Budget(max_cost, max_total_tokens)
    caching = judging_chat(chat, budget, ReplyCache(cache) if cache else None)
    with progress("auditing", len(questions)) as advance:
        result = asyncio.run(ask_all(questions, caching, before, seed=seed, progress=advance))
    write_findings(file, result.findings.model_copy(update={"digest": loaded.digest}))
    _show_result(result, as_json)
    usage = format_usage(budget)
    note(f"{file}: {plural(len(result.findings.rows) - len(before.rows), 'new row')}{usage and f' ({usage})'}")
    if len(questions) > result.read:
        raise typer.Exit(FAULTY)


def _questions(tree: Tree, stages: Sequence[str], worlds: int, seed: int) -> Iterator[AuditQuestion]:
    from inquitree_gym.authoring.audit import edge_questions, text_questions
    from inquitree_gym.authoring.audit_exam import exam_questions

    for stage in stages:
        if stage not in STAGES:
            raise OptionError(f"--stages must name some of {', '.join(STAGES)}, got '{stage}'{suggest(stage, STAGES)}")
    if "texts" in stages:
        yield from text_questions(tree)
    if "edges" in stages:
        yield from edge_questions(tree)
    if "exam" in stages:
        yield from exam_questions(tree, worlds, seed)


def _show_estimate(questions: Sequence[AuditQuestion], chat: ChatModel, as_json: bool) -> None:
    from inquitree_gym.authoring.audit import prompt_tokens

    prompt = prompt_tokens(questions)
    most = None if chat.max_tokens is None else chat.max_tokens * len(questions)
    dollars = None if most is None else chat.price(prompt, most)
    if as_json:
        print_json({"requests": len(questions), "prompt_tokens": prompt, "most_reply_tokens": most, "dollars": dollars})
        return
    heads = ["requests", "prompt tokens", "reply tokens, at most", "US dollars, at most"]
    row = [str(len(questions)), f"{prompt:,}", "no limit" if most is None else f"{most:,}"]
    print_table("Estimate", [heads, [*row, "unknown" if dollars is None else f"{dollars:.2f}"]])
    out.print(
        Text("About 4 bytes of a prompt to a token, prices from litellm's list. A correction is one more request.")
    )


def _show_result(result: AuditResult, as_json: bool) -> None:
    record = result.findings
    if as_json:
        print_json(record.model_dump(mode="json"))
        return
    if record.figures:
        rows = [[each.model, each.name, str(each.count), str(each.n)] for each in record.figures]
        print_table("Exam of the checker", [["model", "figure", "count", "n"], *rows])
    if record.unread:
        rows = [[each.model, each.name, each.status, each.why] for each in record.unread]
        print_table("Requests without an answer", [["model", "request", "status", "why"], *rows])
    print_table("Rows", [["rule", "rows"], *rule_counts(record.rows)])


def rule_counts(rows: Sequence[object]) -> Iterator[list[str]]:
    """Yield the number of rows of each rule, most first."""
    from collections import Counter

    for rule, count in Counter(getattr(row, "rule", "") for row in rows).most_common():
        yield [rule, str(count)]
