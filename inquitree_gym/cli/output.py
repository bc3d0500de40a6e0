"""How the command line prints: consoles, JSON, tables, progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from inquitree_gym.errors import InquiTreeError

FAULTY, FAILED, INTERRUPTED = 1, 2, 130
"""Exit statuses: what was checked is at fault; the command could not be done; it was told to end."""
NARROWEST = 118
"""Columns of a table that goes to a file or pipe; a terminal has its own."""

# Without markup: brackets in a path or a tree are text.
out = Console(width=None if sys.stdout.isatty() else NARROWEST, markup=False)
err = Console(stderr=True, markup=False)


def run_app(app: Callable[[], object]) -> None:
    """Run a typer app; an `InquiTreeError` ends it with one line on the error stream and status 2."""
    try:
        app()
    except InquiTreeError as error:
        err.print(Text(f"error: {error}"), soft_wrap=True)
        sys.exit(FAILED)


def print_json(value: Any) -> None:
    """Print a value as JSON on the output stream."""
    out.print(json.dumps(value, indent=2, ensure_ascii=False), markup=False, highlight=False, soft_wrap=True)


def write(file: Path, text: str) -> None:
    """Write a file and say so on the error stream.

    Raises:
        InquiTreeError: the file cannot be written.
    """
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InquiTreeError(f"cannot write '{file}': {error.strerror}") from error
    err.print(f"written: {file}")


def split(names: str) -> tuple[str, ...]:
    """Return the parts of a comma-separated list."""
    return tuple(name.strip() for name in names.split(",") if name.strip())


def as_table(title: str, lines: Iterable[list[str]]) -> Table:
    """Return a table from lines of cells, the heading first."""
    heading, *body = lines
    table = Table(*heading, title=title)
    for line in body:
        table.add_row(*line)
    return table


@contextmanager
def progress(verb: str, total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that advances a bar on the error stream by one, naming what was done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bars:
        task = bars.add_task(verb, total=total)
        yield lambda what: bars.update(task, advance=1, description=f"{verb} {what}")
