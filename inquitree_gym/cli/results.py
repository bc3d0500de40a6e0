"""Verbs about the results of runs: score, report and view."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from inquitree_gym.cli.flags import (
    FORMULAS,
    REPORT,
    SETTINGS,
    flag_names,
    given,
    grid_names,
    kind_parameters,
    kind_values,
    values_by_kind,
    with_grid_flags,
    with_kind_flags,
)
from inquitree_gym.cli.output import (
    CutoffsOption,
    JsonOption,
    LogsArgument,
    ScoredByOption,
    distinct,
    note,
    note_missing,
    out,
    plural,
    print_json,
    print_table,
    progress,
    sigterm_as_interrupt,
)
from inquitree_gym.cluster import map_on
from inquitree_gym.errors import OptionError
from inquitree_gym.kinds import DEFAULT_KIND, kind
from inquitree_gym.protocols import UNREVIEWED
from inquitree_gym.results.comparison import differences_table
from inquitree_gym.results.cutoff import cutoff_table, load_models
from inquitree_gym.results.load import ScoredRun, no_finished_episode, score_logs
from inquitree_gym.results.logs import Logs, find_logs, join_logs
from inquitree_gym.results.pages import write_reports
from inquitree_gym.results.report import Report, ReportOptions, build_reports, replies, shown_of
from inquitree_gym.results.score import KindResults, Score, disambiguate_agents
from inquitree_gym.results.summary import axis_name, summary_table
from inquitree_gym.results.viewer import follow_run, view_run
from inquitree_gym.runs.specs import EpisodeSpec

FOLLOW_SECONDS = 2.0
"""Time between two looks at a run that is followed."""

PLAY_FLAGS = {"env", "world", "log", "port"}
"""Parameters of ``view`` that belong to ``--play``."""

KindOption = Annotated[
    str | None, typer.Option("--env", help="Only the logs of this kind of environment; every kind by default.")
]
ScoredOnOption = Annotated[
    str | None, typer.Option("--ray", help="Score on Ray: local, auto, or the address of a cluster.")
]

app = typer.Typer()


@app.command()
@with_kind_flags(FORMULAS)
def score(
    context: typer.Context,
    paths: LogsArgument,
    judge: ScoredByOption = None,
    env: KindOption = None,
    ray: ScoredOnOption = None,
    as_json: JsonOption = False,
    **_flags: Any,
) -> None:
    """Score every episode from its log."""
    runs = load_scored(paths, judge, env, ray)
    formulas = values_by_kind(_kinds(runs), FORMULAS, context.params, given(context))
    results = {name: kind(name).results.with_formulas(of_kind) for name, of_kind in formulas.items()}
    scores = disambiguate_agents(each for run in runs for each in run.scores)
    if as_json:
        print_json([results[each.kind].measured(each).as_plain() for each in scores])
    for name, of_kind in results.items() if not as_json else ():
        shown = [each for each in scores if each.kind == name]
        title = f"{f'{name}: ' if len(results) > 1 else ''}Episodes of {', '.join(map(str, paths))}"
        judges = ", ".join(dict.fromkeys(each.judged_by for each in shown if each.judged_by))
        print_table(title + _captioned(of_kind, judges), score_rows(shown, of_kind))
    note_missing(each for run in runs for each in run.missing)


def score_rows(scores: Sequence[Score[Any]], results: KindResults[Any, Any]) -> list[list[str]]:
    """Return the rows of the table of episodes of one kind, headings first."""
    measures = [each for each in results.measures if not results.shown or each.name in results.shown]
    grid = list(scores[0].cell)
    rules = ["rules"] if len({each.rules for each in scores}) > 1 else []
    unscored = ["unscored"] if any(each.unscored for each in scores) else []
    task = kind(scores[0].kind).tasks.noun
    rows = [
        [
            task,
            "agent",
            *map(axis_name, grid),
            *rules,
            "seed",
            *(results.heading(each.name) for each in measures),
            *unscored,
        ]
    ]
    for each in scores:
        settings = [*map(str, each.cell.values()), *(getattr(each, name) for name in rules), str(each.seed)]
        values = ((measure.of(each.detail), measure.digits) for measure in measures)
        cells = ("–" if value is None else f"{value:.{digits}f}" for value, digits in values)
        rows.append([each.task, each.agent, *settings, *cells, *(str(each.unscored) for _ in unscored)])
    return rows


def load_scored(
    paths: Sequence[Path], judge: str | None = None, env: str | None = None, ray: str | None = None
) -> list[ScoredRun]:
    """Read and score the logs under each path with a progress bar, of one kind or of all. See `load_run`, `map_on`."""
    logs = [find_logs(path) for path in distinct(paths)]
    if env is not None:
        logs = [each.of_kind(kind(env).name) for each in logs]
    with progress("scoring", sum(len(each.entries) for each in logs)) as advance:
        runs = [_scored(each, lambda spec: advance(spec.task), judge, ray) for each in logs]
    if not any(run.scores for run in runs):
        raise no_finished_episode(runs)
    return runs


def _scored(logs: Logs, step: Callable[[EpisodeSpec], None], judge: str | None, ray: str | None) -> ScoredRun:
    with map_on(ray, logs.path) as mapped:
        return score_logs(logs, step, judge, mapped)


def _kinds(runs: Sequence[ScoredRun]) -> list[str]:
    return list(dict.fromkeys(score.kind for run in runs for score in run.scores))


def _captioned(results: KindResults[Any, Any], judges: str) -> str:
    """Return the formulas and the judges of scores, to end a caption."""
    return (f", {results.formulas}" if results.formulas else "") + (f", judged by {judges}" if judges else "")


def note_unnamed(models: Mapping[str, int]) -> None:
    """Name the models without a known training cutoff, with the number of their episodes."""
    for model, episodes in models.items():
        note(
            f"no training cutoff is known for '{model}', which leaves {plural(episodes, 'episode')} out of before and "
            "after; add it in a file with --models"
        )


@app.command()
@with_kind_flags(FORMULAS, REPORT)
def report(  # noqa: PLR0913  (one parameter per flag)
    context: typer.Context,
    paths: LogsArgument,
    out_path: Annotated[
        Path | None, typer.Option("--out", help="Also write a page, Markdown and CSV: an .html file or a folder.")
    ] = None,
    paired: Annotated[
        bool, typer.Option("--compare", help="Compare two runs, or the agents of one run, paired by task and seed.")
    ] = False,
    agents: Annotated[
        list[str] | None, typer.Option("--agent", help="With --compare, only this agent; may be repeated.")
    ] = None,
    models: CutoffsOption = None,
    judge: ScoredByOption = None,
    env: KindOption = None,
    ray: ScoredOnOption = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Print every table and an explanation of the columns, not the first table alone."),
    ] = False,
    as_json: JsonOption = False,
    **_flags: Any,
) -> None:
    """Print the results of runs. Values are means over tasks, with a 95 % interval from five of them on."""
    _check_comparison(paired, paths, agents or ())
    known, runs = load_models(models), load_scored(paths, judge, env, ray)
    tables = [values_by_kind(_kinds(runs), table, context.params, given(context)) for table in (FORMULAS, REPORT)]
    chosen = {name: tables[0][name] | tables[1][name] for name in _kinds(runs)}
    options = ReportOptions(paired, agents or (), known, chosen)
    reports = build_reports(runs, options)
    if doubles := sum(each.doubles for each in reports):
        note(f"{plural(doubles, 'episode')} given more than once, with equal fingerprints; each counts once")
    for file in write_reports(reports, out_path) if out_path else ():
        note(f"written: {file}")
    if as_json:
        print_json(_plain(reports[0]) if len(reports) == 1 else [_plain(each) for each in reports])
        return
    for each in reports:
        _print_report(each, f"{each.kind}: " if len(reports) > 1 else "", every)
        if each.unreviewed:
            note(f"{UNREVIEWED}: {', '.join(each.unreviewed)}")
    if not every:
        out.print("--all prints the other tables and all intervals, and explains the columns.")
    note_missing(dict.fromkeys(missing for run in runs for missing in run.missing))


@app.command()
@with_kind_flags(SETTINGS)
@with_grid_flags
def view(  # noqa: PLR0913  (one parameter per flag)
    context: typer.Context,
    paths: Annotated[list[Path] | None, typer.Argument(metavar="[LOGS…]", help="Runs, folders of logs, logs.")] = None,
    out_path: Annotated[
        Path | None, typer.Option("--out", help="Page or folder; by default beside the log, or FOLDER/view.")
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", "--tree", help="Only the episodes of this tree or other task.")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only the episodes of this agent.")] = None,
    model: Annotated[str | None, typer.Option(help="Only the episodes with this model.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Only this seed; of --play, its seed.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Rewrite the pages while the run is played; open pages reload.")
    ] = False,
    judge: ScoredByOption = None,
    play: Annotated[
        str | None, typer.Option("--play", metavar="TASK", help="Play an episode of this task in the browser instead.")
    ] = None,
    env: Annotated[str, typer.Option("--env", help="Kind of environment of --play.")] = DEFAULT_KIND,
    world: Annotated[str | None, typer.Option(help="World of --play, or the set that it is drawn from.")] = None,
    log: Annotated[Path | None, typer.Option(help="Log of --play; a torn one is resumed.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port of the page of --play; 0: a free one.")] = 0,
    **flags: Any,
) -> None:
    """Write episodes as HTML pages, turn by turn. A folder gets an index. The pages need no server.

    With --play, serve a page to play an episode yourself.
    """
    grid = grid_names()
    if play is not None:
        _play(context, play)
        return
    if unused := given(context) & (PLAY_FLAGS | kind_parameters(SETTINGS)) - grid:
        raise OptionError(f"{flag_names(unused)} goes with --play TASK; leave it out to view logs")
    if not paths:
        raise OptionError("name a run, a folder of logs or a log to view, or --play a task")
    settings = {"agent": agent, "model": model, "seed": seed}
    chosen = {name: value for name, value in settings.items() if value is not None}
    wanted = _selector(task, chosen, {name: flags.get(name) for name in grid})
    if follow and len(paths) == 1:
        _follow(paths[0], out_path, wanted, judge)
    else:
        _write_pages(paths, out_path, wanted, judge, follow)


def _play(context: typer.Context, task: str) -> None:
    """Serve the page of an episode with the flags of ``view``. Raise `OptionError` for those that only choose logs."""
    from inquitree_gym.cli.runs import play_on_page  # all that plays

    flags, env = context.params, context.params["env"]
    if beside := given(context) - (PLAY_FLAGS | {"play", "seed"} | kind_parameters(SETTINGS)):
        raise OptionError(f"--play plays an episode and views no log; leave out {flag_names(beside)}")
    chosen = given(context)
    if flags["world"] is not None:  # a rule with a flag of its own
        flags = {**flags, "rule": [*(flags["rule"] or ()), f"world={flags['world']}"]}
        chosen = chosen | {"rule"}
    settings = kind_values(env, SETTINGS, flags, chosen)
    play_on_page(task, env, settings, flags["seed"] or 0, flags["log"], flags["port"])


def _write_pages(
    paths: Sequence[Path], out_path: Path | None, wanted: Callable[[EpisodeSpec], bool], judge: str | None, follow: bool
) -> None:
    """Write the pages of the wanted episodes once."""
    if len(paths) > 1 and (follow or out_path is None):
        raise OptionError(
            "--follow takes one run" if follow else "several runs or logs need --out with a folder for the pages"
        )
    logs = join_logs(list(map(find_logs, paths)))
    missing = list(logs.foreign)
    with progress("drawing", sum(wanted(entry.spec) for entry in logs.entries)) as advance:
        step = lambda spec: advance(spec.task)  # noqa: E731
        page = view_run(logs, out_path, wanted=wanted, progress=step, judge=judge, on_damaged=missing.append)
    note_missing(missing)
    note(f"written: {page}")


def _selector(
    task: str | None, settings: Mapping[str, Any], cell: Mapping[str, str | None]
) -> Callable[[EpisodeSpec], bool]:
    """Return the choice of the episodes on a task with these settings, at these values on the grid."""
    name = f"paper{task}" if task and task.isascii() and task.isdigit() else task
    stem = None if name is None else Path(name).stem
    places = {axis: value for axis, value in cell.items() if value is not None}

    def wanted(spec: EpisodeSpec) -> bool:
        at = {axis: str(value) for axis, value in dict(spec.cell).items()}
        return (
            stem in (None, Path(spec.task).stem)
            and all(getattr(spec, field) == value for field, value in settings.items())
            and all(at.get(axis) == value for axis, value in places.items())
        )

    return wanted


def _follow(path: Path, out_path: Path | None, wanted: Callable[[EpisodeSpec], bool], judge: str | None) -> None:
    """Write the pages of a run until it has ended or the verb is interrupted."""
    with (
        sigterm_as_interrupt(),
        suppress(KeyboardInterrupt),
        closing(follow_run(path, out_path, wanted=wanted, judge=judge)) as rounds,
    ):
        for number, page in enumerate(rounds):
            if number == 0:
                note(f"following: {page} (Ctrl-C ends this, not the run)")
            time.sleep(FOLLOW_SECONDS)


def _plain(report: Report[Any]) -> dict[str, Any]:
    """Return a report as plain values."""
    plain = {
        "kind": report.kind,
        "judged_by": report.judged_by,
        "formulas": report.results.formulas,
        "rows": report.table,
        "missing": [missing.name for missing in report.missing],
        "cutoffs": report.cutoffs,
    }
    if report.options.paired:
        plain["differences"] = report.differences
    return plain | {further.key: further.records for further in report.pages.further_results(report)}


def _print_report(report: Report[Any], kind: str, every: bool) -> None:
    """Print the first table of a report and what was asked for, or every table. ``kind`` begins their titles."""
    results = report.results
    by = _captioned(results, report.judged_by)
    tables: Mapping[str, Sequence[str]] = results.tables or {"Results": shown_of(results)}
    for number, (title, measures) in enumerate(tables.items()):
        if number == 0:
            print_table(f"{kind}{title}{by}", summary_table(report.table, measures, results, intervals=every))
        elif every and _has_values(report, measures):
            print_table(f"{kind}{title}", summary_table(report.table, measures, results))
    for replied in replies(report):
        rows = [list(replied.heads), *([each.text for each in line] for line in replied.lines)]
        print_table(f"{kind}{replied.caption}", rows)
    if report.differences:
        first = next(iter(tables.values()))
        compared = [name for name in results.compared or shown_of(results) if every or name in first]
        print_table(f"{kind}Paired differences{by}", differences_table(report.differences, compared, results))
    for further in report.pages.further_results(report):
        if further.rows:
            print_table(f"{kind}{further.title}{by}", further.rows)
    if every and report.cutoffs.splits:
        print_table(f"{kind}Before − after the training cutoff{by}", cutoff_table(report.cutoffs, results))
    if every and results.legend:
        out.print(Text(results.legend))
    note_unnamed(report.cutoffs.unnamed)


def _has_values(report: Report[Any], measures: Sequence[str]) -> bool:
    return any(row.estimates[name].episodes for row in report.table for name in measures if name in row.estimates)


def _check_comparison(paired: bool, paths: Sequence[Path], agents: Sequence[str]) -> None:
    number = len(distinct(paths))
    if paired and number > 2:
        raise OptionError(f"--compare must be given two runs, or one run with several agents, got {number} runs")
    if agents and not paired:
        raise OptionError("--agent chooses what --compare compares; give both")
