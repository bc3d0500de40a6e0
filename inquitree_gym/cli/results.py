"""The verb score, and loading and options that the verbs about results share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from inquitree_gym.cli.output import (
    JsonOption,
    LogsArgument,
    ScoredByOption,
    note,
    note_missing,
    print_json,
    print_table,
    progress,
)
from inquitree_gym.kinds import kind
from inquitree_gym.results.load import ScoredRun, no_finished_episode, score_logs
from inquitree_gym.results.logs import find_logs
from inquitree_gym.results.score import KindResults, Score, disambiguate_agents
from inquitree_gym.results.summary import axis_name

KindOption = Annotated[
    str | None, typer.Option("--env", help="Only the logs of this kind of environment; every kind by default.")
]
VariantOption = Annotated[
    str | None, typer.Option("--variant", help="Formula of F1: paper, or strict, from paired claims alone.")
]
AreaOption = Annotated[
    str | None, typer.Option("--auc", help="Aggregate of F1 over the levels: trapezoid, their area, or their mean.")
]
ExampleOption = Annotated[
    str | None, typer.Option("--example", help="Paper whose texts are shown in full; the first one by default.")
]

app = typer.Typer()


@app.command()
def score(
    paths: LogsArgument,
    judge: ScoredByOption = None,
    env: KindOption = None,
    variant: VariantOption = None,
    auc: AreaOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score every episode from its log."""
    runs = load_scored(paths, judge, env)
    results = _results(runs, variant, auc)
    scores = disambiguate_agents(each for run in runs for each in run.scores)
    if as_json:
        print_json([each.as_plain() for each in scores])
    for name, of_kind in results.items() if not as_json else ():
        shown = [each for each in scores if each.kind == name]
        title = f"{_title(name, results, 'Episodes')} of {', '.join(map(str, paths))}"
        print_table(f"{title}{_captioned(of_kind, shown)}", score_rows(shown, of_kind))
    note_missing(each for run in runs for each in run.missing)


def score_rows(scores: Sequence[Score[Any]], results: KindResults[Any, Any]) -> list[list[str]]:
    """Return the rows of the table of episodes of one kind, headings first."""
    measures = [each for each in results.measures if not results.shown or each.name in results.shown]
    grid = list(scores[0].cell)
    rules = ["rules"] if len({each.rules for each in scores}) > 1 else []
    unscored = ["unscored"] if any(each.unscored for each in scores) else []
    task = kind(scores[0].kind).tasks.noun
    rows = [[task, "agent", *map(axis_name, grid), *rules, "seed", *(each.name for each in measures), *unscored]]
    for each in scores:
        settings = [*map(str, each.cell.values()), *(getattr(each, name) for name in rules), str(each.seed)]
        values = ((measure.of(each.detail), measure.digits) for measure in measures)
        cells = ("–" if value is None else f"{value:.{digits}f}" for value, digits in values)
        rows.append([each.task, each.agent, *settings, *cells, *(str(each.unscored) for _ in unscored)])
    return rows


def load_scored(paths: Sequence[Path], judge: str | None = None, env: str | None = None) -> list[ScoredRun]:
    """Read and score the logs under each path with a progress bar, of one kind or of all. See `load_run`.

    Raises:
        LogError: there is no log, or no finished episode.
    """
    logs = [find_logs(path) for path in dict.fromkeys(path.resolve() for path in paths)]
    if env is not None:
        logs = [each.of_kind(kind(env).name) for each in logs]
    with progress("scoring", sum(len(each.entries) for each in logs)) as advance:
        runs = [score_logs(each, lambda spec: advance(spec.task), judge) for each in logs]
    if not any(run.scores for run in runs):
        raise no_finished_episode(runs)
    return runs


def _results(runs: Sequence[ScoredRun], variant: str | None, auc: str | None) -> dict[str, KindResults[Any, Any]]:
    """Return the results of every kind in the runs, with the formulas that are chosen."""
    formulas = formulas_of(variant, auc)
    names = dict.fromkeys(score.kind for run in runs for score in run.scores)
    return {name: kind(name).results.with_formulas(formulas) for name in names}


def formulas_of(variant: str | None, auc: str | None) -> dict[str, str]:
    """Return the formulas that are chosen, by name."""
    return {name: value for name, value in {"variant": variant, "auc": auc}.items() if value is not None}


def _title(name: str, kinds: Mapping[str, object], title: str) -> str:
    """Return a title that names the kind where there are several."""
    return f"{name}: {title}" if len(kinds) > 1 else title


def _captioned(results: KindResults[Any, Any], scores: Iterable[Score[Any]]) -> str:
    """Return the formulas and the judges of scores, to end a caption."""
    judges = _judges(scores)
    return (f", {results.formulas}" if results.formulas else "") + (f", judged by {judges}" if judges else "")


def _judges(scores: Iterable[Score[Any]]) -> str:
    return ", ".join(dict.fromkeys(each.judged_by for each in scores if each.judged_by))


def note_unnamed(models: Mapping[str, int]) -> None:
    """Name the models without a known training cutoff, with the number of their episodes."""
    for model, episodes in models.items():
        note(
            f"no training cutoff is known for '{model}', so its {episodes} episodes are left out of before and after; "
            "add it in a file with --models"
        )
