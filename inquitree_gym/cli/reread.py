"""The verb about reading logs again: reread."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from inquitree_gym.analysis.rethreshold import logged_threshold, rematch_run, threshold_for
from inquitree_gym.cli.output import as_table, out, print_json, progress, write
from inquitree_gym.cli.pages import RunArgument
from inquitree_gym.cli.trees import JsonOption
from inquitree_gym.embeddings import load_embedder
from inquitree_gym.report.rethreshold import changed, changes_table, curve, lines, picture, reread_table
from inquitree_gym.runner.folder import read_manifest

LEGEND = (
    "Each logged action is matched again in the state that it was logged in. departing: episodes in which a turn\n"
    "leads elsewhere; up to and with that turn this is exact. followed: share of the turns up to there. After it the\n"
    "agent would have read other texts: changes there are those of the logged actions in the logged states, and\n"
    "coverage has bounds only, at least what was entered by then, at most what the turns left allow."
)

app = typer.Typer()


@app.command()
def reread(
    run_folder: RunArgument,
    embedder: Annotated[str | None, typer.Option(help="Embedder that reads; without it the run's own.")] = None,
    threshold: Annotated[float | None, typer.Option(help="τ; without it the embedder's calibrated default.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Write the picture over τ to this SVG file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Read the logs of a run again with another embedder or threshold: what changes, and how coverage could move."""
    study = read_manifest(run_folder)
    reader = load_embedder(study.embedder if embedder is None else embedder)
    threshold = threshold_for(reader, threshold)
    with progress("reading", len(list(study.specs()))) as advance:
        found = rematch_run(run_folder, reader, lambda cell: advance(cell.tree))
    table = lines(found, threshold)
    if figure is not None:
        write(figure, picture(found, logged_threshold(study), threshold).document())
    if as_json:
        print_json({
            "embedder": reader.name, "threshold": threshold, "agents": [line.as_plain() for line in table],
            "changes": [change._asdict() for change in changed(found, threshold)],
            "curve": [point._asdict() for point in curve(found)],
        })  # fmt: skip
        return
    out.print(as_table(f"Read again by {reader.name}, τ = {threshold:g}", reread_table(table)))
    if any(line.changes for line in table):
        out.print(as_table("What changes", changes_table(table)))
    out.print(Text(LEGEND))
