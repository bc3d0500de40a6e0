"""Output of the command line: consoles, JSON, tables, progress and summary of a run. Options that verbs share."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, RenderableColumn, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from inquitree_gym.errors import InquiTreeError, OptionError, visible
from inquitree_gym.errors import plural as plural

if TYPE_CHECKING:
    from inquitree_gym.llm import Budget, MissingKey
    from inquitree_gym.results.logs import Missing
    from inquitree_gym.runner.run import Outcome, RunSummary
    from inquitree_gym.runs.specs import ModelSettings

FAULTY, FAILED, INTERRUPTED = 1, 2, 130
"""Exit statuses of a check that found faults, and of a command that failed or was interrupted."""
PIPE_WIDTH = 100
"""Columns of a table in a file or pipe, unless its words need more. On a terminal its width counts."""
NAME_WIDTH = 40
"""Width up to which the first column, which has names, is not broken at spaces there."""
_ANY_WIDTH = 10_000

MAX_NAMES = 10
"""Most missing episodes that are named."""


class _SafeConsole(Console):
    """Console that escapes control characters, so that no text, such as a service's message, can steer the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of ``renderable``."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


# Without markup: brackets in a path or a tree are text.
out = _SafeConsole(width=None if sys.stdout.isatty() else PIPE_WIDTH, markup=False)
err = _SafeConsole(stderr=True, markup=False)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
TreeArgument = Annotated[str, typer.Argument(metavar="TREE", help="Id (paper12 or 12) or path of a tree file.")]
TaskArgument = Annotated[str, typer.Argument(metavar="TASK", help="Id (paper12 or 12) or path of a file.")]
EnvOption = Annotated[str, typer.Option("--env", help="Kind of environment.")]
TaskKindOption = Annotated[
    str | None,
    typer.Option("--env", help="Kind of environment; by default that of the file, and of ids the default one."),
]
TreesArgument = Annotated[list[str] | None, typer.Argument(metavar="[all|TREE…]", help="Ids or paths.")]
LogArgument = Annotated[Path, typer.Argument(metavar="LOGS", help="A run, another folder of logs, or a log.")]
LogsArgument = Annotated[list[Path], typer.Argument(metavar="LOGS…", help="Runs, other folders of logs, and logs.")]
PapersOption = Annotated[str, typer.Option(help="all, or ids, paper numbers and paths, comma-separated.")]
CutoffsOption = Annotated[
    Path | None, typer.Option(help="TOML file of models with their training cutoffs, beside the package's own.")
]
BaseUrlOption = Annotated[str | None, typer.Option(help="Server of the models; the providers' by default.")]
EffortOption = Annotated[
    str | None, typer.Option(help="Reasoning effort in the provider's words, such as low or high.")
]
ReplyTokensOption = Annotated[
    str, typer.Option(help="Longest reply in tokens, reasoning included, or none for the provider's default.")
]
REPLY_TOKENS = "4096"
MaxCostOption = Annotated[float | None, typer.Option(help="Stop sending requests at this cost, in US dollars.")]
MaxTotalTokensOption = Annotated[int | None, typer.Option(help="Stop sending requests at this number of tokens.")]
ScoredByOption = Annotated[
    str | None,
    typer.Option(
        "--judge",
        help="Judge of the scores: local, or one that inquitree judge has asked, by name. By default the one "
        "of the kind: local, or that of the reward.",
    ),
]
ThresholdOption = Annotated[float | None, typer.Option(help="Threshold τ; the embedder's calibrated one by default.")]


def note(text: str) -> None:
    """Print a line on the error stream."""
    err.print(Text(text), soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a value, which may hold records, as JSON on the output stream, in ASCII unless that is a Unicode one."""
    from inquitree_gym.results.summary import as_plain

    text = json.dumps(as_plain(value), indent=2, ensure_ascii=out.options.ascii_only)
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def print_table(title: str, rows: Iterable[list[str]]) -> None:
    """Print rows of cells as a table, the heading first."""
    heading, *body = rows
    table = Table(title=title)
    for head in heading:
        table.add_column(head, overflow="fold")
    for row in body:
        table.add_row(*row)
    if not out.is_terminal:  # no name is folded: the table may be wider than `PIPE_WIDTH`
        table.columns[0].min_width = min(max((len(row[0]) for row in body), default=0), NAME_WIDTH)
    needed = table.__rich_measure__(out, out.options.update(max_width=_ANY_WIDTH)).minimum
    table.width = needed if not out.is_terminal and needed > out.width else None
    if needed <= (table.width or out.width):  # no word is folded, and columns that have spaces give way
        for column, *cells in zip(table.columns, heading, *body, strict=True):
            column.min_width = max(column.min_width or 0, *(len(word) for word in ("", *" ".join(cells).split())))
            column.no_wrap = column.min_width >= max(len(line) for cell in cells for line in ("", *cell.splitlines()))
    out.print(table, crop=False)


def write(file: Path, text: str) -> None:
    """Write a file, and report it on the error stream. Raise `InquiTreeError` if it cannot be written."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InquiTreeError(f"cannot write '{file}': {error.strerror}") from error
    note(f"written: {file}")


def note_missing(missing: Iterable[Missing]) -> None:
    """Name the episodes that are not among the results, at most `MAX_NAMES` of each kind, and count the others."""
    from inquitree_gym.results.logs import DAMAGED, NO_LOG, OTHER_TASK

    unfinished: list[str] = []
    others: dict[str, list[str]] = {}
    lines: dict[str, list[str]] = {"damaged, and left out": [], "not scored": []}
    for each in missing:
        if each.status == OTHER_TASK:
            others.setdefault(each.error, []).append(each.name)
        elif each.status in (NO_LOG, DAMAGED):
            lines["not scored" if each.status == NO_LOG else "damaged, and left out"].append(each.error)
        else:
            unfinished.append(each.name)
    if unfinished:
        note(f"missing or torn, and not scored: {_some(unfinished)}; run the study again to finish them")
    lines["not scored"] += [f"{plural(len(names), 'log')} {error}: {_some(names)}" for error, names in others.items()]
    for kind, texts in lines.items():
        for text in texts[:MAX_NAMES]:
            note(f"{kind}: {text}")
        if len(texts) > MAX_NAMES:
            note(f"{kind}: {len(texts) - MAX_NAMES} more of this kind")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def check_svg(option: str, file: Path | None) -> None:
    """Raise `OptionError` if the file of ``option`` is not named ``.svg``."""
    if file is not None and file.suffix.lower() != ".svg":
        raise OptionError(f"{option} must name an .svg file, which it writes, got '{file.name}'")


def reply_limit(text: str) -> int | None:
    """Return the value of ``--reply-tokens``. Raise `OptionError` if it is neither a whole number nor none."""
    try:
        return None if text == "none" else int(text)
    except ValueError as error:
        raise OptionError(f"--reply-tokens must be an integer from 1, or none, got '{text:.80}'") from error


def split(names: str) -> tuple[str, ...]:
    """Return the parts of a comma-separated list."""
    return tuple(name.strip() for name in names.split(",") if name.strip())


def distinct(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that lead to different places, as they were given."""
    return list({path.resolve(): path for path in paths}.values())


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Return the numbers of a comma-separated list. Raise `OptionError` if a part is not a whole number."""
    try:
        return tuple(int(part) for part in split(text))
    except ValueError as error:
        raise OptionError(f"{option} must be integers, comma-separated, got '{text}'") from error


@contextmanager
def progress(verb: str, total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that advances a bar on the error stream by one step, whose name it takes."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bars:
        task = bars.add_task(verb, total=total)
        yield lambda step: bars.update(task, advance=1, description=f"{verb} {step}")


LINE_SHARE, LINE_PERIOD = 0.1, 10.0
"""Share of a run and seconds that pass at least before its next progress line, where there is no terminal."""
MIN_MINUTES = 120
"""Seconds left from which they are shown in minutes."""
MAX_ERRORS = 10
"""Most different errors that a summary shows."""
_SPEED_PERIOD = 86_400.0
"""Seconds over which the speed is measured, since episodes may take long."""


class RunProgress:
    """Counts outcomes, and shows them in a bar on a terminal, or in a line now and then elsewhere."""

    def __init__(self, total: int, budget: Budget, clock: Callable[[], float] = time.monotonic) -> None:
        self._budget = budget
        self._total = total
        self._counts = Counter[str]()
        self._clock = clock
        self._started = self._line_time = clock()
        self._line_done = 0
        columns = (
            TextColumn("playing"), BarColumn(), MofNCompleteColumn(), RenderableColumn(self), TimeRemainingColumn(),
        )  # fmt: skip
        self._bars = Progress(*columns, console=err, transient=True, speed_estimate_period=_SPEED_PERIOD)
        self._bar = self._bars.add_task("", total=total)

    @contextmanager
    def display(self) -> Iterator[None]:
        """Show the bar during the block, on a terminal."""
        if not err.is_terminal:
            yield
            return
        with self._bars:
            yield

    def update(self, outcome: Outcome) -> None:
        """Count an outcome."""
        self._counts[outcome.status] += 1
        to_do = self._total - self._counts["found"]
        if outcome.status == "found":
            self._bars.update(self._bar, total=to_do)
            return
        if outcome.status != "left":
            self._bars.advance(self._bar)
        if not err.is_terminal:
            self._print_line(to_do)

    def announce_stop(self, reason: str) -> None:
        """Report that the run is stopping."""
        from inquitree_gym.runner.services import GRACE

        note(f"stopping: {reason}. Pending requests have {GRACE:.0f} s; press Ctrl-C (again) to quit at once")

    def __rich__(self) -> Text:
        return Text(self._status())

    def _status(self) -> str:
        return " · ".join(filter(None, (format_usage(self._budget), f"{self._counts['failed']} failed")))

    def _print_line(self, to_do: int) -> None:
        done = self._counts["played"] + self._counts["failed"]
        now = self._clock()
        if done - self._line_done < LINE_SHARE * to_do or now - self._line_time < LINE_PERIOD:
            return
        self._line_done, self._line_time = done, now
        left = (now - self._started) / done * (to_do - done)
        time_left = f"{left:.0f} s" if left < MIN_MINUTES else f"{left / 60:.0f} min"
        note(f"{done:,} of {plural(to_do, 'episode')} · {self._status()} · about {time_left} left")


def format_usage(budget: Budget) -> str:
    """Return the cost and tokens of a budget as text. Empty if nothing was paid for."""
    paid = budget.usage
    if not paid.replies:
        return ""
    dollars = f"${paid.cost:.4f}" if paid.unpriced < paid.replies else "price unknown"
    more = f" + {paid.unpriced} of unknown price" if 0 < paid.unpriced < paid.replies else ""
    return f"{dollars}{more} · {plural(paid.tokens, 'token')}"


def print_summary(summary: RunSummary, budget: Budget, folder: Path) -> None:
    """Print what a run played, what failed, and why it or a model was stopped."""
    usage = format_usage(budget)
    paid = f" ({plural(budget.usage.replies, 'reply')}, {usage})" if usage else ""
    if summary.added:
        note(f"added to the run: {summary.added}")
    note(f"{plural(summary.played, 'episode')} played, {summary.found} already complete: {folder}{paid}")
    by_error: dict[str, list[str]] = {}
    for outcome in summary.failures:
        by_error.setdefault(outcome.error, []).append(outcome.spec.file_name)
    for error, names in list(by_error.items())[:MAX_ERRORS]:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        note(f"failed: {names[0]}{more}: {error}")
    if len(by_error) > MAX_ERRORS:
        note(f"failed: with {plural(len(by_error) - MAX_ERRORS, 'other error')}; see the logs")
    for model, reason in summary.models.items():
        note(f"stopped: the rest of '{model}': {reason}")
    if summary.ended:
        note(f"stopped: {summary.ended}")


def note_missing_keys(keys: Mapping[str, MissingKey]) -> None:
    """Print the missing API keys on the error stream."""
    for lack in dict.fromkeys(keys.values()):
        more = "" if lack.certain else "; without credentials of another kind every request will be refused"
        note(f"missing key: {lack.message}{more}")


def note_unsent_efforts(models: Sequence[ModelSettings]) -> None:
    """Print on the error stream the models whose reasoning effort is not sent."""
    for model in models:
        if model.reasoning_effort and "reasoning_effort" in model.chat_model().dropped:
            note(
                f"reasoning effort not sent to '{model.model}': its provider does not accept one, according to litellm"
            )


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C during the block.

    Where Ctrl-C is ignored, as in a background job of a script, SIGTERM still ends the process at once.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
