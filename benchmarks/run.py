"""Run every benchmark and print one table: ``python benchmarks/run.py [--markdown FILE] [--only NAME ...]``.

Figures are medians over alternating rounds with their quartiles in brackets; ratios are taken within a round, so that
a machine that other work slows down slows both sides alike. Each benchmark has a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from measure import Row, as_table

HERE = Path(__file__).parent
BENCHMARKS = (
    "starting",
    "stepping",
    "batched",
    "batch",
    "job",
    "running",
    "playing",
    "reporting",
    "synthetic",
    "exploring",
    "serving",
    "doors",
    "accelerator",
)
ON_REQUEST = ("embedders",)
"""Benchmarks that need models made by other commands first."""
PACKAGES = ("inquitree-gym", "gymnasium", "numpy", "pydantic", "sentence-transformers", "transformers", "torch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table to this file, too")
    parser.add_argument(
        "--only", nargs="+", choices=(*BENCHMARKS, *ON_REQUEST), default=BENCHMARKS, metavar="NAME", help="only these"
    )
    options = parser.parse_args()
    rows, loads = [], [load()]
    for name in options.only:
        print(f"{name} …", file=sys.stderr, flush=True)
        rows += benchmark(name)
        loads.append(load())
    text = f"{as_table(rows)}\n\n{machine(loads)}\n"
    print(text, end="")
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")


def benchmark(name: str) -> list[Row]:
    """Run one benchmark in a process of its own, without progress bars."""
    done = subprocess.run([sys.executable, str(HERE / f"{name}.py")], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"benchmark '{name}' failed with status {done.returncode}; its message stands above")
    return [Row(*fields) for fields in json.loads(done.stdout)]


def load() -> float:
    """Return the one-minute load average."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def machine(loads: list[float]) -> str:
    """Describe the machine and the versions of the packages."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"Median [quartiles] of alternating rounds. {os.cpu_count()} CPU cores ({platform.machine()}), "
        f"{platform.system()}, Python {platform.python_version()}, {packages}. "
        f"One-minute load average before, between and after: {', '.join(f'{value:.1f}' for value in loads)}."
    )


if __name__ == "__main__":
    main()
