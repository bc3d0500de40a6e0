"""Measure time and peak memory of the README's main job, without the installation; needs Unix."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import Row, hand_over

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "quickstart.sh"
RUNS = "runs/"
"""Output folder in the script, replaced here by a temporary folder."""
KIBIBYTES = 1 if sys.platform == "darwin" else 1024
"""Bytes in the unit of ``ru_maxrss``."""


def commands(folder: str) -> list[list[str]]:
    """Return the `inquitree` commands of the quickstart script, for this environment and with runs in ``folder``."""
    lines = SCRIPT.read_text(encoding="utf-8").splitlines()
    found = [shlex.split(line)[1:] for line in lines if line.split(" ")[0].endswith("/inquitree")]
    program = str(Path(sys.executable).with_name("inquitree"))
    return [[program, *(str(Path(folder, w)) if w.startswith(RUNS) else w for w in words)] for words in found]


def main_job() -> list[Row]:
    """Run the commands one after the other, with an empty folder for the run and an empty vector cache."""
    rows = []
    with TemporaryDirectory() as folder:
        env = {**os.environ, "INQUITREE_CACHE": str(Path(folder, "vectors"))}
        for command in commands(folder):
            took, cpu, peak = run(command, env)
            what = f"main job, `inquitree {command[1]}`" + (", empty vector cache" if command[1] == "run" else "")
            rows.append(Row(what, f"{took:.1f} s ({cpu:.1f} s of CPU), peak {peak / 2**20:.0f} MiB"))
    return rows


def run(command: list[str], env: dict[str, str]) -> tuple[float, float, int]:
    """Return wall seconds, CPU seconds and peak resident bytes of one command."""
    begun = time.perf_counter()
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        assert child.stderr is not None
        complaints = child.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(child.pid, 0)
        took = time.perf_counter() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{shlex.join(command)} ended with status {child.returncode}: {complaints}")
    return took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * KIBIBYTES


if __name__ == "__main__":
    hand_over(main_job())
