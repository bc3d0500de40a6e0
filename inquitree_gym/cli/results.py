"""Verbs about the results of runs: score, report, view, reread."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from inquitree_gym.analysis.aggregate import (
    CHANGE,
    MEASURES,
    NORMALISED,
    SPLIT,
    PairedDifference,
    Player,
    SettingSummary,
    belief_table,
    compare,
    compare_agents,
    differences_table,
    summarise,
    summary_table,
)
from inquitree_gym.analysis.cutoff import CutoffAnalysis, cutoff_table, split_by_cutoff
from inquitree_gym.analysis.cutoff_models import ModelDates, load_models
from inquitree_gym.analysis.doubles import without_doubles
from inquitree_gym.analysis.load import ScoredRun, score_logs
from inquitree_gym.analysis.logs import find_logs, join_logs
from inquitree_gym.analysis.memorisation import Memorisation, compare_with_loop, grade_closed_book, memory_table
from inquitree_gym.analysis.projection_summary import PAPER, Metric
from inquitree_gym.cli.loading import load_each, note_doubles, note_unnamed
from inquitree_gym.cli.output import (
    CutoffsOption,
    JsonOption,
    LogsArgument,
    ScoredByOption,
    note,
    note_missing,
    out,
    print_json,
    print_table,
    progress,
    sigterm_as_interrupt,
)
from inquitree_gym.cli.projections import (
    AreaOption,
    ExampleOption,
    LogsKindOption,
    ProjectionOptions,
    VariantOption,
    holds_projections,
    print_projection_scores,
    refuse_closed_book,
    refuse_options,
    report_projections,
)
from inquitree_gym.cli.rereading import reread
from inquitree_gym.errors import OptionError
from inquitree_gym.judges.registry import LOCAL
from inquitree_gym.report import follow_run, view_run, write_report
from inquitree_gym.report.sections import scores_by_judge
from inquitree_gym.runner.specs import EpisodeSpec
from inquitree_gym.scoring import EpisodeScore
from inquitree_gym.scoring.episode import told_apart
from inquitree_gym.scoring.vigilance import D_PRIME

SCORE_MEASURES = ("coverage", "unaided", "coverage at 3n", "Q", "Q/|C|")
REPORT_TABLES = {
    "Results": ("coverage", "unaided", "Q", "Q/|C|", NORMALISED),
    "Steps": ("coverage at 3n", "turns L", "stretch", "hints"),
    "Vigilance": ("redo", CHANGE, "hits", "false alarms", D_PRIME),
    "Vigilance by kind of showing": tuple(SPLIT)[:4],
}
REPORT_LEGEND = (
    "n: episodes (trees). Means over trees; [low, high] is the 95 % interval, t over tree means, from five trees on.\n"
    "n = … below a mean: the trees with a value, if fewer than in the row; its neighbours rest on other trees.\n"
    "unaided: subtopics entered on a decision that needed no hint. turns L: up to the decision to conclude.\n"
    "normalised: Q/|C| from the floor (random-menu, 0) to the oracle (1) of the same trees and level, where both ran.\n"
    "stretch: position of L between its bounds, 0 at 3n, 1 at n(2H+3); below 0 where an agent concludes early.\n"
    "hits, false alarms: fake, true results redone.\n"
    "redo − level 0: paired by tree and seed. d′: sensitivity, how well fakes are told from true results.\n"
    "first: first results of a study. can be told: fakes that reasoning can tell, and true results, until the true\n"
    "result of the study was seen. Brier, AUC: of the stated probabilities that results are fake; stated: their number."
)
FOLLOW_SECONDS = 2.0
"""Time between two looks at a run that is followed."""

app = typer.Typer()


@app.command()
def score(
    paths: LogsArgument,
    judge: ScoredByOption = None,
    env: LogsKindOption = None,
    variant: VariantOption = PAPER.variant,
    auc: AreaOption = PAPER.auc,
    as_json: JsonOption = False,
) -> None:
    """Score every episode from its log."""
    metric = Metric(variant, auc)
    if holds_projections(paths, env):
        print_projection_scores(paths, judge, metric, as_json)
        return
    refuse_options(ProjectionOptions(metric))
    runs = load_scored(paths, judge or LOCAL)
    scores = told_apart([each for run in runs for each in run.scores])
    missing = [each for run in runs for each in run.missing]
    if as_json:
        print_json([each.as_plain() for each in scores])
        note_missing(missing)
        return
    rows = [["tree", "agent", "fake level", "seed", *SCORE_MEASURES]]
    for each in scores:
        values = (MEASURES[name](each) for name in SCORE_MEASURES)
        cells = ("–" if value is None else f"{value:.3f}" for value in values)
        rows.append([each.tree, each.agent, str(each.fake_level), str(each.seed), *cells])
    print_table(f"Episodes of {', '.join(map(str, paths))}, judged by {judged_by(scores)}", rows)
    note_missing(missing)


@app.command()
def report(  # noqa: PLR0913  (one parameter per flag)
    paths: LogsArgument,
    out_path: Annotated[
        Path | None, typer.Option("--out", help="Also write a page, Markdown and CSV: an .html file or a folder.")
    ] = None,
    paired: Annotated[
        bool, typer.Option("--compare", help="Compare two runs, or the agents of one run, paired by tree and seed.")
    ] = False,
    agents: Annotated[
        list[str] | None, typer.Option("--agent", help="With --compare, only this agent; may be repeated.")
    ] = None,
    models: CutoffsOption = None,
    closed_book: Annotated[
        Path | None, typer.Option(help="Folder of inquitree closed-book, to compare with what models knew before.")
    ] = None,
    judge: ScoredByOption = None,
    env: LogsKindOption = None,
    variant: VariantOption = PAPER.variant,
    auc: AreaOption = PAPER.auc,
    example: ExampleOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the results of runs. Values are means over trees or papers, with a 95 % interval from five of them on."""
    known_models = load_models(models)
    of_projections = ProjectionOptions(Metric(variant, auc), paired, agents or (), example)
    if holds_projections(paths, env):
        refuse_closed_book(closed_book)
        report_projections(paths, out_path, judge, of_projections, known_models, as_json)
        return
    refuse_options(of_projections)
    _check_comparison(paired, paths, agents or ())
    runs = load_scored(paths, judge or LOCAL)
    differences, runs = _differences(runs, agents or ()) if paired else [], note_doubles(*without_doubles(runs))
    scores = [score for run in runs for score in run.scores]
    table, cutoffs = summarise(scores), split_by_cutoff(scores, known_models)
    memories = None if closed_book is None else _memories(closed_book, runs, known_models)
    missing = [episode for run in runs for episode in run.missing]
    for file in write_report(runs, out_path, differences, cutoffs, memories) if out_path else ():
        note(f"written: {file}")
    if as_json:
        print_json(
            {"judged_by": judged_by(scores), "rows": table, "missing": [each.name for each in missing]}
            | {"cutoffs": cutoffs}
            | ({} if memories is None else {"closed_book": memories})
            | ({"differences": differences} if paired else {})
        )
        return
    _print_results(table, differences, cutoffs, memories, f", judged by {judged_by(scores)}")
    out.print(Text(REPORT_LEGEND))
    note_missing(missing)
    note_unnamed(cutoffs.unnamed)


@app.command()
def view(  # noqa: PLR0913  (one parameter per flag)
    paths: LogsArgument,
    out_path: Annotated[
        Path | None, typer.Option("--out", help="Page or folder; by default beside the log, or FOLDER/view.")
    ] = None,
    tree: Annotated[str | None, typer.Option(help="Only the episodes of this tree.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only the episodes of this agent.")] = None,
    model: Annotated[str | None, typer.Option(help="Only the episodes with this model.")] = None,
    fake_level: Annotated[int | None, typer.Option(help="Only the episodes at this fake level.")] = None,
    seed: Annotated[int | None, typer.Option(help="Only the episodes with this seed.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Rewrite the pages while the run is played; open pages reload.")
    ] = False,
    judge: ScoredByOption = None,
) -> None:
    """Write episodes as HTML pages, turn by turn. A folder gets an index; the pages need no server."""
    given = {"agent": agent, "model": model, "fake_level": fake_level, "seed": seed}
    chosen = {name: value for name, value in given.items() if value is not None}
    stem = None if tree is None else Path(f"paper{tree}" if tree.isascii() and tree.isdigit() else tree).stem

    def wanted(spec: EpisodeSpec) -> bool:
        return stem in (None, Path(spec.tree).stem) and all(getattr(spec, k) == v for k, v in chosen.items())

    if len(paths) > 1 and (follow or out_path is None):
        raise OptionError(
            "--follow takes one run" if follow else "several runs or logs need --out with a folder for the pages"
        )
    if follow:
        with (
            sigterm_as_interrupt(),
            suppress(KeyboardInterrupt),
            closing(follow_run(paths[0], out_path, wanted=wanted, judge=judge)) as rounds,
        ):
            for number, page in enumerate(rounds):
                if not number:
                    note(f"following: {page} (Ctrl-C ends this, not the run)")
                time.sleep(FOLLOW_SECONDS)
        return
    logs = join_logs(list(map(find_logs, paths)))
    with progress("drawing", sum(wanted(entry.spec) for entry in logs.entries)) as advance:
        page = view_run(logs, out_path, wanted=wanted, progress=lambda spec: advance(spec.tree), judge=judge)
    note_missing(logs.foreign)
    note(f"written: {page}")


app.command()(reread)


def load_scored(paths: Sequence[Path], judge: str = LOCAL) -> list[ScoredRun]:
    """Read and score the logs under each path with a progress bar; see `load_run` for the errors."""
    return load_each(paths, lambda logs, after: score_logs(logs, after, judge))


def _print_results(
    table: Sequence[SettingSummary],
    differences: Sequence[PairedDifference],
    cutoffs: CutoffAnalysis[Player],
    memories: Memorisation | None,
    by: str,
) -> None:
    """Print the tables of a report; ``by`` names the judge in captions."""
    for title, measures in REPORT_TABLES.items():
        print_table(title + by * (title == "Results"), summary_table(table, measures))
    if any(row.stated for row in table):
        print_table("Stated beliefs", belief_table(table))
    if differences:
        print_table(f"Paired differences{by}", differences_table(differences))
    if cutoffs.splits:
        print_table(f"Before − after the training cutoff{by}", cutoff_table(cutoffs))
    if memories is not None:
        print_table("Closed book: mean S from the topic alone", memory_table(memories.models))


def _check_comparison(paired: bool, paths: Sequence[Path], agents: Sequence[str]) -> None:
    given = len({path.resolve() for path in paths})
    if paired and given > 2:
        raise OptionError(f"--compare takes two runs, or one run with several agents, not {given} runs")
    if agents and not paired:
        raise OptionError("--agent chooses what --compare compares; give both")


def _differences(runs: Sequence[ScoredRun], agents: Sequence[str]) -> list[PairedDifference]:
    """Compare two runs, or the agents of one run in the order in which they are named, if they are."""
    apart = [told_apart(run.scores) for run in runs]
    chosen = [[score for score in scores if not agents or score.agent in agents] for scores in apart]
    known = dict.fromkeys(score.agent for scores in apart for score in scores)
    if strange := [agent for agent in agents if agent not in known]:
        raise OptionError(f"no agent is called '{strange[0]}' here; there are {', '.join(map(repr, known))}")
    if len(chosen) == 2:
        return compare(*chosen)
    return compare_agents(sorted(chosen[0], key=lambda score: agents.index(score.agent) if agents else 0))


def judged_by(scores: Sequence[EpisodeScore]) -> str:
    """Return the name and version of the judge of scores."""
    return ", ".join(dict.fromkeys(score.judged_by for score in scores))


def _memories(folder: Path, runs: Sequence[ScoredRun], models: Sequence[ModelDates]) -> Memorisation:
    """Compare the closed-book conclusions of a folder with runs, on the trees of the runs."""
    trees = {name: tree for run in runs for name, tree in run.trees.items()}
    return compare_with_loop(grade_closed_book(folder, trees), scores_by_judge(runs), models)
