"""Helpers of the benchmarks: rows of the table, medians with their spread, alternating rounds, fresh processes."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

HEAVY = ("torch", "transformers", "litellm", "sentence_transformers", "sklearn", "scipy", "pydantic", "jinja2")
"""Modules that are slow to import."""
FORBIDDEN = HEAVY[:3]
"""Modules that neither the import of the package nor a first reset may load."""


class Row(NamedTuple):
    """One line of the table."""

    what: str
    measured: str
    against: str = "–"
    ratio: str = "–"
    target: str = "–"
    met: bool | None = None
    """None without a target."""


class Spread(NamedTuple):
    """Median and quartiles over rounds."""

    low: float
    median: float
    high: float

    def show(self, form: str, unit: str = "") -> str:
        """Return ``median unit [low, high]``, each number in the format ``form``."""
        unit = f" {unit}" if unit else ""
        return f"{self.median:{form}}{unit} [{self.low:{form}}, {self.high:{form}}]"


def spread(values: Iterable[float]) -> Spread:
    """Return the median and quartiles of two values or more."""
    return Spread(*statistics.quantiles(values, n=4, method="inclusive"))


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Return the spread of the ratio over rounds in which both were measured."""
    return spread(a / b for a, b in zip(ours, theirs, strict=True))


def alternate(tasks: Sequence[Callable[[], Any]], rounds: int) -> list[list[Any]]:
    """Call every task once per round and return the values of each task; every second round runs in reverse order."""
    values: list[list[Any]] = [[] for _ in tasks]
    for number in range(rounds):
        order = range(len(tasks)) if number % 2 == 0 else reversed(range(len(tasks)))
        for index in order:
            values[index].append(tasks[index]())
    return values


def seconds(task: Callable[[], Any]) -> float:
    """Return the seconds that ``task`` takes."""
    begun = time.perf_counter()
    task()
    return time.perf_counter() - begun


def fresh(code: str) -> Any:
    """Run ``code`` in a process of its own and return the JSON that it prints."""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def hand_over(rows: Iterable[Row]) -> None:
    """Print rows for `run.py`, which runs every benchmark in a process of its own."""
    print(json.dumps(list(rows)))


def as_table(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table with columns of even width."""
    lines = [["benchmark", "result", "baseline", "ratio", "target", "met"]]
    lines += [[*row[:5], {None: "–", True: "yes", False: "no"}[row.met]] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )
