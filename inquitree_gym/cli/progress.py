"""How a run shows itself while it goes on, and what it says at the end."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from inquitree_gym.cli.output import err
from inquitree_gym.llm import Budget
from inquitree_gym.runner.run import Outcome, RunSummary
from inquitree_gym.runner.stop_conditions import GRACE

LINES = 20
"""Lines at most that tell how far a run is, where there is no terminal."""
KINDS = 10
"""Kinds of failures that are told."""
_DAY = 86_400.0
"""Seconds over which the speed is measured: episodes may take long."""


class Live:
    """Counts outcomes, and shows them: as a bar on a terminal, as a line now and then elsewhere."""

    def __init__(self, total: int, budget: Budget) -> None:
        """Expect ``total`` episodes, paid from ``budget``."""
        self._budget = budget
        self._total = total
        self._counts = Counter[str]()
        self._begun = time.monotonic()
        self._told = 0
        columns = (
            TextColumn("playing"), BarColumn(), MofNCompleteColumn(), _Said(self), TimeRemainingColumn(),
        )  # fmt: skip
        self._bars = Progress(*columns, console=err, transient=True, speed_estimate_period=_DAY)
        self._bar = self._bars.add_task("", total=total)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show it during the block."""
        if not err.is_terminal:
            yield
            return
        with self._bars:
            yield

    def tell(self, outcome: Outcome) -> None:
        """Take note of an outcome."""
        self._counts[outcome.status] += 1
        if outcome.status == "found":
            self._bars.update(self._bar, total=self._to_do)
            return
        if outcome.status != "left":
            self._bars.advance(self._bar)
        if not err.is_terminal:
            self._tell_line()

    def tell_end(self, reason: str) -> None:
        """Say that the run ends, and how."""
        err.print(
            Text(f"ending: {reason}. Requests under way have {GRACE:.0f} s; Ctrl-C (again) leaves at once"),
            soft_wrap=True,
        )

    @property
    def _to_do(self) -> int:
        return self._total - self._counts["found"]

    @property
    def _done(self) -> int:
        return self._counts["played"] + self._counts["failed"]

    @property
    def said(self) -> str:
        """What was paid, and what failed."""
        return " · ".join(filter(None, (paid_words(self._budget), f"{self._counts['failed']} failed")))

    def _tell_line(self) -> None:
        step = self._done * LINES // max(self._to_do, 1)
        if step > self._told:
            self._told = step
            left = (time.monotonic() - self._begun) / self._done * (self._to_do - self._done)
            err.print(
                f"{self._done} of {self._to_do} episodes · {self.said} · about {left / 60:.0f} min left", soft_wrap=True
            )


class _Said(ProgressColumn):
    """What a run has to say beside its bar, as it is now."""

    def __init__(self, live: Live) -> None:
        super().__init__()
        self._live = live

    def render(self, task: Task) -> Text:
        return Text(self._live.said)


def paid_words(budget: Budget) -> str:
    """Say what was paid for; an empty string for nothing."""
    paid = budget.paid
    if not paid.replies:
        return ""
    dollars = f"${paid.dollars:.4f}" if paid.unpriced < paid.replies else "price unknown"
    more = f" + {paid.unpriced} replies of unknown price" if 0 < paid.unpriced < paid.replies else ""
    return f"{dollars}{more} · {paid.tokens:,} tokens"


def tell_summary(summary: RunSummary, budget: Budget, folder: Path) -> None:
    """Say on the error stream what a run did, what failed, what is left and why."""
    words = paid_words(budget)
    paid = f" ({budget.paid.replies} replies, {words})" if words else ""
    err.print(f"{summary.played} episodes played, {summary.found} were there already: {folder}{paid}", soft_wrap=True)
    reasons: dict[str, list[str]] = {}
    for outcome in summary.failures:
        reasons.setdefault(outcome.error, []).append(outcome.spec.file_name)
    for error, names in list(reasons.items())[:KINDS]:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        err.print(Text(f"failed: {names[0]}{more}: {error}"), soft_wrap=True)
    if len(reasons) > KINDS:
        err.print(f"failed: {len(reasons) - KINDS} more kinds of failures; the logs say which")
    for model, reason in summary.models.items():
        err.print(Text(f"stopped: the rest of '{model}': {reason}"), soft_wrap=True)
    if summary.ended:
        err.print(Text(f"stopped: {summary.ended}"), soft_wrap=True)


@contextmanager
def ended_like_ctrl_c() -> Iterator[None]:
    """Let a request to terminate end the block as Ctrl-C does, in order.

    Where Ctrl-C is ignored, as in what a script starts in the background, that request ends the process at once.
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
