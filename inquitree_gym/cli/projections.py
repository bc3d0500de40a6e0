"""Results of projections, for the verbs score and report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.text import Text

from inquitree_gym.analysis.cutoff import cutoff_table
from inquitree_gym.analysis.cutoff_models import ModelDates
from inquitree_gym.analysis.doubles import without_double_projections
from inquitree_gym.analysis.logs import find_logs
from inquitree_gym.analysis.projection_summary import (
    PAPER,
    Metric,
    PairedProjections,
    anchoring,
    compare_projections,
    levels_of,
    paired_projections_table,
    projection_table,
    split_projections,
    summarise_projections,
)
from inquitree_gym.analysis.projections import OF_PROJECTIONS, ProjectionRun, score_projection_logs
from inquitree_gym.cli.loading import load_each, note_doubles, note_unnamed
from inquitree_gym.cli.output import note, note_missing, out, print_json, print_table
from inquitree_gym.errors import OptionError
from inquitree_gym.judges.projections.alignment import Area, Variant
from inquitree_gym.log import TaskKind
from inquitree_gym.report.projections import write_projection_report
from inquitree_gym.report.tables import cell
from inquitree_gym.scoring.episode import told_apart
from inquitree_gym.scoring.projection import ProjectionEpisodeScore

LogsKindOption = Annotated[
    TaskKind | None,
    typer.Option("--env", help="Kind of environment, if the logs hold both; the logs' kind by default."),
]
VariantOption = Annotated[
    Variant, typer.Option("--variant", help="Formula of F1: as in the paper, or from paired claims alone.")
]
AreaOption = Annotated[Area, typer.Option("--auc", help="Aggregate of F1 over the levels: their area or their mean.")]
ExampleOption = Annotated[
    str | None, typer.Option("--example", help="Paper whose projections are shown in full; the first one by default.")
]
PROJECTION_LEGEND = (
    "n: episodes (papers). Means are over papers; [low, high] is the 95 % t interval, given from five papers on.\n"
    "all, mean of domains: each domain has equal weight, as in the paper; all, pooled: each paper has equal weight.\n"
    "unscored: projections that the judge could not score; the means leave them out. A coin that knows the variables\n"
    "has an expected F1 of 0.5."
)


class ProjectionOptions(NamedTuple):
    """Options of the report of projections."""

    metric: Metric = PAPER
    paired: bool = False
    agents: Sequence[str] = ()
    example: str | None = None


def holds_projections(paths: Sequence[Path], env: TaskKind | None) -> bool:
    """Return whether logs are to be read as projections.

    Raises:
        OptionError: the logs are of both kinds, and no kind was chosen.
    """
    if env is not None:
        return env == "projection"
    kinds = {kind for path in paths for kind in find_logs(path).kinds}
    if len(kinds) > 1:
        raise OptionError(
            "these logs are of inquiries and of projections; choose with --env inquiry or --env projection"
        )
    return kinds == {"projection"}


def refuse_options(options: ProjectionOptions) -> None:
    """Check that the options that only projections have are at their defaults.

    Raises:
        OptionError: one of them is not.
    """
    if options.metric != PAPER or options.example is not None:
        raise OptionError("--variant, --auc and --example are for projections; leave them out for logs of inquiries")


def refuse_closed_book(folder: Path | None) -> None:
    """Check that no closed-book conclusions are given for projections.

    Raises:
        OptionError: a folder of them is given.
    """
    if folder is not None:
        raise OptionError("--closed-book is about conclusions, and these logs are of projections; leave it out")


def load_projected(paths: Sequence[Path], judge: str | None) -> list[ProjectionRun]:
    """Read and score the logs under each path with a progress bar; see `load_projections` for the errors."""
    return load_each(paths, lambda logs, after: score_projection_logs(logs, after, judge), OF_PROJECTIONS)


def print_projection_scores(paths: Sequence[Path], judge: str | None, metric: Metric, as_json: bool) -> None:
    """Print the scores of every episode of projections."""
    runs = load_projected(paths, judge)
    scores = told_apart([each for run in runs for each in run.scores])
    if as_json:
        print_json([each.as_plain() for each in scores])
    else:
        levels = levels_of(scores)
        rows = [["paper", "agent", "rules", "seed", *levels, "AUC", "unscored"]]
        for each in scores:
            values = (*(each.f1_at(level, metric.variant) for level in levels), metric.area(each), each.unscored)
            rows.append([each.task, each.agent, each.rules, str(each.seed), *(cell(value).text for value in values)])
        print_table(f"Projections of {', '.join(map(str, paths))}{_formulas(metric)}, {_judged(scores)}", rows)
    note_missing([each for run in runs for each in run.missing])


def report_projections(
    paths: Sequence[Path], out_path: Path | None, judge: str | None, options: ProjectionOptions,
    models: Sequence[ModelDates], as_json: bool,
) -> None:  # fmt: skip
    """Print the results of runs of projections, and write them as a page."""
    runs = note_doubles(*without_double_projections(load_projected(paths, judge)))
    metric, scores = options.metric, [each for run in runs for each in run.scores]
    differences = _differences(scores, options) if options.paired else []
    table, cutoffs = summarise_projections(scores, metric), split_projections(scores, models, metric)
    if out_path:
        files = write_projection_report(
            runs, out_path, metric=metric, differences=differences, models=models, example=options.example
        )
        for file in files:
            note(f"written: {file}")
    memory, missing = anchoring(scores, metric), [each for run in runs for each in run.missing]
    if as_json:
        print_json({
            "judged_by": sorted({each.judged_by for each in scores}), **metric._asdict(), "rows": table,
            "missing": [each.name for each in missing], "differences": differences, "anchoring": memory,
            "cutoffs": cutoffs,
        })  # fmt: skip
        return
    by = f"{_formulas(metric)}, {_judged(scores)}"
    print_table(f"F1 by level{by}", projection_table(table, levels_of(scores)))
    for title, found in (("Paired differences", differences), ("Anchoring: conversation − none", memory)):
        if found:
            print_table(f"{title}{by}", paired_projections_table(found))
    if cutoffs.splits:
        print_table(f"Before − after the training cutoff{by}", cutoff_table(cutoffs, "papers"))
    out.print(Text(PROJECTION_LEGEND))
    note_missing(missing)
    note_unnamed(cutoffs.unnamed)


def _differences(scores: Sequence[ProjectionEpisodeScore], options: ProjectionOptions) -> list[PairedProjections]:
    """Return the paired differences of the agents, in the order in which ``--agent`` names them."""
    apart, agents = told_apart(scores), options.agents
    known = dict.fromkeys(score.agent for score in apart)
    if strange := [agent for agent in agents if agent not in known]:
        raise OptionError(f"no agent is called '{strange[0]}' here; there are {', '.join(map(repr, known))}")
    chosen = [score for score in apart if not agents or score.agent in agents]
    ordered = sorted(chosen, key=lambda score: agents.index(score.agent) if agents else 0)
    return compare_projections(ordered, options.metric)


def _formulas(metric: Metric) -> str:
    return f", {metric.words}" if metric.words else ""


def _judged(scores: Sequence[ProjectionEpisodeScore]) -> str:
    return f"judged by {', '.join(dict.fromkeys(each.judged_by for each in scores))}"
