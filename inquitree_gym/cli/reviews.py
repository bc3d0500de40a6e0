"""Verbs that check and review a tree: audit, review."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.panel import Panel
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
    from inquitree_gym.authoring.findings import Choice, Findings, Quotation
    from inquitree_gym.llm import Budget, Chat, ChatModel
    from inquitree_gym.trees.schema import Tree

STAGES = ("texts", "edges", "exam")
EXAM_WORLDS = 2

CHOICES = "[a]ccept, [e]dit, [r]eject, [s]kip, [u]ndo, [q]uit: "

app = typer.Typer()


@app.command("audit")
def audit_tree(  # noqa: PLR0913  (one parameter per flag)
    tree: TreeArgument,
    model: Annotated[str, typer.Option(help="Model by litellm's name. Not the one that wrote the tree.")],
    stages: Annotated[str, typer.Option(help="Stages, comma-separated.")] = ",".join(STAGES),
    worlds: Annotated[int, typer.Option(min=0, help="Drawn worlds whose exam the model takes.")] = EXAM_WORLDS,
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
    from inquitree_gym.authoring.findings import side_file
    from inquitree_gym.judging.asking import judging_chat
    from inquitree_gym.llm import Budget, ChatModel, ReplyCache

    loaded = load_tree(tree)
    chat = ChatModel(model, base_url=base_url, reasoning_effort=reasoning_effort, max_tokens=reply_limit(reply_tokens))
    questions = list(audit_questions(loaded, split(stages), worlds, seed))
    if dry_run:
        _show_estimate(questions, chat, as_json)
        return
    budget = Budget(max_cost, max_total_tokens)
    caching = judging_chat(chat, budget, ReplyCache(cache) if cache else None)
    audit_into(out_file or side_file(tree), loaded, questions, caching, budget, seed=seed, as_json=as_json)


def audit_into(
    file: Path, tree: Tree, questions: Sequence[AuditQuestion], chat: Chat, budget: Budget, *, seed: int, as_json: bool
) -> None:
    """Ask a model all questions about a tree, add what it finds to a file, and show it.

    Raises:
        typer.Exit: with status 1, after the file is written, if a request has no answer.
    """
    from inquitree_gym.authoring.audit import ask_all
    from inquitree_gym.authoring.findings import read_findings, write_findings

    before = read_findings(file, tree)
    with progress("auditing", len(questions)) as advance:
        result = asyncio.run(ask_all(questions, chat, before, seed=seed, progress=advance))
    write_findings(file, result.findings.model_copy(update={"digest": tree.digest}))
    _show_result(result, as_json)
    usage = format_usage(budget)
    note(f"{file}: {plural(len(result.findings.rows) - len(before.rows), 'new row')}{usage and f' ({usage})'}")
    if len(questions) > result.read:
        raise typer.Exit(FAULTY)


def audit_questions(tree: Tree, stages: Sequence[str], worlds: int, seed: int) -> Iterator[AuditQuestion]:
    """Yield the questions of some stages. Raise `OptionError` for an unknown stage."""
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


@app.command("review")
def review_tree(  # noqa: PLR0913  (one parameter per flag)
    tree: Annotated[Path, typer.Argument(metavar="FILE", help="Tree file.")],
    page: Annotated[bool, typer.Option("--page", help="Serve a page on this machine instead of the terminal.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port of the page; 0: a free one.")] = 0,
    apply: Annotated[bool, typer.Option("--apply", help="Write accepted and edited rows into the tree.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the rows, and decide nothing.")] = False,
    by: Annotated[str | None, typer.Option(help="Name beside each decision; the user's by default.")] = None,
    findings_file: Annotated[
        Path | None, typer.Option("--findings", help="File of the findings; TREE.findings.json by default.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Decide on each finding about a tree, and write what you accept into it.

    Every decision is saved at once, and can be undone.
    """
    from getpass import getuser

    from inquitree_gym.authoring.applying import save_decisions
    from inquitree_gym.authoring.findings import SOURCES, read_findings, read_quotations, side_file

    if sum((page, apply, show, as_json)) > 1:
        raise OptionError("--page, --apply, --show and --json exclude each other; give one of them")
    loaded, file = load_tree(tree), findings_file or side_file(tree)
    if not file.exists():
        raise OptionError(f"'{file}' must hold the rows of the review, but there is no such file; run inquitree audit")
    found, quotations = read_findings(file, loaded), read_quotations(side_file(tree, SOURCES))
    if as_json:
        print_json(found.model_dump(mode="json"))
    elif show:
        for row in range(len(found.rows)):
            _print_row(found, row, quotations)
    elif apply:
        _apply(tree, loaded, found)
    else:
        review = Review(loaded, found, quotations, by or getuser(), partial(save_decisions, file, tree))
        review.serve(port) if page else review.talk()
        left = len(review.findings.open_rows)
        after = "" if left else f"; next: inquitree review {tree} --apply"
        note(f"{file}: {plural(len(found.rows), 'row')}, {left} open{after}")


class Review:
    """A review at the terminal or on a page. ``save`` writes a tree's record, and returns the tree as it is then."""

    def __init__(
        self, tree: Tree, findings: Findings, quotations: Mapping[str, list[Quotation]], by: str,
        save: Callable[[Tree, Findings], Tree],
    ) -> None:  # fmt: skip
        self.tree, self.findings, self._quotations, self._by, self._save = tree, findings, quotations, by, save

    def keep(self, findings: Findings) -> Tree:
        """Save a record. Return the tree."""
        self.tree, self.findings = self._save(self.tree, findings), findings
        return self.tree

    def serve(self, port: int) -> None:
        """Serve the page until it is finished, or until Ctrl-C."""
        from inquitree_gym.authoring.page import ReviewServer

        with ReviewServer(self.tree, self.findings, self._quotations, self._by, self.keep, port) as server:
            note(f"open {server.address} in your browser; press Ctrl-C to end")
            with suppress(KeyboardInterrupt):
                server.serve_forever(0.1)

    def talk(self) -> None:
        """Ask about each open row at the terminal, until none is left or the input ends."""
        self.keep(self.findings)  # without an open row, the tree is reviewed now
        skipped: set[int] = set()
        while left := [row for row in self.findings.open_rows if row not in skipped]:
            _print_row(self.findings, left[0], self._quotations)
            answer = _asked(CHOICES).lower()[:1]
            try:
                if answer == "q":
                    return
                if answer == "s":
                    skipped.add(left[0])
                elif answer == "u":
                    self.keep(self.findings.undo())
                elif answer in ("a", "r"):
                    choice: Choice = "accepted" if answer == "a" else "rejected"
                    self.keep(self.findings.decide(left[0], choice, self._by))
                elif answer == "e":
                    text = _asked("text: ", end="")
                    self.keep(self.findings.decide(left[0], "edited", self._by, text))
                else:
                    note("type a, e, r, s, u or q")
            except OptionError as error:
                note(str(error))


def _asked(question: str, end: str = "q") -> str:
    """Return an answer at the terminal, ``end`` at the end of the input."""
    try:
        return out.input(Text(question)).strip()
    except EOFError:
        return end


def _print_row(found: Findings, row: int, quotations: Mapping[str, list[Quotation]]) -> None:
    finding, decision = found.rows[row], found.states[row]
    state = "open" if decision is None else f"{decision.choice} by {decision.by}, {decision.at}"
    head = f"row {row + 1} of {len(found.rows)} · {finding.rule} · {finding.severity} · {finding.node} · {state}"
    parts = {"text": finding.text, "why": finding.why, "proposal": finding.proposal or ""}
    lines = [f"{name}: {text}" for name, text in parts.items() if text]
    lines += [f"source: {each.quotation} ({each.place})" for each in quotations.get(finding.node, ())]
    if decision and decision.text:
        lines.append(f"edited: {decision.text}")
    out.print(Panel(Text("\n".join(lines)), title=Text(head), title_align="left"))


def _apply(file: Path, tree: Tree, found: Findings) -> None:
    """Write the decisions of a review into a tree file, and list what is left and the faults of the result."""
    from inquitree_gym.authoring.applying import apply_decisions, save_tree

    applied = apply_decisions(tree, found)
    if applied.tree != tree:
        save_tree(file, applied.tree)
    for row, reason in applied.left.items():
        out.print(Text(f"row {row + 1} is not written: {reason}"))
    for fault in applied.faults:
        out.print(Text(f"  {fault.severity} {fault.code} {fault}"))
    note(f"{file}: {plural(len(applied.written), 'row')} written, version {applied.tree.version}")
