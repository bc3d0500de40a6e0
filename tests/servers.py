"""A real server on loopback that speaks OpenAI's protocol: chats and embeddings, by script, with every fault."""

from __future__ import annotations

import hashlib
import http.client
import inspect
import json
import re
import socket
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import numpy as np

from inquitree_gym.inquiry.agents.answers import sheet_answers
from inquitree_gym.inquiry.exam import exam_of, sheet_of_world
from inquitree_gym.llm import SystemClock
from inquitree_gym.llm.litellm import load_litellm, run_sync
from inquitree_gym.loopback import PageServer
from inquitree_gym.trees import Tree
from inquitree_gym.trees.worlds import actual_world, in_world

KEY = "sk-0123456789-do-not-tell-anyone"
DIM = 16
"""Length of the vectors of `vector`."""
PROMPT_TOKENS, COMPLETION_TOKENS = 100, 20
"""What a chat answer says it took."""
WAIT_AT_MOST = 600.0
"""Seconds after which a held answer goes out all the same, so that nothing hangs."""

Body = dict[str, Any]


class Request(NamedTuple):
    path: str
    headers: Mapping[str, str]
    """Case-blind."""
    body: Body

    @property
    def last(self) -> str:
        """The newest message of a chat."""
        return self.body["messages"][-1]["content"]


class Answer(NamedTuple):
    status: int
    body: Any
    """Bytes as they are, anything else as JSON."""
    headers: Mapping[str, str] = {}
    missing: int = 0
    """Bytes that the header promises and that never come."""
    held: bool = False
    """Whether it waits until `Service.release`, or the client goes away."""
    dripping: bool = False
    """Whether a byte of it comes every now and then while it is held."""


Planned = Answer | Callable[[], Answer | None]


# Answers


def chat(text: str | None, finish_reason: str = "stop", reasoning: int | None = None, **message: Any) -> Body:
    completion = COMPLETION_TOKENS + (reasoning or 0)
    usage: Body = {
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": completion,
        "total_tokens": PROMPT_TOKENS + completion,
    }
    if reasoning is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text, **message}}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def said(text: str | None, finish_reason: str = "stop", reasoning: int | None = None, **message: Any) -> Answer:
    return Answer(200, chat(text, finish_reason, reasoning, **message))


def failed(status: int, message: str = "the server tripped", **more: Any) -> Answer:
    headers = more.pop("headers", {})
    return Answer(status, {"error": {"message": message, "type": "error", **more}}, headers)


def calling(tool: str, **arguments: Any) -> Body:
    """A message that calls a tool."""
    call = {"name": tool, "arguments": json.dumps(arguments)}
    return {"content": None, "tool_calls": [{"id": "call-1", "type": "function", "function": call}]}


def streamed(body: Body, with_usage: bool) -> bytes:
    """A chat answer as server-sent events: the words one by one, or the call of a tool in two pieces."""
    (choice,) = body["choices"]
    message = choice["message"]
    deltas: list[Body] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in re.findall(r"\s*\S+|\s+$", message["content"] or "")]
    for number, call in enumerate(message.get("tool_calls", ())):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        deltas.append({"tool_calls": [call | {"index": number, "function": {"name": name, "arguments": ""}}]})
        deltas.append({"tool_calls": [{"index": number, "function": {"arguments": arguments}}]})
    choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    choices.append([{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}])
    head = {name: body[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    chunks: list[Body] = [head | {"choices": each} for each in choices]
    chunks += [head | {"choices": [], "usage": body["usage"]}] * with_usage
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks) + b"data: [DONE]\n\n"


def raw(text: str, encoding: str) -> Answer:
    return Answer(200, json.dumps(chat(text), ensure_ascii=False).encode(encoding))


SERVER_FAULT = failed(500)
TOO_MANY = failed(429, "slow down")
UNAVAILABLE = failed(503, "back soon")
CUT = Answer(200, json.dumps(chat("THOUGHT: it is cut\nACTION: here")).encode()[:120], missing=400)
NO_JSON = Answer(200, b"<html>please log in</html>")
NO_CHOICES = Answer(200, chat("x") | {"choices": []})
NO_MESSAGE = Answer(200, chat("x") | {"choices": [{"index": 0, "finish_reason": "stop", "message": None}]})
WRONG_ENCODING = raw("THOUGHT: caf\xe9\nACTION: caf\xe9", "latin-1")
SLOW = Answer(200, b"", missing=1, held=True)
DRIPPING = Answer(200, b" " * 200, missing=1, held=True, dripping=True)
OVERLOADED = Answer(200, {"error": {"message": "overloaded", "code": 529}})
PASSING = {
    "429": TOO_MANY,
    "429 with Retry-After": failed(429, "slow down", headers={"Retry-After": "7"}),
    "500": SERVER_FAULT,
    "503": UNAVAILABLE,
    "cut": CUT,
    "no JSON": NO_JSON,
    "null": Answer(200, b"null"),
    "no choices": NO_CHOICES,
    "no message": NO_MESSAGE,
    "wrong encoding": WRONG_ENCODING,
    "error in 200": OVERLOADED,
}
"""Answers after which another try may help."""
FILTERED = said(None, "content_filter")
REFUSED = said(None, refusal="I cannot help with that.")
USED_UP = said(None, "length", reasoning=500)
"""A reply whose tokens all went into reasoning."""


def vector(text: str) -> list[float]:
    """A vector for a text, the same in every process, not of unit length."""
    bits = np.frombuffer(hashlib.sha256(text.encode()).digest()[:DIM], np.uint8)
    return (bits.astype(float) - 128).tolist()


def entries(vectors: Sequence[Any]) -> Body:
    data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(vectors)]
    return {"object": "list", "model": "m", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}


def parrot(body: Body) -> str:
    """Says the same to everything."""
    return "THOUGHT: I read it.\nACTION: Let us look at it more closely."


class Rote:
    """Plays trees by heart, each request answered from its messages alone: a perfect model, the same at every resume.

    It explores in tree order, redoes nothing, says every verdict VALID, and knows what holds in the actual world.
    """

    def __init__(self, *trees: Tree) -> None:
        self._trees = trees

    def __call__(self, body: Body) -> str:
        messages = body["messages"]
        if "VERDICT" in messages[0]["content"]:
            return "REASON: it agrees with what is known.\nVERDICT: VALID"
        whole = "\n".join(message["content"] for message in messages)
        tree = next(tree for tree in self._trees if tree.topic in whole)
        while messages[-1]["content"].startswith("Your answer could not be read"):
            messages = messages[:-2]
        done = "\n".join(message["content"] for message in messages if message["role"] == "assistant")
        return f"THOUGHT: turn {done.count('ACTION:') + 1}.\nACTION: {self._move(tree, messages[-1]['content'], done)}"

    def _move(self, tree: Tree, told: str, done: str) -> str:
        left = [subtopic for subtopic in tree.subtopics if subtopic.text not in done]
        if "Write your conclusion" in told:
            return "\n".join(
                f"{i}. {item.text}" for i, item in enumerate(in_world(tree, actual_world(tree)).conclusions, 1)
            )
        if told.startswith(("Exam", "No answer")):
            exam = exam_of(tree)
            world = actual_world(tree) or (0,) * len(exam.poles)
            return sheet_answers(tree, told, sheet_of_world(exam, world))
        if "What next?" in told or "Please decide" in told:
            return "explore new subtopic" if left else "draw conclusion"
        if "Design a study" in told:
            return max(tree.subtopics, key=lambda subtopic: done.rfind(subtopic.text)).studies[0].text
        entered = {subtopic.id for subtopic in tree.subtopics} - {subtopic.id for subtopic in left}
        return next(subtopic.text for subtopic in left if entered.issuperset(subtopic.requires))


class Service:
    """The server. Planned answers come first; then chats are answered by ``reply``, embeddings by `vector`.

    ``reply`` says a text, or calls a tool as `calling` does; a chat that asks for a stream gets one. ``headers`` go
    with every answer.
    """

    def __init__(self, reply: Callable[[Body], str | Body] = parrot) -> None:
        self.begin(reply)
        self._connections: set[socket.socket] = set()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_port}/v1"

    def begin(self, reply: Callable[[Body], str | Body] = parrot) -> None:
        """Forget everything; whatever is still held of before stays released."""
        self.headers: dict[str, str] = {}
        self.requests: list[Request] = []
        self.planned: deque[Planned] = deque()
        self.reply = reply
        self._released = threading.Event()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def chats(self) -> list[list[dict[str, str]]]:
        """The messages of every chat that was asked for."""
        return [request.body["messages"] for request in self.requests]

    def release(self) -> None:
        """Let answers go out that are held."""
        self._released.set()

    def wait(self, seconds: float) -> None:
        """Wait for the release, so long at most."""
        self._released.wait(seconds)

    def answer(self, request: Request) -> Answer:
        plan = self.planned.popleft() if self.planned else None
        planned = plan() if callable(plan) else plan
        if planned is not None:
            if planned.held and not planned.dripping:
                self.wait(WAIT_AT_MOST)
            return planned
        if request.path.endswith("/embeddings"):
            found = entries([vector(text) for text in request.body["input"]])
            return Answer(200, found | {"data": found["data"][::-1]})  # the last text first, as a service may
        reply = self.reply(request.body)
        if isinstance(reply, str):
            body = chat(reply)
        else:
            body = chat(reply["content"], "tool_calls", tool_calls=reply["tool_calls"])
        if not request.body.get("stream"):
            return Answer(200, body)
        with_usage = (request.body.get("stream_options") or {}).get("include_usage", False)
        return Answer(200, streamed(body, with_usage), {"Content-Type": "text/event-stream"})

    def close(self) -> None:
        self.release()
        self._server.shutdown()
        self._thread.join()
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, service: Service) -> None:
        self.service = service
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has given up is nothing to tell of."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # header and body in one go, or the system holds the second part back for a while
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.service._connections.add(self.connection)

    def finish(self) -> None:
        self.server.service._connections.discard(self.connection)
        with suppress(ConnectionError):
            super().finish()

    def do_GET(self) -> None:
        self._answer(Request(self.path, self.headers, {}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(Request(self.path, self.headers, body))

    def _answer(self, request: Request) -> None:
        self.server.service.requests.append(request)
        answer = self.server.service.answer(request)
        content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        plain = {"Content-Type": "application/json", "Content-Length": str(len(content) + answer.missing)}
        for name, value in {**plain, **self.server.service.headers, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        for byte in content if answer.dripping else ():
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            self.server.service.wait(0.05)
        self.wfile.write(b"" if answer.dripping else content)
        self.close_connection = self.close_connection or answer.missing > 0

    def log_message(self, *_: object) -> None: ...


def ask_page(server: PageServer, path: str, order: Any = None, **headers: str) -> tuple[int, bytes]:
    """Return status and content of an answer of a page's server: to a GET, or with an order to a POST of the page."""
    body = order if isinstance(order, bytes) else None if order is None else json.dumps(order).encode()
    usual = {} if body is None else {"Origin": server.origin, "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request("GET" if body is None else "POST", path, body, usual | headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def close_clients() -> None:
    """Close the clients that litellm keeps, which would be told of as left open when the process ends."""

    async def close(closing: Awaitable[None]) -> None:
        await closing

    if "litellm" in sys.modules:
        for client in load_litellm().in_memory_llm_clients_cache.cache_dict.values():
            closing = client.close()
            if inspect.isawaitable(closing):
                run_sync(close(closing))


class Hourglass(SystemClock):
    """A clock that waits for nothing and notes what it was asked to wait."""

    def __init__(self, jitter: float = 0.5) -> None:
        self.waits: list[float] = []
        self._jitter = jitter

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def jitter(self) -> float:
        return self._jitter
