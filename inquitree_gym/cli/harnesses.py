"""Verbs for other people's trainers and harnesses: mcp, serve, export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from inquitree_gym.analysis.export import check_contamination, had_other_prompts, message_row
from inquitree_gym.analysis.load import ScoredRun, finished_episodes, no_finished_episode
from inquitree_gym.analysis.logs import MissingEpisode, find_logs
from inquitree_gym.cli.output import INTERRUPTED, LogArgument, note, note_missing, plural, progress, write
from inquitree_gym.cli.runs import RulesOption
from inquitree_gym.embeddings import DEFAULT_EMBEDDER
from inquitree_gym.errors import OptionError, require
from inquitree_gym.integrations import loopback
from inquitree_gym.integrations.session import InquirySession
from inquitree_gym.integrations.tasks import make_tasks, tree_by_id
from inquitree_gym.runner.study import ALL

TreeIdArgument = Annotated[str, typer.Argument(metavar="TREE", help="Id of a tree: paper12 or 12.")]
PortOption = Annotated[int | None, typer.Option(min=0, max=65535, help="Serve HTTP on this loopback port; 0: any.")]

app = typer.Typer()


@app.command("mcp")
def mcp_server(  # noqa: PLR0913  (one parameter per flag)
    tree: TreeIdArgument,
    fake_level: Annotated[int, typer.Option(help="Show fake results with probability LEVEL/10.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episode.")] = 0,
    max_turns: Annotated[str, typer.Option(help="A number, default for n(2H+3), 3n, or none.")] = "default",
    embedder: Annotated[str, typer.Option(help="Embedder that reads the moves.")] = DEFAULT_EMBEDDER,
    rules: RulesOption = "default",
    log: Annotated[Path | None, typer.Option(help="Log the episode to this file; a torn log is resumed.")] = None,
    port: PortOption = None,
) -> None:
    """Serve one inquiry to MCP clients, over standard input and output or over HTTP on this machine."""
    require("mcp", "mcp")
    from inquitree_gym.integrations.mcp import begin, inquiry_server

    limit: Any = int(max_turns) if max_turns.isdecimal() else max_turns
    (task,) = make_tasks([tree_by_id(tree).id], seeds=[seed], fake_level=fake_level, max_turns=limit, rules=rules)
    listening = None if port is None else loopback.listen(port)
    session = InquirySession(task, embedder=embedder, file=log, agent={"name": "mcp"})
    begin(session)
    server = inquiry_server(session)
    try:
        if listening is None:
            server.run("stdio")
        else:
            note(f"{task.key} is at {loopback.address(listening)}/mcp; press Ctrl-C to end")
            loopback.serve(server.streamable_http_app(json_response=True), listening, "mcp")
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    finally:
        session.close()


@app.command("serve")
def openenv_server(  # noqa: PLR0913  (one parameter per flag)
    papers: Annotated[str, typer.Option(help="all, or ids and paper numbers, comma-separated.")] = ALL,
    fake_level: Annotated[str, typer.Option(help="Fake levels, comma-separated, each 0 to 10.")] = "0",
    seeds: Annotated[int, typer.Option(help="Tasks per tree and level.")] = 5,
    max_turns: Annotated[str, typer.Option(help="A number, default for n(2H+3), 3n, or none.")] = "default",
    embedder: Annotated[str, typer.Option(help="Embedder that reads the moves.")] = DEFAULT_EMBEDDER,
    rules: RulesOption = "default",
    episodes: Annotated[Path | None, typer.Option(help="Folder for a log of every episode.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0: any.")] = 8000,
) -> None:
    """Serve inquiries to OpenEnv clients on this machine, each of which has a session of its own."""
    require("openenv", "openenv")
    from inquitree_gym.integrations.openenv import inquiry_app

    limit: Any = int(max_turns) if max_turns.isdecimal() else max_turns
    application = inquiry_app(
        papers,
        seeds=seeds,
        fake_level=fake_level,
        max_turns=limit,
        embedder=embedder,
        rules=rules,
        episodes=episodes,
    )
    listening = loopback.listen(port)
    note(f"inquiries are at {loopback.address(listening)}; press Ctrl-C to end")
    try:
        loopback.serve(application, listening, "openenv")
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


@app.command()
def export(
    path: LogArgument,
    to: Annotated[
        Literal["messages", "inspect"], typer.Option(help="messages: a JSON line per episode; inspect: .eval logs.")
    ] = "messages",
    out_path: Annotated[
        Path | None,
        typer.Option("--out", help="File of messages, or folder of .eval logs; beside the logs by default."),
    ] = None,
    benchmark: Annotated[bool, typer.Option("--benchmark", help="Export messages about shipped trees, too.")] = False,
) -> None:
    """Export the concluded episodes of logs, as chat messages for fine-tuning or as logs of inspect_ai."""
    if to == "inspect" and benchmark:
        raise OptionError("--benchmark concerns messages; leave it out with --to inspect")
    logs = find_logs(path)
    damaged: list[MissingEpisode] = []
    with progress("reading", len(logs.entries)) as advance:
        finished = finished_episodes(logs, lambda spec: advance(spec.tree), damaged.append)
        concluded = [(each.tree, each.episode) for each in finished if each.episode.status == "concluded"]
    if not concluded:
        raise no_finished_episode([ScoredRun(path, [], [], {})])
    home = path if path.is_dir() else path.parent
    if to == "messages":
        check_contamination((tree.id for tree, _ in concluded), benchmark)
        rows = [json.dumps(message_row(episode, tree)) for tree, episode in concluded]
        write(out_path or home / "messages.jsonl", "".join(f"{row}\n" for row in rows))
    else:
        require("inspect_ai", "inspect")
        from inquitree_gym.integrations.inspect_log import write_inspect_logs

        for file in write_inspect_logs(concluded, out_path or home / "inspect"):
            note(f"written: {file}")
    note_missing(damaged)
    if others := sum(had_other_prompts(episode) for _, episode in concluded):
        note(f"{plural(others, 'episode')} had another system prompt; the messages have that of this release")
    if benchmark:
        note("a model trained on these messages has seen the benchmark: do not evaluate it on these trees")
