"""The command line in this process, and runs of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from inquitree_gym.cli import main, run_app
from inquitree_gym.log import Episode, read_episode
from tests.contract.conftest import KindCase

OWN_AGENT = """
class Parrot:
    needs_privileged, config = False, {"name": "parrot"}
    def reset(self, seed): self.seed = seed
    def act(self, observation, info): return observation[-20:]
    def recall(self, observation, info, action): pass

def make(env):
    return Parrot()
"""


class Done(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """The error stream without line breaks."""
        return " ".join(self.err.split())

    @property
    def json(self) -> Any:
        assert self.status == 0, self.err
        return json.loads(self.out)


def ended(command: Callable[[], int | None], stdin: str = "") -> Done:
    """Run a command with something typed."""
    out, err = StringIO(), StringIO()
    status = 0
    with redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", StringIO(stdin)):
        try:
            status = command() or 0
        except SystemExit as left:
            status = int(left.code or 0)
    return Done(status, out.getvalue(), err.getvalue())


def inquitree(*arguments: object, stdin: str = "") -> Done:
    """Run the command line."""
    with patch("sys.argv", ["inquitree"]):
        return ended(lambda: main([*map(str, arguments)]), stdin)


def run_tool(tool: Callable[[], object], *arguments: object) -> Done:
    """Run a tool of ``research``."""
    with patch("sys.argv", ["tool", *map(str, arguments)]):
        return ended(lambda: run_app(tool))


@dataclass(frozen=True)
class Run:
    """A run of one small task of a kind."""

    case: KindCase
    folder: Path
    task_file: Path

    def flags(self, *agents: str, seeds: int = 2, folder: Path | None = None) -> tuple[object, ...]:
        names = ",".join(agents or self.case.agents)
        run = ("--env", self.case.name, "--agent", names, "--papers", self.task_file, "--seeds", seeds)
        return ("run", *run, "--out", folder or self.folder)

    @property
    def logs(self) -> dict[str, bytes]:
        return logs(self.folder)


def logs(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((folder / "episodes").iterdir())}


def episodes(folder: Path) -> dict[str, Episode]:
    return {file.name: read_episode(file) for file in sorted((folder / "episodes").iterdir())}


def fingerprints(folder: Path) -> dict[str, str]:
    return {name: episode.fingerprint for name, episode in episodes(folder).items()}


def begin(case: KindCase, folder: Path) -> Run:
    """Write the task of a kind to a file, and run its agents without a model on it."""
    file = folder / f"{case.task.id}.json"
    file.write_bytes(case.kind.tasks.dump(case.task))
    run = Run(case, folder / "run", file)
    done = inquitree(*run.flags())
    assert done.status == 0, done.err
    return run
