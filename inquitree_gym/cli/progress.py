"""Progress and summary of a run on the error stream."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, RenderableColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from inquitree_gym.cli.output import err, note, plural
from inquitree_gym.llm import Budget
from inquitree_gym.runner.run import Outcome, RunSummary
from inquitree_gym.runner.stop_conditions import GRACE

MAX_LINES = 20
"""Most progress lines of a run where there is no terminal."""
MAX_ERRORS = 10
"""Most different errors that a summary shows."""
_SPEED_PERIOD = 86_400.0
"""Seconds over which the speed is measured: episodes may take long."""


class RunProgress:
    """Counts outcomes, and shows them in a bar on a terminal, or in a line now and then elsewhere."""

    def __init__(self, total: int, budget: Budget) -> None:
        """Expect ``total`` episodes whose models are paid from ``budget``."""
        self._budget = budget
        self._total = total
        self._counts = Counter[str]()
        self._started = time.monotonic()
        self._lines = 0
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
        note(f"stopping: {reason}. Pending requests have {GRACE:.0f} s; press Ctrl-C (again) to quit at once")

    def __rich__(self) -> Text:
        return Text(self._status())

    def _status(self) -> str:
        return " · ".join(filter(None, (format_usage(self._budget), f"{self._counts['failed']} failed")))

    def _print_line(self, to_do: int) -> None:
        done = self._counts["played"] + self._counts["failed"]
        lines = done * MAX_LINES // max(to_do, 1)
        if lines > self._lines:
            self._lines = lines
            left = (time.monotonic() - self._started) / done * (to_do - done)
            note(f"{done} of {plural(to_do, 'episode')} · {self._status()} · about {left / 60:.0f} min left")


def format_usage(budget: Budget) -> str:
    """Return the cost and tokens of a budget as text; empty if nothing was paid for."""
    paid = budget.usage
    if not paid.replies:
        return ""
    dollars = f"${paid.cost:.4f}" if paid.unpriced < paid.replies else "price unknown"
    more = f" + {paid.unpriced} of unknown price" if 0 < paid.unpriced < paid.replies else ""
    return f"{dollars}{more} · {paid.tokens:,} tokens"


def print_summary(summary: RunSummary, budget: Budget, folder: Path) -> None:
    """Print what a run played, what failed, and why it or a model was stopped."""
    usage = format_usage(budget)
    paid = f" ({budget.usage.replies} replies, {usage})" if usage else ""
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
