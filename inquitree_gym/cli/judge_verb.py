"""The verb judge."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from inquitree_gym.cli.flags import JUDGE, flag_names, given, values_by_kind, with_kind_flags
from inquitree_gym.cli.output import (
    REPLY_TOKENS,
    BaseUrlOption,
    EffortOption,
    JsonOption,
    LogsArgument,
    MaxCostOption,
    MaxTotalTokensOption,
    ReplyTokensOption,
    distinct,
    note,
    note_missing,
    print_json,
    print_table,
    progress,
    reply_limit,
    split,
)
from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.judging.judgement import LOCAL, AsyncJudge, judge_label
from inquitree_gym.judging.registry import ChatOptions, check_name, has_judge, judge_forms, make_judges
from inquitree_gym.judging.stored import JUDGEMENTS
from inquitree_gym.kinds import DEFAULT_KIND, kind
from inquitree_gym.llm import Budget, Usage
from inquitree_gym.results.logs import DAMAGED, Logs, Missing, find_logs
from inquitree_gym.results.offline_judging import JudgingResult, StatedText, judge_texts, recorded_scores, stated_texts
from inquitree_gym.results.score import Score
from inquitree_gym.results.statistics import clustered_mean
from inquitree_gym.results.summary import in_cell

app = typer.Typer()
_CHAT_FLAGS = {"base_url", "reasoning_effort", "reply_tokens", "max_cost", "max_total_tokens", "cache"}
"""Parameters of the flags that concern only judges that ask a chat model."""

JudgeOption = Annotated[
    str | None,
    typer.Option("--judge", help="Judges, comma-separated: nli:MODEL, llm:MODEL or others; a kind's own by default."),
]
MaxConcurrencyOption = Annotated[
    int, typer.Option("--max-concurrency", min=1, help="Conclusions judged at the same time.")
]
EnvOption = Annotated[str | None, typer.Option("--env", help="Kind of environment; all that the logs have by default.")]
CacheOption = Annotated[Path | None, typer.Option(help="Folder of cached replies; default: the user's cache folder.")]


@app.command("judge")
@with_kind_flags(JUDGE)
def judge_runs(  # noqa: PLR0913  (one parameter per flag)
    context: typer.Context,
    run_folders: LogsArgument,
    judges: JudgeOption = None,
    base_url: BaseUrlOption = None,
    reasoning_effort: EffortOption = None,
    reply_tokens: ReplyTokensOption = REPLY_TOKENS,
    max_cost: MaxCostOption = None,
    max_total_tokens: MaxTotalTokensOption = None,
    max_concurrency: MaxConcurrencyOption = 8,
    cache: CacheOption = None,
    env: EnvOption = None,
    as_json: JsonOption = False,
    **_flags: Any,
) -> None:
    """Judge the texts of runs, such as conclusions or projections. Run again to judge only what is missing."""
    shared = ChatOptions(
        base_url=base_url,
        cache=cache,
        budget=Budget(max_cost, max_total_tokens),
        max_tokens=reply_limit(reply_tokens),
        reasoning_effort=reasoning_effort,
    )
    found = list(map(find_logs, distinct(run_folders)))
    names = [env] if env else sorted({name for logs in found for name in logs.kinds}) or [DEFAULT_KIND]
    own = values_by_kind(names, JUDGE, context.params, given(context))
    judged_by = split(judges or LOCAL)
    if judges is None and (without := [name for name in names if not has_judge(LOCAL, name)]):
        noun, forms = kind(without[0]).judging.noun, ", ".join(judge_forms(without[0]))
        raise OptionError(f"no judge is named for the {noun}s; name one, such as --judge llm:MODEL; known: {forms}")
    asked = {name: _judges(judged_by, shared, own[name], name, names) for name in names}
    for name in names:
        _check_used(judged_by, dict.fromkeys(given(context) & _CHAT_FLAGS) | own[name], name)
    damaged: list[Missing] = [foreign for logs in found for foreign in logs.foreign]
    stated = list(_stated(found, names, damaged))
    if not stated:
        note_missing(dict.fromkeys(damaged))
        raise LogError(f"'{run_folders[0]}' holds no {kind(names[0]).judging.noun} to judge yet; run its study first")
    reports = [_judge_folder(each, asked[each.kind], max_concurrency, damaged) for each in stated]
    if as_json:
        print_json([report.as_plain() for report in reports])
    else:
        kinds = {report.kind for report in reports}
        for report in reports:
            _print_report(report, f"{report.kind}: " if len(kinds) > 1 else "")
    note_missing(dict.fromkeys(damaged))


class _Stated(NamedTuple):
    """Texts of one kind in one folder."""

    logs: Logs
    kind: str
    texts: Sequence[StatedText]


def _stated(found: Sequence[Logs], names: Sequence[str], damaged: list[Missing]) -> Iterator[_Stated]:
    """Yield the texts of each kind in each folder that has some."""
    for home in (replace(home, foreign=[]) for logs in found for home in logs.homes):
        for name in names:
            with suppress(LogError):
                yield _Stated(home, name, stated_texts(home, name, damaged.append))


@dataclass(frozen=True, slots=True)
class _FolderReport:
    """Judges of one kind of text in one folder."""

    folder: str
    kind: str
    judges: list[JudgingResult]
    scores: Mapping[str, Sequence[Score[Any]]]
    """Scores by name and version of the judge."""

    def as_plain(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "run": self.folder,
            "kind": self.kind,
            "judges": self.judges,
            "scores": {label: [score.as_plain() for score in scores] for label, scores in self.scores.items()},
        }


def _judges(
    names: Sequence[str], shared: ChatOptions, own: Mapping[str, Any], task_kind: str, kinds: Sequence[str]
) -> list[AsyncJudge[Any]]:
    """Return the judges that a kind of environment has among the names.

    Raises:
        OptionError: no kind has a judge of a name.
    """
    common = {field.name: getattr(shared, field.name) for field in dataclass_fields(ChatOptions)}
    known = [name for name in names if has_judge(name, task_kind)]
    for name in names:
        if not any(has_judge(name, other) for other in kinds):
            check_name(name, task_kind)
    return make_judges(known, kind(task_kind).judging.options(**common, **own), task_kind)


def _check_used(judges: Sequence[str], flags: Mapping[str, Any], task_kind: str) -> None:
    """Check that each of the given flags is one of a judge that asks a model. Raise `OptionError` if none uses it."""
    presets = kind(task_kind).judging.presets
    asking = [prefix for prefix in (name.partition(":")[0] for name in judges) if prefix not in (LOCAL, "nli")]
    for name, value in flags.items():
        if all(name in presets.get(prefix, {}) for prefix in asking):
            flag = flag_names([f"no_{name}" if value is False else name])
            raise OptionError(
                f"{flag} must come with a judge that asks a chat model and leaves it open, got --judge "
                f"{','.join(judges)}. Leave out {flag}, or name such a judge: --judge llm:MODEL."
            )


def _judge_folder(
    stated: _Stated, asked: Sequence[AsyncJudge[Any]], max_concurrency: int, damaged: list[Missing]
) -> _FolderReport:
    logs, task_kind, texts = stated
    done = [judge_stated(logs.path, texts, judge, max_concurrency, task_kind) for judge in asked]
    damaged += [Missing(JUDGEMENTS, DAMAGED, fault, task_kind) for each in done for fault in each.faults]
    return _FolderReport(
        folder=str(logs.path),
        kind=task_kind,
        judges=done,
        scores={
            judge_label(each.judge, each.version): recorded_scores(logs, each.judge, task_kind, damaged.append)
            for each in done
        },
    )


def _print_report(report: _FolderReport, kind: str) -> None:
    """Print the tables of a report. ``kind`` begins their titles."""
    if any(report.scores.values()):
        print_table(f"{kind}Judges of {report.folder}", _scores_table(report))
    for done in report.judges:
        print_usage(done, report.kind)


def judge_stated(
    folder: Path, stated: Sequence[StatedText], judge: AsyncJudge[Any], max_concurrency: int, task_kind: str
) -> JudgingResult:
    """Judge the texts that lack a judgement, with a progress bar. See `judge_texts`."""
    with progress(f"{judge.name} judging", len(stated)) as advance:
        return asyncio.run(judge_texts(folder, stated, judge, max_concurrency, advance, task_kind))


def print_usage(done: JudgingResult, task_kind: str = DEFAULT_KIND) -> None:
    """Print the number of judged texts and the usage to the error stream."""
    judging, usage = kind(task_kind).judging, done.usage
    before = f"; judged before: {done.found}" if done.found else ""
    note(f"{done.judge}: {judging.noun}s judged: {done.judged}{before}; {judging.part}s unscored: {done.unscored}")
    if usage == Usage():
        return
    price = f"${usage.cost or 0.0:.4f}" + (f" and {usage.unpriced} of unknown price" if usage.unpriced else "")
    counts = {
        "from the cache": usage.cached,
        "failed": usage.failed,
        "left out for the budget": usage.skipped,
        "grades that could not be read": done.unread,
    }
    rest = "".join(f"; {what}: {count}" for what, count in counts.items() if count)
    note(f"{done.judge}: replies paid for: {usage.replies} ({usage.tokens} tokens, {price}){rest}")


def _scores_table(report: _FolderReport) -> list[list[str]]:
    """Return the means of the measures that a judge decides on, by judge, the heading first."""
    results = kind(report.kind).results
    measures = [measure for measure in dict.fromkeys((*results.measures, *results.split)) if measure.judged]
    lines = [["judge", "episodes", "unscored", *(results.heading(measure.name) for measure in measures)]]
    for label, scores in report.scores.items():
        means = (clustered_mean((score.task, measure.of(score.detail)) for score in scores) for measure in measures)
        lines.append([label, str(len(scores)), str(sum(score.unscored for score in scores)), *map(in_cell, means)])
    return lines
