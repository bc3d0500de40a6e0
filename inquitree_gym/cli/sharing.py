"""Verbs that join runs and take them elsewhere: merge."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from inquitree_gym.cli.output import JsonOption, note, plural, print_json
from inquitree_gym.runner.merge import merge_runs

app = typer.Typer()


@app.command()
def merge(
    run_folders: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs, two or more.")],
    out_folder: Annotated[Path, typer.Option("--out", help="Folder of the new run; it must not exist.")],
    as_json: JsonOption = False,
) -> None:
    """Join runs into a new one. Every episode is taken once, with its tree and its judgements."""
    summary = merge_runs(run_folders, out_folder)
    if summary.doubles:
        note(f"{plural(summary.doubles, 'episode')} held by several runs; each counts once")
    for name in summary.damaged:
        note(f"damaged, and left out: {name}")
    unfinished = f", {summary.unfinished} unfinished" if summary.unfinished else ""
    note(f"written: {out_folder}, {plural(summary.episodes, 'episode')}{unfinished}")
    if as_json:
        print_json({"folder": str(out_folder), **asdict(summary)})
