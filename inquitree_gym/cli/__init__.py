"""``inquitree …``: parse, call, print. The only place that prints."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from inquitree_gym.cli import (
    authoring,
    controls,
    embedders,
    harnesses,
    judges,
    reproduce,
    results,
    runs,
    sharing,
    trees,
)
from inquitree_gym.cli.output import run_app

GROUPS = {
    "Trees": trees.app,
    "Episodes": runs.app,
    "Results": results.app,
    "The paper": reproduce.app,
    "Sharing": sharing.app,
    "Other harnesses": harnesses.app,
    "Judges": judges.app,
    "Control measurements": controls.app,
    "New papers": authoring.app,
    "Embedders": embedders.app,
}


class _GroupedVerbs(TyperGroup):
    """Command group whose help lists the verbs under the headings of `GROUPS`."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        for heading in GROUPS:
            rows = [
                (f"{name:{width}}", command.get_short_help_str(formatter.width - width - 6))
                for name, command in self.commands.items()
                if getattr(command, "rich_help_panel", "") == heading
            ]
            with formatter.section(heading):
                formatter.write_dl(rows)


app = typer.Typer(
    cls=_GroupedVerbs,
    help="Play, run and score inquiries over InquiTree research trees.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for heading, verbs in GROUPS.items():
    for verb in verbs.registered_commands:
        verb.rich_help_panel = heading
    app.add_typer(verbs)


def main() -> None:
    """Run the command line."""
    run_app(app)
