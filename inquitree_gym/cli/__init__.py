"""``inquitree …``: parse, call, print. The only place that prints."""

from __future__ import annotations

import typer

from inquitree_gym.cli import bounds, closed_book, embedders, judges, pages, probe, reread, runs, trees
from inquitree_gym.cli.output import run_app

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
    """Run the command line."""
    run_app(app)
