"""Verbs for other people's trainers and harnesses: export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from inquitree_gym.analysis.export import check_contamination, had_other_prompts, message_row
from inquitree_gym.analysis.load import ScoredRun, finished_episodes, no_finished_episode
from inquitree_gym.analysis.logs import MissingEpisode, find_logs
from inquitree_gym.cli.output import LogArgument, note, note_missing, plural, progress, write

app = typer.Typer()


@app.command()
def export(
    path: LogArgument,
    to: Annotated[
        Literal["messages"], typer.Option(help="messages: one JSON line per concluded episode.")
    ] = "messages",
    out_file: Annotated[Path | None, typer.Option("--out", help="File to write; in the folder by default.")] = None,
    benchmark: Annotated[bool, typer.Option("--benchmark", help="Export messages about shipped trees, too.")] = False,
) -> None:
    """Export the concluded episodes of logs, as chat messages for fine-tuning."""
    logs = find_logs(path)
    damaged: list[MissingEpisode] = []
    with progress("reading", len(logs.entries)) as advance:
        finished = finished_episodes(logs, lambda spec: advance(spec.tree), damaged.append)
        concluded = [(each.tree, each.episode) for each in finished if each.episode.status == "concluded"]
    if not concluded:
        raise no_finished_episode([ScoredRun(path, [], [], {})])
    check_contamination((tree.id for tree, _ in concluded), benchmark)
    note_missing(damaged)
    rows = [json.dumps(message_row(episode, tree)) for tree, episode in concluded]
    write(out_file or (path if path.is_dir() else path.parent) / f"{to}.jsonl", "".join(f"{row}\n" for row in rows))
    if others := sum(had_other_prompts(episode) for _, episode in concluded):
        note(f"{plural(others, 'episode')} had another system prompt; the messages have that of this release")
    if benchmark:
        note("a model trained on these messages has seen the benchmark: do not evaluate it on these trees")
