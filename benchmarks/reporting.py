"""Measure reports: 1,980 episodes played, scored and drawn; 20,000 episodes; opening their list in Chromium."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from job import ROOT, run
from measure import Row, hand_over, spread

sys.path.insert(0, str(ROOT))

from tests.results.browser import CHROMIUM, DESKTOP, PHONE, open_browser

EPISODES, MANY = 1_980, 20_000
JOB_SECONDS, OPEN_SECONDS, MEMORY = 60, 2, 2 * 2**30
"""Targets: seconds to play, score and draw; seconds to open the list; bytes for many episodes."""
LEVELS = ",".join(map(str, range(11)))
ROUNDS = 5
OPENED = """new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"""
"""Milliseconds from the start of the navigation until the first picture is drawn."""


def reports(folder: Path) -> Iterator[Row]:
    """Play, report and list the random agent on all trees and levels, then report ten times as many logs."""
    inquitree, env = str(Path(sys.executable).with_name("inquitree")), dict(os.environ)
    flags = ["--agent", "random", "--papers", "all", "--fake-level", LEVELS, "--seeds", "10"]
    played, played_cpu, _ = run([inquitree, "run", *flags, "--out", str(folder / "run")], env)
    drawn, drawn_cpu, peak = run([inquitree, "report", str(folder / "run"), "--out", str(folder / "report")], env)
    total = played + drawn
    yield Row(
        f"{EPISODES:,} episodes of `random`, played and logged, then scored and reported with figures in three formats",
        f"{total:.1f} s ({played:.1f} + {drawn:.1f}; {played_cpu:.1f} + {drawn_cpu:.1f} s of CPU)",
        target=f"< {JOB_SECONDS} s", met=total < JOB_SECONDS,
    )  # fmt: skip
    copy_logs(folder / "run" / "episodes", folder / "many")
    wall, cpu, many_peak = run([inquitree, "report", str(folder / "many"), "--out", str(folder / "long")], env)
    yield Row(
        f"`report` of {MANY:,} logs: CPU time per episode", f"{1e3 * cpu / MANY:.2f} ms ({wall:.0f} s in all)",
        f"{EPISODES:,}: {1e3 * drawn_cpu / EPISODES:.2f} ms", f"{cpu * EPISODES / (MANY * drawn_cpu):.2f}",
    )  # fmt: skip
    yield Row(
        f"peak memory of `report`, {MANY:,} logs", f"{many_peak / 2**20:.0f} MiB",
        f"{EPISODES:,}: {peak / 2**20:.0f} MiB", f"{many_peak / peak:.2f}",
        f"< {MEMORY // 2**20} MiB", many_peak < MEMORY,
    )  # fmt: skip
    wall, cpu, _ = run([inquitree, "view", str(folder / "run")], env)
    yield Row(f"`view` of {EPISODES:,} episodes", f"{wall:.1f} s ({cpu:.1f} s of CPU)")
    if CHROMIUM is not None:
        yield from opening(folder / "run" / "view" / "index.html")


def copy_logs(source: Path, target: Path) -> None:
    """Copy logs under other seeds until there are `MANY`."""
    target.mkdir()
    logs = [log.read_bytes().split(b"\n", 1) for log in sorted(source.iterdir())]
    for number in range(MANY):
        head, turns = logs[number % len(logs)]
        header = json.loads(head)
        header["seed"] += 1_000 * (number // len(logs))
        (target / f"{number}.jsonl").write_bytes(json.dumps(header, ensure_ascii=False).encode() + b"\n" + turns)


def opening(page: Path) -> Iterator[Row]:
    """Open a list in Chromium, at two sizes."""
    with open_browser() as tab:
        tab.send("Performance.enable", timeDomain="threadTicks")
        for name, size in (("desktop", DESKTOP), ("phone", PHONE)):
            found, busy = [], []
            for _ in range(ROUNDS):
                tab.open(page.as_uri(), size)
                found.append(tab.run(OPENED) / 1e3)
                metrics = {each["name"]: each["value"] for each in tab.send("Performance.getMetrics")["metrics"]}
                busy.append(metrics["TaskDuration"])
            took, cpu = spread(found), spread(busy).median
            yield Row(
                f"list of {EPISODES:,} episodes opens in Chromium, {name}",
                f"{took.show('.2f', 's')}; {cpu:.2f} s of CPU",
                target=f"< {OPEN_SECONDS} s", met=took.median < OPEN_SECONDS,
            )  # fmt: skip


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        hand_over(reports(Path(place)))
