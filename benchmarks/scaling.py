"""Measure what a plan of a large run needs: bytes and CPU time of an episode, and scoring on one and on two workers."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from job import run
from measure import Row, hand_over, ratios, seconds, spread

from inquitree_gym.cluster import map_on
from inquitree_gym.errors import require
from inquitree_gym.results.load import score_logs
from inquitree_gym.results.logs import find_logs

FEW, MANY = 2, 24
"""Seeds of two runs of the random agent on all trees. Their difference is free of the time to start."""
ROUNDS = 3


def episodes() -> Iterator[Row]:
    """Play and score two runs, and take the difference."""
    with TemporaryDirectory() as folder:
        cpu: dict[str, list[float]] = {"run": [], "score": []}
        for seeds in (FEW, MANY):
            logs = str(Path(folder, str(seeds)))
            random = ["--agent", "random", "--papers", "all", "--seeds", str(seeds), "--out", logs]
            cpu["run"].append(command("run", *random))
            cpu["score"].append(command("score", logs))
        sizes = [file.stat().st_size for file in Path(folder, str(MANY), "episodes").iterdir()]
        played = len(sizes) * (MANY - FEW) // MANY
        median = f"median {statistics.median(sizes):,.0f}"
        yield Row(f"bytes of a log of `random`, {len(sizes)} logs", f"{statistics.fmean(sizes):,.0f} ({median})")
        for verb, (few, many) in cpu.items():
            each = 1e3 * (many - few) / played
            yield Row(f"CPU time of an episode of `random`, `inquitree {verb}`", f"{each:.1f} ms")
        yield from on_ray(Path(folder, str(MANY)))


def command(*words: str) -> float:
    """Return the CPU seconds of a command."""
    program = "from inquitree_gym.cli import main; main()"
    _, cpu, _ = run([sys.executable, "-c", program, *words], dict(os.environ))
    return cpu


def on_ray(folder: Path) -> Iterator[Row]:
    """Score a run on clusters of one and of two processors, which are started before the time is taken."""
    ray: Any = require("ray", "ray")
    rates: dict[int, list[float]] = {}
    for cpus in (1, 2) * ROUNDS:
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # confines the cluster to the loopback address
        ray.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000)
        try:
            score(folder)  # starts the workers
            rates.setdefault(cpus, []).append(len(find_logs(folder).entries) / seconds(lambda: score(folder)))
        finally:
            ray.shutdown()
    one, two = rates[1], rates[2]
    shown = f"one: {spread(one).show('.0f', '/s')}"
    yield Row(
        "logs scored on Ray, two workers", spread(two).show(".0f", "/s"), shown, ratios(two, one).show(".2f"),
    )  # fmt: skip


def score(folder: Path) -> None:
    """Score a run on the cluster at hand."""
    with map_on("local", folder) as mapped:
        score_logs(find_logs(folder), mapped=mapped)


if __name__ == "__main__":
    hand_over([*episodes()])
