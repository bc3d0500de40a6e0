"""Output of the command line: consoles, JSON, tables and progress bars; options that several verbs share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from inquitree_gym.analysis.aggregate import as_plain
from inquitree_gym.errors import InquiTreeError, OptionError

FAULTY, FAILED, INTERRUPTED = 1, 2, 130
"""Exit statuses: a check found faults; the command failed; the command was interrupted."""
PIPE_WIDTH = 118
"""Columns of a table in a file or pipe; on a terminal its width counts."""

# Without markup: brackets in a path or a tree are text.
out = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, markup=False)
err = Console(stderr=True, markup=False)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
TreeArgument = Annotated[str, typer.Argument(metavar="TREE", help="Id (paper12 or 12) or path of a tree file.")]
TreesArgument = Annotated[list[str] | None, typer.Argument(metavar="[all|TREE…]", help="Ids or paths.")]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]
RunsArgument = Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs.")]
PapersOption = Annotated[str, typer.Option(help="all, or ids, paper numbers and paths, comma-separated.")]
CutoffsOption = Annotated[
    Path | None, typer.Option(help="TOML file of models with their training cutoffs, beside the package's own.")
]
BaseUrlOption = Annotated[str | None, typer.Option(help="Server of the models; the providers' by default.")]
EffortOption = Annotated[
    str | None, typer.Option(help="Reasoning effort in the provider's words, such as low or high.")
]
MaxCostOption = Annotated[float | None, typer.Option(help="Stop sending requests at this cost, in US dollars.")]
MaxTotalTokensOption = Annotated[int | None, typer.Option(help="Stop sending requests at this number of tokens.")]
ThresholdOption = Annotated[float | None, typer.Option(help="Threshold τ; the embedder's calibrated one by default.")]


def run_app(app: Callable[[], object]) -> None:
    """Run a typer app; an `InquiTreeError` ends it with one line on the error stream and status 2."""
    try:
        app()
    except InquiTreeError as error:
        note(f"error: {error}")
        sys.exit(FAILED)


def note(text: str) -> None:
    """Print a line on the error stream."""
    err.print(Text(text), soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a value, which may hold records, as JSON on the output stream."""
    out.print(json.dumps(as_plain(value), indent=2, ensure_ascii=False), markup=False, highlight=False, soft_wrap=True)


def print_table(title: str, rows: Iterable[list[str]]) -> None:
    """Print rows of cells as a table, the heading first."""
    heading, *body = rows
    table = Table(*heading, title=title)
    for row in body:
        table.add_row(*row)
    out.print(table)


def write(file: Path, text: str) -> None:
    """Write a file, and report it on the error stream.

    Raises:
        InquiTreeError: the file cannot be written.
    """
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InquiTreeError(f"cannot write '{file}': {error.strerror}") from error
    note(f"written: {file}")


def check_svg(option: str, file: Path | None) -> None:
    """Raise `OptionError` if the file of ``option`` is not named ``.svg``."""
    if file is not None and file.suffix.lower() != ".svg":
        raise OptionError(f"{option} writes SVG, so its file name ends with .svg, not '{file.name}'")


def split(names: str) -> tuple[str, ...]:
    """Return the parts of a comma-separated list."""
    return tuple(name.strip() for name in names.split(",") if name.strip())


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Return the numbers of a comma-separated list.

    Raises:
        OptionError: naming ``option``, if a part is not a whole number.
    """
    try:
        return tuple(int(part) for part in split(text))
    except ValueError as error:
        raise OptionError(f"{option} takes whole numbers, comma-separated, not '{text}'") from error


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 fault``, ``2 faults``."""
    return f"{number} {noun}{'s' * (number != 1)}"


@contextmanager
def progress(verb: str, total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that advances a bar on the error stream by one step, whose name it takes."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bars:
        task = bars.add_task(verb, total=total)
        yield lambda step: bars.update(task, advance=1, description=f"{verb} {step}")
