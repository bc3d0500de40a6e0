"""``inquitree …``: parse, call, print. The only place that prints."""

from __future__ import annotations

import sys

import typer
from rich.text import Text

from inquitree_gym.cli import bounds, closed_book, embedders, judges, pages, probe, reread, runs, trees
from inquitree_gym.cli.output import FAILED, err
from inquitree_gym.errors import InquiTreeError

app = typer.Typer(
    help="InquiTree research trees: list, look, play, run agents, score and report.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for verbs in (
    trees.app,
    runs.app,
    pages.app,
    judges.app,
    probe.app,
    reread.app,
    closed_book.app,
    bounds.app,
    embedders.app,
):
    app.add_typer(verbs)


def main() -> None:
    """Run the command line; a foreseen error ends with one message and status 2."""
    try:
        app()
    except InquiTreeError as error:
        err.print(Text(f"error: {error}"), soft_wrap=True)
        sys.exit(FAILED)
