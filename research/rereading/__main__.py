"""Read logs again with another embedder or threshold: ``python -m research.rereading LOGS``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from inquitree_gym.cli import run_app
from inquitree_gym.cli.output import (
    JsonOption,
    LogArgument,
    ThresholdOption,
    check_svg,
    note_missing,
    out,
    print_json,
    print_table,
    progress,
    write,
)
from inquitree_gym.embeddings import load_embedder
from inquitree_gym.results.logs import Missing, find_logs
from inquitree_gym.results.summary import as_plain
from research.rereading.rematch import logged_embedder, rematch_run, threshold_for
from research.rereading.summaries import (
    changed_turns,
    changes_table,
    rematch_chart,
    rematch_summaries,
    rematch_table,
    threshold_curve,
)

LEGEND = (
    "Each logged action is matched again in its logged state. departing: episodes in which a turn leads elsewhere; up\n"
    "to and including that turn the result is exact. followed: share of the turns up to there. After it, observations\n"
    "would have differed. Changes there are those of the logged actions in the logged states, and coverage has only\n"
    "bounds: at least the coverage at that turn, at most what the remaining turns allow."
)


app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def reread(
    path: LogArgument,
    embedder: Annotated[str | None, typer.Option(help="Embedder that reads the actions; the logs' by default.")] = None,
    threshold: ThresholdOption = None,
    figure: Annotated[Path | None, typer.Option(help="Write the figure over τ to this SVG file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Read logs again with another embedder or threshold. Shows which readings change, and how coverage could move."""
    check_svg("--figure", figure)
    reader = None if embedder is None else load_embedder(embedder)
    logs = find_logs(path)
    damaged: list[Missing] = []
    with progress("reading", len(logs.entries)) as advance:
        found = rematch_run(logs, reader, lambda spec: advance(spec.task), damaged.append)
    known = reader if reader is not None or threshold is not None else logged_embedder(found)
    threshold = threshold_for(known, threshold)
    table = rematch_summaries(found, threshold)
    read_by = ", ".join(dict.fromkeys(each.read_by for each in found))
    if figure is not None:
        write(figure, rematch_chart(found, threshold).document())
    if as_json:
        print_json({
            "embedder": read_by, "threshold": threshold, "agents": as_plain(table),
            "changes": as_plain(list(changed_turns(found, threshold))),
            "curve": as_plain(threshold_curve(found)), "missing": [each.name for each in damaged],
        })  # fmt: skip
        return
    print_table(f"Read again by {read_by}, τ = {threshold:g}", rematch_table(table))
    if any(line.changes for line in table):
        print_table("Changes", changes_table(table))
    out.print(Text(LEGEND))
    note_missing(damaged)


if __name__ == "__main__":
    run_app(app)
