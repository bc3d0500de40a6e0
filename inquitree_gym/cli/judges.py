"""The verb judge."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from inquitree_gym.analysis.aggregate import in_cell
from inquitree_gym.analysis.judging import (
    JudgingResult,
    judge_agreements,
    judge_conclusions,
    recorded_scores,
    run_conclusions,
)
from inquitree_gym.analysis.logs import Logs, MissingEpisode, find_logs
from inquitree_gym.analysis.projection_judging import judge_projections, stated_projections
from inquitree_gym.cli.output import (
    REPLY_TOKENS,
    BaseUrlOption,
    EffortOption,
    JsonOption,
    LogsArgument,
    MaxCostOption,
    MaxTotalTokensOption,
    ReplyTokensOption,
    note,
    note_missing,
    print_json,
    print_table,
    progress,
    reply_limit,
    split,
)
from inquitree_gym.cli.projections import LogsKindOption, holds_projections
from inquitree_gym.errors import OptionError
from inquitree_gym.judges import AsyncJudge, JudgeOptions, make_judges
from inquitree_gym.judges.projections.registry import ProjectionJudgeOptions, make_projection_judges
from inquitree_gym.judges.registry import KINDS, ChatOptions
from inquitree_gym.llm import Budget, Usage
from inquitree_gym.scoring import EpisodeScore, clustered_mean
from inquitree_gym.scoring.statistics import Agreement

app = typer.Typer()

CONCLUDED, PROJECTED = ("conclusions", "items"), ("projections", "of them")
"""Texts that are judged, and what can be unscored."""
JudgeOption = Annotated[str, typer.Option("--judge", help=f"Judges, comma-separated: {', '.join(KINDS)}.")]
RepeatsOption = Annotated[int, typer.Option(min=1, help="Answers of an llm judge per order of the items.")]
OrdersOption = Annotated[
    int, typer.Option(min=1, max=2, help="Orders of the items that an llm judge is asked in; 2 averages both.")
]
NoVariantsOption = Annotated[
    bool, typer.Option("--no-variants", help="Do not show an llm judge the false variants of the items.")
]
MaxConcurrencyOption = Annotated[
    int, typer.Option("--max-concurrency", min=1, help="Conclusions judged at the same time.")
]
CacheOption = Annotated[Path | None, typer.Option(help="Folder of cached replies; default: the user's cache folder.")]


@app.command("judge")
def judge_runs(  # noqa: PLR0913  (one parameter per flag)
    run_folders: LogsArgument,
    judges: JudgeOption = "local",
    repeats: RepeatsOption = 1,
    orders: OrdersOption = 2,
    no_variants: NoVariantsOption = False,
    base_url: BaseUrlOption = None,
    reasoning_effort: EffortOption = None,
    reply_tokens: ReplyTokensOption = REPLY_TOKENS,
    max_cost: MaxCostOption = None,
    max_total_tokens: MaxTotalTokensOption = None,
    max_concurrency: MaxConcurrencyOption = 8,
    cache: CacheOption = None,
    env: LogsKindOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge the conclusions or projections of runs. Run again to judge only what is missing."""
    budget = Budget(max_cost, max_total_tokens)
    limit = reply_limit(reply_tokens)
    options = JudgeOptions(
        base_url=base_url,
        cache=cache,
        budget=budget,
        max_tokens=limit,
        reasoning_effort=reasoning_effort,
        repeats=repeats,
        orders=orders,
        variants=not no_variants,
    )
    panel = make_judges(split(judges), options)
    found = list(map(find_logs, dict.fromkeys(folder.resolve() for folder in run_folders)))
    if holds_projections(run_folders, env):
        _judge_projections(found, split(judges), options, max_concurrency, as_json)
        return
    damaged: list[MissingEpisode] = [each for logs in found for each in logs.foreign]
    folders = [replace(home, foreign=[]) for logs in found for home in logs.homes]
    done = {str(logs.path): [judge_logs(logs, judge, max_concurrency) for judge in panel] for logs in folders}
    scores = {str(logs.path): recorded_scores(logs, damaged.append) for logs in folders}
    agreed = {str(logs.path): judge_agreements(logs.path) for logs in folders}
    if as_json:
        print_json([_run_as_plain(folder, done[folder], scores[folder], agreed[folder]) for folder in done])
        note_missing(damaged)
        return
    for folder in done:
        print_table(f"Judges of {folder}", _scores_table(scores[folder]))
        if agreed[folder]:
            print_table("Agreement", agreement_table(agreed[folder]))
        for each in done[folder]:
            print_usage(each.judge, each.judged, each.found, each.unscored, each.usage, each.unread)
    note_missing(damaged)


def _judge_projections(
    found: Sequence[Logs], names: Sequence[str], options: JudgeOptions, max_concurrency: int, as_json: bool
) -> None:
    """Judge the projections of logs, and print the results of each judge."""
    shared = {each.name: getattr(options, each.name) for each in fields(ChatOptions)}
    if options != JudgeOptions(**shared):
        raise OptionError("--repeats, --orders and --no-variants are about conclusions; leave them out for projections")
    panel = make_projection_judges(names, ProjectionJudgeOptions(**shared))
    done: list[tuple[str, JudgingResult]] = []
    for logs in (home for each in found for home in each.homes):
        stated = stated_projections(logs)
        for judge in panel:
            with progress(f"{judge.name} judging", len(stated)) as advance:
                work = judge_projections(logs.path, stated, judge, max_concurrency, advance)
                done.append((str(logs.path), asyncio.run(work)))
    if as_json:
        print_json([{"run": folder, **asdict(each)} for folder, each in done])
        return
    for folder, each in done:
        print_usage(each.judge, each.judged, each.found, each.unscored, each.usage, each.unread, PROJECTED)
        note(f"inquitree score {folder} --judge {each.judge} takes the scores from there")


def judge_logs(logs: Logs, judge: AsyncJudge, max_concurrency: int) -> JudgingResult:
    """Judge what is missing of the conclusions in logs, with a progress bar."""
    conclusions = run_conclusions(logs, lambda damaged: None)  # damaged logs are named once, after all judges
    with progress(f"{judge.name} judging", len(conclusions)) as advance:
        return asyncio.run(judge_conclusions(logs.path, conclusions, judge, max_concurrency, advance))


def print_usage(
    judge: str, judged: int, found: int, unscored: int, usage: Usage, unread: int, of: tuple[str, str] = CONCLUDED
) -> None:
    """Print the number of judged texts and the usage to the error stream.

    ``of`` has the names of the texts and of what can be unscored in them.
    """
    before = f"; judged before: {found}" if found else ""
    note(f"{judge}: {of[0]} judged: {judged}{before}; {of[1]} unscored: {unscored}")
    if usage == Usage():
        return
    price = f"${usage.cost or 0.0:.4f}" + (f" and {usage.unpriced} of unknown price" if usage.unpriced else "")
    counts = {
        "from the cache": usage.cached,
        "failed": usage.failed,
        "left out for the budget": usage.skipped,
        "verdicts that could not be read": unread,
    }
    rest = "".join(f"; {what}: {count}" for what, count in counts.items() if count)
    note(f"{judge}: replies paid for: {usage.replies} ({usage.tokens} tokens, {price}){rest}")


def _scores_table(scores: Mapping[str, Sequence[EpisodeScore]]) -> list[list[str]]:
    lines = [["judge", "conclusions", "unscored", "mean S", "Q/|C|"]]
    for label, found in scores.items():
        items = [(score.tree, verdict.score) for score in found for verdict in score.verdicts]
        unscored = sum(value is None for _, value in items)
        means = [clustered_mean(items), clustered_mean((score.tree, score.quality_share) for score in found)]
        lines.append([label, str(len(found)), str(unscored), *(in_cell(each) for each in means)])
    return lines


def agreement_table(found: Mapping[tuple[str, str], Agreement]) -> list[list[str]]:
    """Return the agreement of each pair of judges as lines of cells, the heading first."""
    lines = [["judge", "with", "κ (linear)", "same grade", "mean difference", "items (trees)", "unscored"]]
    for (one, other), each in found.items():
        shares = ("–" if share is None else f"{share:.3f}" for share in (each.same, each.difference))
        lines.append([one, other, str(each), *shares, f"{each.items} ({each.trees})", str(each.unscored)])
    return lines


def _run_as_plain(
    folder: str,
    done: Sequence[JudgingResult],
    scores: Mapping[str, Sequence[EpisodeScore]],
    agreed: Mapping[tuple[str, str], Agreement],
) -> dict[str, Any]:
    return {
        "run": folder,
        "judges": done,
        "scores": {label: [score.as_plain() for score in found] for label, found in scores.items()},
        "agreement": agreements_as_plain(agreed),
    }


def agreements_as_plain(found: Mapping[tuple[str, str], Agreement]) -> list[dict[str, Any]]:
    """Return the agreement of each pair of judges as plain values, for JSON."""
    return [{"judge": one, "with": other, **asdict(each)} for (one, other), each in found.items()]
