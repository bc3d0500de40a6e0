"""Runs in processes of their own, started fast, killed when a server or a log says so."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.runner.nursery import MARK

ROOT = Path(__file__).parents[2]
AT_MOST = 600.0
"""Seconds without a word after which a process is given up."""


class Ended(NamedTuple):
    """How a command ended."""

    status: int
    """Below 0 the signal that killed it."""
    said: str


class Running:
    """A command under way in a nursery."""

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery
        self.pid: int = nursery.message()["pid"]

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait_for(self, words: str) -> None:
        """Wait until it has said ``words``."""
        while words not in self._nursery.said:
            assert self._nursery.read() is None, f"it ended without '{words}': {self._nursery.said}"

    def end(self) -> Ended:
        status = self._nursery.message()["status"]
        said, self._nursery.said = self._nursery.said, ""
        return Ended(status, said)


class Nursery:
    """A process from which runs are forked, one at a time."""

    def __init__(self, *trees: str) -> None:
        command = [sys.executable, "-m", "tests.runner.nursery", *trees]
        env = {**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "200"}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=env)
        self._rest = b""
        self.said = ""
        assert self.message() == {"ready": True}

    def begin(self, *argv: object, **job: Any) -> Running:
        assert self._process.stdin is not None
        line = json.dumps({"argv": list(map(str, argv)), **job}) + "\n"
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()
        return Running(self)

    def run(self, *argv: object, **job: Any) -> Ended:
        return self.begin(*argv, **job).end()

    def message(self) -> dict[str, Any]:
        """Return the next message of the nursery itself."""
        while True:
            message = self.read()
            if message is not None:
                return message

    def read(self) -> dict[str, Any] | None:
        """Read a line; return it if it is a message, and keep it otherwise."""
        line = self._line()
        if line.startswith(MARK):
            found: dict[str, Any] = json.loads(line[1:])
            return found
        self.said += line
        return None

    def _line(self) -> str:
        assert self._process.stdout is not None
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._process.stdout], [], [], AT_MOST)
            assert ready, f"nothing came for {AT_MOST} s after: {self.said}"
            piece = os.read(self._process.stdout.fileno(), 65536)
            assert piece, f"the nursery ended: {self.said}"
            self._rest += piece
        line, self._rest = self._rest.split(b"\n", 1)
        return line.decode() + "\n"

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(AT_MOST)
        finally:
            self._process.kill()
            self._process.stdout.close()
