"""Verbs for other people's trainers and harnesses: export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from inquitree_gym.analysis.export import check_contamination, had_other_prompts, message_row
from inquitree_gym.analysis.load import finished_episodes, no_finished_episode
from inquitree_gym.cli.output import RunArgument, note, plural, progress, write
from inquitree_gym.runner.folder import read_manifest
from inquitree_gym.trees import load_tree

app = typer.Typer()


@app.command()
def export(
    run_folder: RunArgument,
    to: Annotated[
        Literal["messages"], typer.Option(help="messages: one JSON line per concluded episode.")
    ] = "messages",
    out_file: Annotated[Path | None, typer.Option("--out", help="File to write; in RUN by default.")] = None,
    benchmark: Annotated[bool, typer.Option("--benchmark", help="Export messages about shipped trees, too.")] = False,
) -> None:
    """Export the concluded episodes of a run, as chat messages for fine-tuning."""
    study = read_manifest(run_folder)
    check_contamination((load_tree(name).id for name in study.trees), benchmark)
    with progress("reading", len(list(study.specs()))) as advance:
        finished = finished_episodes(run_folder, lambda spec: advance(spec.tree))
        concluded = [(tree, episode) for _, tree, episode in finished if episode.status == "concluded"]
    if not concluded:
        raise no_finished_episode(run_folder)
    rows = [json.dumps(message_row(episode, tree)) for tree, episode in concluded]
    write(out_file or run_folder / f"{to}.jsonl", "".join(f"{row}\n" for row in rows))
    if others := sum(had_other_prompts(episode) for _, episode in concluded):
        note(f"{plural(others, 'episode')} had another system prompt; the messages have that of this release")
    if benchmark:
        note("a model trained on these messages has seen the benchmark: do not evaluate it on these trees")
