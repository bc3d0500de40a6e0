"""Pages served on the loopback address to the browser of the one who started them.

The address holds a token that is drawn at the start. A request with another token, host or origin is refused, so that
neither another page nor another user's program can read or decide. The pages load nothing from elsewhere.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from inquitree_gym.errors import InquiTreeError, OptionError

HOST = "127.0.0.1"
MAX_BODY = 100_000
"""Largest request, in bytes."""
FRAMED_BY_NONE = "frame-ancestors 'none'"
"""Content security policy that a page cannot state in its own text."""


class PageServer(ThreadingHTTPServer):
    """Server of a page, its state as JSON, and the orders that the page sends. A page of its own defines the three."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        """Listen on a port of the loopback address, 0 for a free one.

        Raises:
            OptionError: the port is taken.
        """
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), _PageHandler)
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

    def page(self, name: str) -> tuple[str, str] | None:
        """Return a page and its content security policy by the end of its address. None if there is none.

        The name of the first page is empty.
        """
        raise NotImplementedError

    def state(self) -> Any:
        """Return what the page shows, as plain values. Raise `InquiTreeError` if it cannot be had."""
        raise NotImplementedError

    def act(self, order: Mapping[str, Any]) -> Any:
        """Carry out an order of the page, and return the new state. Raise `InquiTreeError` if it is refused."""
        raise NotImplementedError

    def end(self) -> None:
        """Stop serving when the present request has been answered."""
        threading.Thread(target=self.shutdown).start()


class _PageHandler(BaseHTTPRequestHandler):
    server: PageServer

    def do_GET(self) -> None:
        what = self._asked()
        if what is None:
            return
        try:
            if what == "state":
                self._answer(HTTPStatus.OK, json.dumps(self.server.state()))
            elif (page := self.server.page(what)) is not None:
                self._answer(HTTPStatus.OK, page[0], "text/html; charset=utf-8", page[1])
            else:
                self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")
        except InquiTreeError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))

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
        content = text.encode(errors="replace")
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
