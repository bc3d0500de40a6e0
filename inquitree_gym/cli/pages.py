"""Verbs about what came out: report, view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from inquitree_gym.analysis.aggregate import CHANGE, NORMALISED, as_plain, summarise, summary_table
from inquitree_gym.analysis.compare import compare, differences_table
from inquitree_gym.analysis.cutoff import cutoff_table, split_by_cutoff
from inquitree_gym.analysis.cutoff_models import ModelDates, load_models
from inquitree_gym.analysis.load import MissingEpisode, ScoredRun, load_run
from inquitree_gym.analysis.memorisation import Memorisation, compare_with_loop, grade_closed_book, memory_table
from inquitree_gym.cli.output import as_table, err, out, print_json, progress
from inquitree_gym.cli.trees import JsonOption
from inquitree_gym.errors import OptionError
from inquitree_gym.report import view_log, view_run, write_report
from inquitree_gym.report.sections import scores_by_judge
from inquitree_gym.runner.folder import read_manifest
from inquitree_gym.runner.study import EpisodeSpec
from inquitree_gym.scoring.vigilance import D_PRIME
from inquitree_gym.trees import load_tree

REPORT_TABLES = {
    "Results": ("coverage", "unaided", "Q", "Q/|C|", NORMALISED),
    "Steps": ("coverage at 3n", "turns L", "stretch", "hints"),
    "Vigilance": ("redo", CHANGE, "hits", "false alarms", D_PRIME),
}
NAMED = 10
"""Missing episodes that are named; the others are counted."""
LEGEND = (
    "n: episodes (trees). Means over trees; [low, high] is the 95 % interval, t over tree means, from five trees on.\n"
    "unaided: subtopics entered on a decision that needed no hint. turns L: up to the decision to conclude.\n"
    "normalised: Q/|C| from the floor (random-menu, 0) to the oracle (1) of the same trees and level, where both ran.\n"
    "stretch: where L lies in its bounds, 0 at 3n, 1 at n(2H+3). hits, false alarms: fake, true results redone.\n"
    "redo − level 0: paired by tree and seed. d′: how well fakes are told from true results."
)

app = typer.Typer()

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]


@app.command()
def report(
    run_folders: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs.")],
    out_path: Annotated[
        Path | None,
        typer.Option("--out", help="Write a page here too, with Markdown and CSV beside it: .html or folder."),
    ] = None,
    paired: Annotated[
        bool, typer.Option("--compare", help="Of two runs: the second minus the first, paired by tree and seed.")
    ] = False,
    models: Annotated[
        Path | None, typer.Option(help="TOML file of models with their training cutoffs, beside the package's own.")
    ] = None,
    closed_book: Annotated[
        Path | None, typer.Option(help="Folder of inquitree closed-book: what models knew beforehand, beside it.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the results of runs: means over trees, with a 95 % interval where five trees or more allow one."""
    known_models = load_models(models)
    folders = list(dict.fromkeys(folder.resolve() for folder in run_folders))
    if paired and len(folders) != 2:
        raise OptionError(f"--compare takes two runs, not {len(folders)}")
    runs = [gather_run(folder) for folder in folders]
    differences = compare(*(run.scores for run in runs)) if paired else []
    scores = [score for run in runs for score in run.scores]
    table, cutoffs = summarise(scores), split_by_cutoff(scores, known_models)
    memories = None if closed_book is None else _memories(closed_book, runs, known_models)
    missing = [episode for run in runs for episode in run.missing]
    for file in write_report(runs, out_path, differences, cutoffs, memories) if out_path else ():
        err.print(f"written: {file}", soft_wrap=True)
    if as_json:
        found = {
            "rows": as_plain(table),
            "missing": [episode.name for episode in missing],
            "cutoffs": as_plain(cutoffs),
        }
        if memories is not None:
            found["closed_book"] = as_plain(memories)
        print_json(found | ({"differences": as_plain(differences)} if paired else {}))
        return
    for title, measures in REPORT_TABLES.items():
        out.print(as_table(title, summary_table(table, measures)))
    if paired:
        out.print(as_table("Second run minus first", differences_table(differences)))
    if cutoffs.splits:
        out.print(as_table("Before − after the training cutoff", cutoff_table(cutoffs)))
    if memories is not None:
        out.print(as_table("Closed book: mean S from the topic alone", memory_table(memories.models)))
    out.print(Text(LEGEND))
    tell_missing(missing)
    _tell_unnamed(cutoffs.unnamed)


@app.command()
def view(
    path: Annotated[Path, typer.Argument(metavar="EPISODE|RUN", help="A log, or the folder of a run.")],
    out_path: Annotated[
        Path | None, typer.Option("--out", help="Page or folder; without it beside the log, or RUN/view.")
    ] = None,
    tree: Annotated[str | None, typer.Option(help="Of a run only the episodes of this tree.")] = None,
    agent: Annotated[str | None, typer.Option(help="Of a run only the episodes of this agent.")] = None,
    model: Annotated[str | None, typer.Option(help="Of a run only the episodes with this model.")] = None,
    fake_level: Annotated[int | None, typer.Option(help="Of a run only the episodes at this fake level.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of a run only the episodes of this seed.")] = None,
) -> None:
    """Write episodes as HTML pages to look at turn by turn, with an index for a run. They need no server."""
    given = {"agent": agent, "model": model, "fake_level": fake_level, "seed": seed}
    chosen = {name: value for name, value in given.items() if value is not None}
    if not path.is_dir():
        if chosen or tree is not None:
            raise OptionError(
                f"'{path}' is one log; --tree, --agent, --model, --fake-level and --seed choose from a run"
            )
        err.print(f"written: {view_log(path, out_path)}", soft_wrap=True)
        return
    stem = None if tree is None else Path(f"paper{tree}" if tree.isascii() and tree.isdigit() else tree).stem

    def wanted(cell: EpisodeSpec) -> bool:
        return stem in (None, Path(cell.tree).stem) and all(getattr(cell, k) == v for k, v in chosen.items())

    with progress("drawing", sum(map(wanted, read_manifest(path).specs()))) as advance:
        page = view_run(path, out_path, wanted=wanted, progress=lambda cell: advance(cell.tree))
    err.print(f"written: {page}", soft_wrap=True)


def gather_run(folder: Path) -> ScoredRun:
    """Read and score a run with a progress bar; see `load_run` for the errors."""
    with progress("scoring", len(list(read_manifest(folder).specs()))) as advance:
        return load_run(folder, lambda cell: advance(cell.tree))


def tell_missing(missing: Sequence[MissingEpisode]) -> None:
    """Say on the error stream which episodes are not scored."""
    damaged = [episode for episode in missing if episode.status == "damaged"]
    undone = [episode.name for episode in missing if episode.status != "damaged"]
    if undone:
        more = f" and {len(undone) - NAMED} more" if len(undone) > NAMED else ""
        named = ", ".join(undone[:NAMED]) + more
        err.print(f"missing or torn, and not scored: {named}. Run the study again to finish", soft_wrap=True)
    for episode in damaged[:NAMED]:
        err.print(Text(f"damaged, and not scored: {episode.error}"), soft_wrap=True)
    if len(damaged) > NAMED:
        err.print(f"damaged, and not scored: {len(damaged) - NAMED} more logs", soft_wrap=True)


def _memories(folder: Path, runs: Sequence[ScoredRun], models: Sequence[ModelDates]) -> Memorisation:
    """Set the closed-book conclusions of a folder beside some runs, on the trees of the runs."""
    names = dict.fromkeys(name for run in runs for name in read_manifest(run.folder).trees)
    trees = {tree.id: tree for tree in map(load_tree, names)}
    return compare_with_loop(grade_closed_book(folder, trees), scores_by_judge(runs), models)


def _tell_unnamed(unnamed: Mapping[str, int]) -> None:
    """Say on the error stream which models no entry names."""
    for model, episodes in unnamed.items():
        err.print(
            f"no training cutoff is known of '{model}', so its {episodes} episodes are left out of before and after; "
            "add it in a file with --models",
            soft_wrap=True,
        )
