"""A process that has imported everything and forks the command line when asked: a start costs milliseconds.

Started as ``python -m tests.runner.nursery``. It reads one job a line, and writes a line with the pid,
whatever the command says, and a line with the status that it ended with.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
from typing import Any

from inquitree_gym.cli import main
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder, tree_vectors
from inquitree_gym.llm.litellm import load_litellm
from inquitree_gym.log import JsonlWriter, to_line
from inquitree_gym.runner import run as runner
from inquitree_gym.trees import load_tree

LATE = ("openai.resources", "litellm._service_logger", "litellm.proxy._types")
"""What litellm imports with the first request, which takes half a second."""
MARK = "\x1e"
"""Begins the lines of the nursery itself."""


def serve() -> None:
    load_litellm()
    for name in LATE:
        importlib.import_module(name)
    for name in sys.argv[1:]:
        tree = load_tree(name)
        tree_vectors(tree, load_embedder(DEFAULT_EMBEDDER)).of(tree.topic)
    say(ready=True)
    for line in sys.stdin.buffer:  # the text stream is left to the commands
        job = json.loads(line)
        child = os.fork()
        if not child:
            run(job)
        say(pid=child)
        _, status = os.waitpid(child, 0)
        say(status=os.waitstatus_to_exitcode(status))


def say(**message: Any) -> None:
    sys.stdout.write(MARK + json.dumps(message) + "\n")
    sys.stdout.flush()


def run(job: dict[str, Any]) -> None:
    """Be the command, and die where the job says so."""
    os.dup2(1, 2)
    # As from a terminal, or as from a script's background; what xdist hands on is the latter.
    signal.signal(signal.SIGINT, signal.SIG_IGN if job.get("deaf") else signal.default_int_handler)
    sys.argv = ["inquitree", *job["argv"]]
    if "file_size" in job:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["file_size"], job["file_size"]))
    runner.GRACE = job.get("grace", runner.GRACE)
    if "die_in_line" in job:
        die_in_line(*job["die_in_line"])
    status = 0
    try:
        main()
    except SystemExit as left:
        status = int(left.code or 0)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def die_in_line(number: int, share: float) -> None:
    """Let the process be killed with that share of a line written: the one of that number, over all logs."""
    written = 0
    write = JsonlWriter.write

    def write_or_die(self: JsonlWriter, record: Any) -> None:
        nonlocal written
        written += 1
        if written == number:
            line = to_line(record).encode()
            with self.path.open("ab") as stream:
                stream.write(line[: int(len(line) * share)])
            os.kill(os.getpid(), signal.SIGKILL)
        write(self, record)

    JsonlWriter.write = write_or_die  # type: ignore[method-assign]


if __name__ == "__main__":
    serve()
