"""Measure turns through the adapters for trainers, beside the bare environment and `play`; all texts have been seen."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

from measure import Row, hand_over, seconds
from serving import TREE, Way, measured

from inquitree_gym.integrations.trl import TRLSpec

sys.path.append(str(Path(__file__).parents[1] / "environments" / "inquitree"))

ROUNDS = 7
"""Each plays one episode of the oracle in every way."""
TRL_TARGET = 0.05
VERIFIERS_TARGET = 5.0
"""Milliseconds per turn at most."""


class Prompter(ThreadingHTTPServer):
    """A model on loopback that says the given actions, one after the other; ``asked`` has the times of its requests."""

    def __init__(self, actions: Sequence[str]) -> None:
        """Start to serve in a thread."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.actions = actions
        self.asked: list[float] = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    """Answers with the action of the turn that the messages have come to."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Prompter

    def do_POST(self) -> None:
        """Answer a chat."""
        self.server.asked.append(time.perf_counter())
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = sum(message["role"] == "assistant" for message in body["messages"])
        message = {"role": "assistant", "content": f"THOUGHT: as before.\nACTION: {self.server.actions[said]}"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        content = json.dumps({**answer, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def over_trl(actions: Sequence[str]) -> float:
    """Return milliseconds per turn of the environment that TRL calls."""
    spec = TRLSpec(TREE, seeds=1)
    environment = spec.environment_factory()
    environment.reset(**spec.train_dataset[0])
    return 1_000 * seconds(lambda: [environment.move(action) for action in actions]) / len(actions)


def over_verifiers(actions: Sequence[str]) -> float:
    """Return the median milliseconds from one request of a rollout to the next; its start, 30 ms, is left out."""
    import verifiers.v1 as vf

    model = Prompter(actions)

    async def rollout() -> bool:
        env = vf.load_environment(vf.resolve_env_config({"taskset": {"id": "inquitree", "papers": TREE, "seeds": 1}}))
        client = vf.EvalClientConfig(base_url=f"http://127.0.0.1:{model.server_port}/v1", api_key_var="NO_KEY")
        context = vf.ModelContext(model="m", client=client, sampling=vf.Sampling())
        async with env.serving():
            (task,) = env.taskset
            episode = await env.run_slot(env.slots(task)[0], context)
        return episode.ok

    try:
        assert asyncio.run(rollout())
    finally:
        model.shutdown()
        model.server_close()
    assert len(model.asked) == len(actions)
    return 1_000 * statistics.median(later - sooner for sooner, later in pairwise(model.asked))


def main() -> list[Row]:
    """Return the rows of the table."""
    ways = (
        Way("turn over TRL", over_trl, TRL_TARGET, "trl", form=".3f"),
        Way("turn over verifiers, with a model on loopback", over_verifiers, VERIFIERS_TARGET, "verifiers"),
    )
    return measured(ways, ROUNDS)


if __name__ == "__main__":
    hand_over(main())
