"""A model on loopback for `fingerprints.py`: it notes every request, and its answers depend on the messages alone."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]

MOVES = ("redo_study", "explore_new_subtopic", "draw_conclusion", "explore new subtopic", "redo the study")
PROJECTION = "I expect that the treatment increases the first outcome and reduces the second one."
DISCLOSURE: dict[str, Body] = {
    '"procedure"': {
        "experiment": True,
        "title": "Bread",
        "topic": "Bread dough",
        "procedure": ["Prepare doughs that differ in yeast.", "Measure the height of each dough after two hours."],
    },
    '"hypothesis"': {"hypothesis": "If dough has more yeast, then it rises higher."},
    '"null_hypothesis"': {
        "null_hypothesis": "If the amount of yeast differs, then there is no change in the height of the dough.",
        "question": "How does yeast affect dough?",
        "outcome": "This study finds that yeast increases the height of the dough.",
    },
    '"claims"': {
        "claims": [
            {
                "independent": "yeast in the dough",
                "relation": "increases",
                "dependent": "the height of the dough",
                "contraries": ["Yeast in the dough decreases the height of the dough."],
            }
        ]
    },
}
"""Answers of the model that discloses a paper, by a field that the request asks for."""


class LoopbackModel:
    """A server that speaks OpenAI's protocol. ``bodies`` holds the requests since the last `take`."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Listen on a free port. ``texts`` are the proposals of the model when it plays an inquiry."""
        self.bodies: list[Body] = []
        self._texts = [*texts, *MOVES * 4]
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_port}/v1"

    def take(self) -> list[Body]:
        """Return the requests so far, and forget them."""
        bodies, self.bodies = self.bodies, []
        return bodies

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, body: Body) -> str:
        """Return the reply to a request."""
        system, asked = body["messages"][0]["content"], body["messages"][-1]["content"]
        drawn = int(hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()[:8], 16)
        if verdicts := re.search(r"VERDICT: (\w+) or (\w+)", system):
            return f"REASON: so it seems.\nVERDICT: {verdicts[1 + drawn % 2]}"
        if codes := re.findall(r"^(F\d+-[0-9A-F]{6}): ", asked, re.MULTILINE):
            return "\n".join(
                f"REASON {code}: so it is.\nVERDICT {code}: {(0, 0.6, 1)[(drawn + place) % 3]}"
                for place, code in enumerate(codes)
            )
        if system.startswith("You compare what somebody projected"):
            return _alignment(asked)
        if system.startswith("You turn a scientific paper"):
            return json.dumps(next(reply for field, reply in DISCLOSURE.items() if field in asked))
        if choices := re.search(r"Which of (.*), or none\?", asked):
            return [*choices[1].split(", "), "none"][drawn % 5]
        if "Say what you expect the study to have found" in system:
            return f"THOUGHT: hm.\nACTION: {PROJECTION}" if "THOUGHT" in system else PROJECTION
        return self._move(drawn, "BELIEF" in system + asked)

    def _move(self, drawn: int, belief: bool) -> str:
        if drawn % 11 == 0:
            return "I would rather think about it a little longer."
        stated = f"BELIEF: fake {0.5 + drawn % 5 / 10}\n" if belief else ""
        return f"THOUGHT: move {drawn % 7}.\n{stated}ACTION: {self._texts[drawn % len(self._texts)]}"


def _alignment(asked: str) -> str:
    """Answer a request of the judge of projections: every true claim has a projected one, and none is left over."""
    codes = list(dict.fromkeys(re.findall(r"^([CP]\d+-[0-9A-F]{6})\b", asked, re.MULTILINE)))
    if "find the analogous" in asked:
        return json.dumps({code: f"The claim at place {place}." for place, code in enumerate(codes)})
    if "further claims" in asked:
        return json.dumps(["One more claim."])
    if "Rate how" in asked:
        return "\n".join(
            f"REASON {code}: said.\nRATING {code}: {(1, 0, -1)[place % 3]}" for place, code in enumerate(codes)
        )
    return json.dumps(dict.fromkeys(codes, "N/A"))


def _handler(model: LoopbackModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # header and body at once, so that the system holds nothing back

        def do_POST(self) -> None:
            """Note the request, and answer it."""
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            model.bodies.append(body)
            message = {"role": "assistant", "content": model.answer(body)}
            usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
            choices = [{"index": 0, "finish_reason": "stop", "message": message}]
            chat = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
            content = json.dumps(chat | {"choices": choices, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    return Handler
