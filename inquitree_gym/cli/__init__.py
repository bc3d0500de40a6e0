"""``inquitree …``: parse, call, print. The only place that prints."""

from __future__ import annotations

import click
import typer
from typer.core import TyperGroup

from inquitree_gym.cli import controls, embedders, judges, results, runs, trees
from inquitree_gym.cli.output import run_app

GROUPS = {
    "Trees": trees.app,
    "Episodes": runs.app,
    "Results": results.app,
    "Judges": judges.app,
    "Control measurements": controls.app,
    "Embedders": embedders.app,
}


class _GroupedVerbs(TyperGroup):
    """Command group whose help lists the verbs under the headings of `GROUPS`."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        for heading, group in GROUPS.items():
            names = [command.name or command.callback.__name__ for command in group.registered_commands]
            limit = formatter.width - width - 6
            with formatter.section(heading):
                formatter.write_dl(
                    [(f"{name:{width}}", self.commands[name].get_short_help_str(limit)) for name in names]
                )


app = typer.Typer(
    cls=_GroupedVerbs,
    help="Play, run and score inquiries over InquiTree research trees.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for group in GROUPS.values():
    app.add_typer(group)


def main() -> None:
    """Run the command line."""
    run_app(app)
