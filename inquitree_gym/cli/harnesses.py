"""Verbs for other people's trainers and harnesses: mcp, serve, export."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from inquitree_gym.cli.flags import SETTINGS, given, kind_values, with_kind_flags
from inquitree_gym.cli.output import INTERRUPTED, EnvOption, LogArgument, note, note_missing, plural, progress, write
from inquitree_gym.errors import OptionError, require
from inquitree_gym.kinds import DEFAULT_KIND
from inquitree_gym.runs.study import ALL

TaskIdArgument = Annotated[str, typer.Argument(metavar="TASK", help="Id of a task: paper12 or 12.")]
ServedOption = Annotated[str, typer.Option(help="Tasks: all, or ids and paper numbers, comma-separated.")]
PortOption = Annotated[int | None, typer.Option(min=0, max=65535, help="Serve HTTP on this loopback port; 0: any.")]

HOST = "127.0.0.1"
"""Address that only programs on this machine reach."""

app = typer.Typer()


@app.command("mcp")
@with_kind_flags(SETTINGS)
def mcp_server(
    context: typer.Context,
    task: TaskIdArgument,
    env: EnvOption = DEFAULT_KIND,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episode.")] = 0,
    log: Annotated[Path | None, typer.Option(help="Log the episode to this file; a torn log is resumed.")] = None,
    port: PortOption = None,
    **_flags: Any,
) -> None:
    """Serve one episode to MCP clients, over standard input and output or over HTTP on this machine."""
    require("mcp", "mcp")
    from inquitree_gym.integrations.mcp import begin, episode_server
    from inquitree_gym.integrations.session import EpisodeSession
    from inquitree_gym.integrations.tasks import make_tasks

    settings = kind_values(env, SETTINGS, context.params, given(context))
    tasks = make_tasks([task], env=env, seeds=[seed], **settings)
    if len(tasks) > 1:
        raise OptionError("one episode has one value of each setting; give no list")
    listening = None if port is None else _listen(port)
    session = EpisodeSession(tasks[0], file=log, agent={"name": "mcp"})
    begin(session)
    server = episode_server(session)
    try:
        if listening is None:
            server.run("stdio")
        else:
            note(f"{tasks[0].key} is at {_address(listening)}/mcp; press Ctrl-C to end")
            _serve(server.streamable_http_app(json_response=True), listening, "mcp")
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    finally:
        session.close()


@app.command("serve")
@with_kind_flags(SETTINGS)
def openenv_server(
    context: typer.Context,
    papers: ServedOption = ALL,
    env: EnvOption = DEFAULT_KIND,
    seeds: Annotated[int, typer.Option(help="Episodes per task and cell.")] = 5,
    episodes: Annotated[Path | None, typer.Option(help="Folder for a log of every episode.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0: any.")] = 8000,
    **_flags: Any,
) -> None:
    """Serve episodes to OpenEnv clients on this machine, each of which has a session of its own."""
    require("openenv", "openenv")
    from inquitree_gym.integrations.openenv import episode_app

    settings = kind_values(env, SETTINGS, context.params, given(context))
    application = episode_app(papers, env=env, seeds=seeds, episodes=episodes, **settings)
    listening = _listen(port)
    note(f"episodes are at {_address(listening)}; press Ctrl-C to end")
    try:
        _serve(application, listening, "openenv")
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
    from inquitree_gym.integrations.messages import check_contamination, had_other_prompts, message_row

    home, concluded, damaged = path if path.is_dir() else path.parent, *_concluded(path)
    if to == "messages":
        check_contamination((task.id for task, _ in concluded), benchmark)
        rows = [json.dumps(message_row(episode)) for _, episode in concluded]
        write(out_path or home / "messages.jsonl", "".join(f"{row}\n" for row in rows))
    else:
        require("inspect_ai", "inspect")
        from inquitree_gym.integrations.inspect import write_inspect_logs

        for file in write_inspect_logs(concluded, out_path or home / "inspect"):
            note(f"written: {file}")
    note_missing(damaged)
    if others := sum(had_other_prompts(episode) for _, episode in concluded):
        note(f"{plural(others, 'episode')} had another system prompt; the messages have that of this release")
    if benchmark:
        note("a model trained on these messages has seen the benchmark: do not evaluate it on these trees")


def _concluded(path: Path) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """Return the concluded episodes of logs with their tasks, and the damaged logs. Raise `LogError` without any."""
    from inquitree_gym.results.load import ScoredRun, finished_episodes, no_finished_episode
    from inquitree_gym.results.logs import find_logs

    logs = find_logs(path)
    damaged: list[Any] = []
    with progress("reading", len(logs.entries)) as advance:
        finished = finished_episodes(logs, lambda spec: advance(spec.task), damaged.append)
        concluded = [(each.task, each.episode) for each in finished if each.episode.status == "concluded"]
    if not concluded:
        raise no_finished_episode([ScoredRun(path, ())])
    return concluded, damaged


def _listen(port: int) -> socket.socket:
    """Return a socket that listens on a port of loopback, a free one for 0. Raise `OptionError` for a port in use."""
    # Naming the protocol lets asyncio send small answers at once; without it each waits 40 ms.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen()  # clients may connect before the application has started
    except (OSError, OverflowError) as error:
        listening.close()
        raise OptionError(f"cannot listen on port {port}: {error}; choose another port, or 0 for a free one") from error
    return listening


def _address(listening: socket.socket) -> str:
    """Return the URL of a server on ``listening``."""
    return f"http://{HOST}:{listening.getsockname()[1]}"


def _serve(app: Any, listening: socket.socket, extra: str) -> None:
    """Serve an ASGI application until the process is interrupted. ``extra`` installs what it needs."""
    uvicorn = require("uvicorn", extra)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
