"""Tables of the options of the command line on its page, from the texts of ``--help``."""

from __future__ import annotations

import re
from typing import Any

import typer

from inquitree_gym.cli import commands

VERBS = commands()
SECTION = re.compile(r"^(?=## )", re.MULTILINE)
VERB = re.compile(r"## inquitree (\S+)")


def with_options(markdown: str) -> str:
    """Return docs/cli.md with the options of every verb in its section, above the first heading in it."""
    return "".join(map(_section, SECTION.split(markdown)))


def _section(text: str) -> str:
    found = VERB.match(text)
    if found is None:
        return text
    prose, heading, rest = text.partition("\n### ")
    return f"{prose.rstrip()}\n\n{_options(VERBS[found[1]])}\n{heading}{rest}"


def _options(verb: Any) -> str:
    context = typer.Context(verb)
    records = (option.get_help_record(context) for option in verb.params if option.param_type_name == "option")
    rows = (f"| `{names}` | {_escaped(meaning)} |\n" for names, meaning in records)
    return "| option | meaning |\n| --- | --- |\n" + "".join(rows)


def _escaped(text: str) -> str:
    return re.sub(r"([|<\[*_])", r"\\\1", text)
