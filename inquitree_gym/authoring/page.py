"""Page of a review, served on the loopback address to the browser of the one who started it.

The address holds a token that is drawn at the start. A request with another token, host or origin is refused, so that
neither another page nor another user's program can read or decide. The page loads nothing from elsewhere.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any

from inquitree_gym.authoring.findings import EDGES, Findings, Quotation
from inquitree_gym.errors import InquiTreeError, OptionError
from inquitree_gym.trees.drawing import diagram
from inquitree_gym.trees.schema import Tree

HOST = "127.0.0.1"
MAX_BODY = 100_000
"""Largest request, in bytes."""
POLICY = (
    "default-src 'none'; style-src 'nonce-{0}'; script-src 'nonce-{0}'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

Save = Callable[[Findings], Tree]


def page_state(tree: Tree, findings: Findings, quotations: Mapping[str, list[Quotation]]) -> dict[str, Any]:
    """Return what the page shows, as plain values: the drawing of the tree, and each row with its decision."""
    homes = {subtopic.id: subtopic.id for subtopic in tree.subtopics}
    homes |= {study.id: subtopic.id for subtopic in tree.subtopics for study in subtopic.studies}
    places = {text: path for path, text in tree.texts().items()}
    rows = []
    for finding, decision in zip(findings.rows, findings.states, strict=True):
        rows.append(
            finding.model_dump(mode="json")
            | {
                "why": finding.why,
                "home": homes.get(finding.node, ""),
                "place": finding.node if finding.rule in EDGES else places.get(finding.text, finding.node),
                "quotations": [each.model_dump() for each in quotations.get(finding.node, ())],
                "decision": None if decision is None else decision.model_dump(mode="json"),
            }
        )
    return {
        "id": tree.id,
        "title": tree.paper.title,
        "topic": tree.topic,
        "reviewed": tree.reviewed,
        "diagram": asdict(diagram(tree)),
        "rows": rows,
        "decisions": len(findings.decisions),
    }


class ReviewServer(ThreadingHTTPServer):
    """Server of the page. Every decision is saved before it is answered."""

    daemon_threads = True

    def __init__(
        self, tree: Tree, findings: Findings, quotations: Mapping[str, list[Quotation]], by: str, save: Save,
        port: int = 0,
    ) -> None:  # fmt: skip
        """Listen on a port of the loopback address, 0 for a free one.

        Raises:
            OptionError: the port is taken.
        """
        self.tree, self.findings, self._quotations = tree, findings, quotations
        self._by, self._save, self._lock = by, save, threading.Lock()
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), _ReviewHandler)
        except OSError as error:
            raise OptionError(f"cannot listen on {HOST}:{port}: {error.strerror}; take another --port") from error

    @property
    def origin(self) -> str:
        """Origin of the page."""
        return f"http://{HOST}:{self.server_port}"

    @property
    def address(self) -> str:
        """Address of the page."""
        return f"{self.origin}/{self.token}/"

    def state(self) -> dict[str, Any]:
        """See `page_state`."""
        return page_state(self.tree, self.findings, self._quotations)

    def act(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an order of the page: decide, undo or finish. Return the new state.

        Raises:
            OptionError: the order is none, or does not fit the rows.
        """
        with self._lock:
            match order:
                case {"do": "decide", "row": int(row), "choice": "accepted" | "edited" | "rejected" as choice}:
                    text = order.get("text")
                    found = self.findings.decide(row, choice, self._by, text if isinstance(text, str) else None)
                case {"do": "undo"}:
                    found = self.findings.undo()
                case {"do": "finish"}:
                    threading.Thread(target=self.shutdown).start()
                    return self.state()
                case _:
                    raise OptionError("an order must be decide, undo or finish; reload the page")
            self.tree, self.findings = self._save(found), found
            return self.state()


class _ReviewHandler(BaseHTTPRequestHandler):
    server: ReviewServer

    def do_GET(self) -> None:
        what = self._asked()
        if what == "":
            nonce = secrets.token_urlsafe(16)
            page = resources.files(__package__).joinpath("review.html").read_text(encoding="utf-8")
            self._answer(HTTPStatus.OK, page.replace("NONCE", nonce), "text/html; charset=utf-8", POLICY.format(nonce))
        elif what == "state":
            self._answer(HTTPStatus.OK, json.dumps(self.server.state()))
        elif what is not None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    def do_POST(self) -> None:
        if self._asked() != "act":
            return
        length = self.headers.get("Content-Length", "")
        if self.headers.get("Origin") != self.server.origin or self.headers.get("Content-Type") != "application/json":
            self._refuse(HTTPStatus.FORBIDDEN, "orders come from the page itself, as JSON")
        elif not length.isdecimal() or int(length) > MAX_BODY:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"an order has at most {MAX_BODY:,} bytes")
        else:
            try:
                order = json.loads(self.rfile.read(int(length)))
                self._answer(HTTPStatus.OK, json.dumps(self.server.act(order)))
            except (InquiTreeError, ValueError) as error:
                self._refuse(HTTPStatus.BAD_REQUEST, str(error))

    def _asked(self) -> str | None:
        """Return the path behind the token. Refuse the request and return None for another host or token."""
        _, token, *rest = f"{self.path}//".split("/")
        if f"http://{self.headers.get('Host')}" != self.server.origin:
            self._refuse(HTTPStatus.FORBIDDEN, "this is not the address of the page")
        elif not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, "the token is wrong; open the address that the command printed")
        else:
            return rest[0]
        self.close_connection = True
        return None

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True
        self._answer(status, json.dumps({"error": why}))

    def _answer(self, status: HTTPStatus, text: str, kind: str = "application/json", policy: str = "") -> None:
        content = text.encode()
        self.send_response(status)
        headers = {
            "Content-Type": kind, "Content-Length": str(len(content)), "Cache-Control": "no-store",
            "Content-Security-Policy": policy or "default-src 'none'", "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }  # fmt: skip
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing: the address holds the token."""
