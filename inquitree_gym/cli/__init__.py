"""``inquitree …``: parse, call, print. The only place that prints, apart from the verbs of a kind of environment."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.models import TyperInfo

from inquitree_gym import __version__
from inquitree_gym.errors import InquiTreeError
from inquitree_gym.kinds import kinds

VERBS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Tasks": {
        "list": ("tasks", "List all papers of the pool, and the user's tasks."),
        "show": ("tasks", "Draw a task in the terminal, or export it."),
        "check": ("tasks", "Check tasks for faults. Exit with status 1 if there is an error."),
        "author": ("author", "Let a model write the research tree of a paper, and check it."),
        "audit": ("reviews", "Let a model look for faults in a tree, and take its exam."),
        "review": ("reviews", "Decide on each finding about a tree, and write what you accept into it."),
        "schema": ("tasks", "Print the JSON Schema of the files of a kind, for use in editors."),
    },
    "Episodes": {
        "play": ("runs", "Play an episode yourself."),
        "run": ("runs", "Run agents over tasks, and log every episode."),
    },
    "Results": {
        "score": ("results", "Score every episode from its log."),
        "report": ("results", "Print the results of runs."),
        "view": ("results", "Write episodes as HTML pages, turn by turn."),
        "judge": ("judge_verb", "Judge the texts of runs."),
    },
    "Other harnesses": {
        "mcp": ("harnesses", "Serve one episode to MCP clients."),
        "serve": ("harnesses", "Serve episodes to OpenEnv clients on this machine."),
        "export": ("harnesses", "Export the concluded episodes of logs."),
    },
}
"""Verbs that every kind of environment shares under headings, each with its module here and its help in one line."""


def _sections() -> Iterator[tuple[str, Mapping[str, tuple[str, str]]]]:
    """Yield the headings with their verbs, those of each kind last, each verb with the full name of its module."""
    taken = {verb for verbs in VERBS.values() for verb in verbs}
    for heading, verbs in VERBS.items():
        yield heading, {verb: (f"{__name__}.{module}", text) for verb, (module, text) in verbs.items()}
    for kind in kinds():
        own = {verb: (f"{kind.package}.{place}", text) for verb, (place, text) in kind.verbs.items()}
        yield kind.name.capitalize(), {verb: own[verb] for verb in own if verb not in taken}
        taken |= own.keys()


def commands() -> dict[str, Any]:
    """Return all commands by verb, whose modules are imported for it."""
    return {verb: _command(verb, module) for _, verbs in _sections() for verb, (module, _) in verbs.items()}


def _command(verb: str, module: str) -> Any:
    info = TyperInfo(import_module(module).app)
    group = typer.main.get_group_from_info(
        info, pretty_exceptions_short=True, rich_markup_mode=None, suggest_commands=True
    )
    return group.commands[verb]


class _Verbs(TyperGroup):
    """Command group that imports the module of a verb when it is called, and lists the verbs without importing one."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [verb for _, verbs in _sections() for verb in verbs]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        modules = {verb: module for _, verbs in _sections() for verb, (module, _) in verbs.items()}
        if cmd_name in modules:
            return _command(cmd_name, modules[cmd_name])
        self.commands = {verb: None for verb in modules}  # type: ignore[misc]  # names, of which the nearest is suggested
        return None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections = [(heading, verbs) for heading, verbs in _sections() if verbs]
        width = max(len(verb) for _, verbs in sections for verb in verbs)
        for heading, verbs in sections:
            with formatter.section(heading):
                formatter.write_dl([(f"{verb:{width}}", text) for verb, (_, text) in verbs.items()])


app = typer.Typer(
    cls=_Verbs, no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"inquitree-gym {__version__}")
        raise typer.Exit


@app.callback()
def _all(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version of the package."),
    ] = False,
) -> None:
    """Play, run and score InquiTree's research environments."""


def run_app(app: Callable[[], object]) -> None:
    """Run a typer app. An `InquiTreeError` ends it with one line on the error stream and status 2.

    A character that the encoding of a console or pipe lacks is replaced.
    """
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")
    try:
        app()
    except InquiTreeError as error:
        from inquitree_gym.cli.output import FAILED, note

        note(f"error: {error}")
        sys.exit(FAILED)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, with the arguments of the process by default."""
    run_app(lambda: app(arguments))
