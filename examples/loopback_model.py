"""A server on this machine that speaks OpenAI's protocol, with two players in the place of language models.

python examples/loopback_model.py --port 8321

For trying the benchmark without a key, a network or a price. Both players know the shipped trees by heart, so their
scores mean nothing; ``steady`` slips seldom, ``shaky`` often. Each answers from the request alone: the same messages
get the same answer, today and after a restart.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from inquitree_gym.trees import Tree, builtin_ids, load_tree
from inquitree_gym.trees.document import Study, Subtopic
from inquitree_gym.trees.worlds import actual_world, in_world

Messages = list[dict[str, str]]


class Player(NamedTuple):
    """How often a player does what it does; shares in [0, 1]."""

    slips: float
    """Proposals that say nothing."""
    garbled: float
    """Answers without an ACTION part."""
    doubts_true: float
    """True results that it takes for wrong."""
    doubts_fake: float
    """Fake results that it takes for wrong."""
    knows: float
    """Findings of a conclusion that it gets right; it leaves out the others."""


PLAYERS = {"steady": Player(0.1, 0.02, 0.05, 0.9, 0.95), "shaky": Player(0.4, 0.1, 0.25, 0.5, 0.6)}
TREES = [load_tree(name) for name in builtin_ids()]


def answer(model: str, messages: Messages) -> str:
    """Return what the player of this name says next."""
    player, told = PLAYERS[model], messages[-1]["content"]
    whole = "\n".join(message["content"] for message in messages)
    tree = next(tree for tree in TREES if tree.topic in whole)
    if "VERDICT" in messages[0]["content"]:
        doubts = "DOUBTFUL" if "DOUBTFUL" in messages[0]["content"] else "INVALID"
        return f"REASON: so it seems to me.\nVERDICT: {doubts if _doubts(player, tree, told, model) else 'VALID'}"
    if _draw(model, "garbled", whole) < player.garbled:
        return "I would rather think about it a little longer."
    return f"THOUGHT: I know this one.\nACTION: {_move(player, tree, messages, model)}"


def _move(player: Player, tree: Tree, messages: Messages, model: str) -> str:
    asked = [message["content"] for message in messages if message["role"] == "user"]
    told = next(text for text in reversed(asked) if not text.startswith("Your answer could not be read"))
    done = "\n".join(message["content"] for message in messages if message["role"] == "assistant")
    if "Write your conclusion" in told:
        known = [text for text in _published(tree) if _draw(model, text, done) < player.knows]
        return "\n".join(f"{number}. {text}" for number, text in enumerate(known, 1)) or "Nothing is certain."
    if "Exam." in told:
        return _sheet(told, {text for text in _published(tree) if _draw(model, text, done) < player.knows})
    left = [subtopic for subtopic in tree.subtopics if subtopic.text not in done]
    if "What next?" in told or "Please decide" in told:
        if _doubts(player, tree, told, model + str(len(messages))):
            return "redo the study"
        return "explore new subtopic" if left else "draw conclusion"
    if _draw(model, "slip", str(len(messages)), told) < player.slips:
        return "Let us look at this more closely."
    return _study(tree, done).text if "Design a study" in told else _open(tree, left).text


def _study(tree: Tree, done: str) -> Study:
    """Return the first study of the subtopic that was proposed last."""
    return max(tree.subtopics, key=lambda subtopic: done.rfind(subtopic.text)).studies[0]


def _open(tree: Tree, left: list[Subtopic]) -> Subtopic:
    """Return the first subtopic that is left and may be entered."""
    entered = {subtopic.id for subtopic in tree.subtopics} - {subtopic.id for subtopic in left}
    return next((s for s in left if entered.issuperset(s.requires)), tree.subtopics[0])


def _doubts(player: Player, tree: Tree, told: str, model: str) -> bool:
    """Tell whether the player takes the result that it is shown for wrong."""
    results = [study.outcomes for study in in_world(tree, actual_world(tree)).studies]
    is_fake = any(text in told for _, *fakes in results for wordings in fakes for text in wordings)
    return _draw(model, "doubt", told) < (player.doubts_fake if is_fake else player.doubts_true)


def _published(tree: Tree) -> list[str]:
    """Return the conclusions of the paper."""
    return [item.text for item in in_world(tree, actual_world(tree)).conclusions]


def _sheet(exam: str, known: set[str]) -> str:
    """Return the letters of the statements that the player takes for true. It leaves the other items out."""
    options = re.findall(r"^ *(?:(\d+)\.)? *([A-Z])\. (.+)$", exam, re.MULTILINE)
    answers, number = [], ""
    for found, letter, text in options:
        number = found or number
        if text in known:
            answers.append(f"{number} {letter}")
    return "\n".join(answers) or "I leave out every item."


def _draw(*words: str) -> float:
    """Return a number in [0, 1) that these words alone decide."""
    return int.from_bytes(hashlib.sha256("\n".join(words).encode()).digest()[:8], "big") / 2**64


class Handler(BaseHTTPRequestHandler):
    """Answers ``POST …/chat/completions``."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = body["model"]
        if model in PLAYERS:
            self._send(200, _completion(model, body["messages"]))
        else:
            known = " and ".join(PLAYERS)
            self._send(404, {"error": {"message": f"there is no {model} here, only {known}", "type": "not_found"}})

    def _send(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None: ...


def _completion(model: str, messages: Messages) -> dict[str, Any]:
    text = answer(model, messages)
    read, said = (len(part) // 4 + 1 for part in ("".join(message["content"] for message in messages), text))
    return {
        "id": "loopback", "object": "chat.completion", "created": 0, "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": read, "completion_tokens": said, "total_tokens": read + said},
    }  # fmt: skip


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8321, help="0 takes any that is free")
    with ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/v1 serves {' and '.join(PLAYERS)}; Ctrl-C ends it", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("ended")


if __name__ == "__main__":
    main()
