"""The live web as a provider: a search service through litellm, and pages as plain text."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from inquitree_gym.errors import BudgetError, OptionError, ServiceError, require
from inquitree_gym.exploration.library import Document, paged
from inquitree_gym.exploration.providers import HITS, SNIPPET, Hit, Listing, ToolFault
from inquitree_gym.llm.litellm import load_litellm, scrub

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inquitree_gym.exploration.actions import Test

REDIRECTS = 5
"""Redirects that are followed."""
KEPT = 64
"""Pages that are kept, so that FIND and further pages of a document make no request."""
_TEXT_TYPES = ("text/", "application/xhtml+xml", "application/xml", "application/json")
_HIDDEN = frozenset({"script", "style", "noscript", "template", "svg", "head"})
_INLINE = frozenset({"a", "b", "i", "em", "strong", "span", "sub", "sup", "code", "small", "abbr", "u", "mark", "q"})


class WebError(ServiceError):
    """The search service gave no usable answer. The agent is not to blame, and the episode has no score."""


class WebSearch:
    """A search service and the pages of the web. It changes, so an episode on it cannot be repeated without a cassette.

    A page that cannot be read is told to the agent. A service that fails and a budget that is used up end the episode
    by an error: it has a status, and no score.
    """

    digest = None

    def __init__(  # noqa: PLR0913  (keywords)
        self,
        engine: str,
        *,
        address: str | None = None,
        key: str | None = None,
        max_requests: int | None = None,
        max_dollars: float | None = None,
        dollars_per_search: float | None = None,
        pace: float = 1.0,
        timeout: float = 20.0,
        max_bytes: int = 2_000_000,
        loopback: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Choose the service and its limits.

        Args:
            engine: litellm's name of the search service, such as ``"tavily"``, ``"exa_ai"`` or ``"searxng"``.
            address: URL of the service. None for litellm's.
            key: its key. None for the environment variable that litellm reads.
            max_requests: searches and pages at most. None for no limit.
            max_dollars: cost of the searches at most, in US dollars. None for no limit.
            dollars_per_search: price of a search. None for the one in litellm's list.
            pace: seconds between the beginnings of two requests at least.
            timeout: seconds for a search or a page, redirects included.
            max_bytes: bytes of a page at most.
            loopback: True to read pages of this machine, for tests. Other private addresses are never read.
            sleep: waits some seconds.

        Raises:
            OptionError: a limit is out of range, or ``max_dollars`` has no price to go by.
            MissingExtraError: litellm is not installed.
        """
        limits = {"max_requests": max_requests, "max_dollars": max_dollars, "timeout": timeout, "max_bytes": max_bytes}
        for name, value in limits.items():
            if value is not None and not value > 0:
                raise OptionError(f"{name} must be above 0, got {value}. Choose another.")
        if not pace >= 0:
            raise OptionError(f"pace must be 0 seconds or more, got {pace}. Choose another.")
        self.name = f"web-{engine}"
        self._engine, self._address, self._key = engine, address, key
        self._max_requests, self._max_dollars = max_requests, max_dollars
        self._pace, self._timeout, self._max_bytes = pace, timeout, max_bytes
        self._loopback, self._sleep = loopback, sleep
        self._litellm, self._httpx = load_litellm(), require("httpx", "llm")
        self._price = _price(self._litellm, engine) if dollars_per_search is None else dollars_per_search
        if self._price is None and max_dollars is not None:
            raise OptionError(f"max_dollars must have a price of {engine}, got none. Give dollars_per_search.")
        self.requests, self.dollars = 0, 0.0
        self._last, self._lock = -pace, threading.Lock()
        self._pages: OrderedDict[str, Document] = OrderedDict()

    def search(self, query: str) -> Sequence[Hit]:
        """Return the first hits of the service, by URL.

        Raises:
            WebError: the service gave no usable answer.
            BudgetError: a limit is reached.
        """
        self._spend(self._price or 0.0)
        asked = {"query": query, "search_provider": self._engine, "max_results": HITS, "timeout": self._timeout}
        try:
            found = self._litellm.search(**asked, api_base=self._address, api_key=self._key).results
        except (require("openai", "llm").OpenAIError, self._httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            said, status = scrub(str(error), self._key or ""), getattr(error, "status_code", None)
            told = f"{self._engine} must answer a search, got {type(error).__name__}: {said:.300}"
            raise WebError(f"{told}. Try again later, or choose another service.", status=status) from None
        return [Hit(each.url, each.title, 1, " ".join(each.snippet.split())[:SNIPPET]) for each in found[:HITS]]

    def open(self, name: str) -> Document:
        """Return the page at a URL as text.

        Raises:
            ToolFault: the page cannot be read.
            BudgetError: a limit is reached.
        """
        if name not in self._pages:
            try:
                self._pages[name] = self._read(name)
            except (self._httpx.HTTPError, self._httpx.InvalidURL, OSError, UnicodeError) as error:
                raise ToolFault(f"the page must be readable, got {type(error).__name__}. Open another.") from None
        self._pages.move_to_end(name)
        while len(self._pages) > KEPT:
            self._pages.popitem(last=False)
        return self._pages[name]

    def lookup(self, database: str, tests: Sequence[Test]) -> Listing:
        """Raise `ToolFault`: the web has no databases."""
        raise ToolFault("the web has no databases. SEARCH, and OPEN a page.")

    def _spend(self, dollars: float) -> None:
        """Count a request and wait for its turn, or raise `BudgetError`."""
        with self._lock:
            caps = {"max_requests": (self.requests + 1, self._max_requests),
                    "max_dollars": (self.dollars + dollars, self._max_dollars)}  # fmt: skip
            for name, (after, cap) in caps.items():
                if cap is not None and after > cap:
                    raise BudgetError(f"{name} of {cap} is reached. No further request is made. Choose a higher one.")
            self.requests, self.dollars = self.requests + 1, self.dollars + dollars
            if (wait := self._last + self._pace - time.monotonic()) > 0:
                self._sleep(wait)
            self._last = time.monotonic()

    def _read(self, address: str) -> Document:
        """Follow redirects to a page and return its text. Every address on the way must be public."""
        end, url = time.monotonic() + self._timeout, self._httpx.URL(address)
        with self._httpx.Client(trust_env=False, timeout=self._timeout) as client:
            for _ in range(REDIRECTS + 1):
                self._spend(0.0)
                request = client.build_request(
                    "GET",
                    url.copy_with(host=self._public(url)),
                    headers={"Host": url.netloc.decode(), "Accept-Encoding": "identity"},
                    extensions={"sni_hostname": url.host},
                )
                response = client.send(request, stream=True)
                try:
                    if "location" not in response.headers or not response.is_redirect:
                        return self._document(address, response, b"".join(self._chunks(response, end)))
                    url = url.join(response.headers["location"])
                finally:
                    response.close()
        raise ToolFault(f"a page must have at most {REDIRECTS} redirects, got more. Open another.")

    def _chunks(self, response: Any, end: float) -> Iterator[bytes]:
        """Yield a response while it keeps its limits."""
        kind = response.headers.get("content-type", "text/plain").lower()
        if response.status_code != 200:
            raise ToolFault(f"the page must have the status 200, got {response.status_code}. Open another.")
        if not kind.startswith(_TEXT_TYPES):
            raise ToolFault(f"the page must be text, got {kind:.60}. Open another.")
        size = 0
        for chunk in response.iter_bytes():
            size += len(chunk)
            if size > self._max_bytes:
                raise ToolFault(f"the page must have at most {self._max_bytes:,} bytes, got more. Open another.")
            if time.monotonic() > end:
                raise ToolFault(f"the page must come within {self._timeout:g} seconds, got a part. Open another.")
            yield chunk

    def _document(self, address: str, response: Any, content: bytes) -> Document:
        text, title = content.decode(response.charset_encoding or "utf-8", "replace"), ""
        if "html" in response.headers.get("content-type", "") or text.lstrip()[:15].lower().startswith(
            "<!doctype html"
        ):
            title, text = html_text(text)
        return Document(address, title or address, paged(text) or ("",))

    def _public(self, url: Any) -> str:
        """Return an address of the host of a URL. It is the one that is asked, whatever the name means a moment later.

        Raises:
            ToolFault: the URL is not of the web, or one of its addresses is private.
        """
        if url.scheme not in ("http", "https") or not url.host:
            raise ToolFault(f"an id must be a URL that begins with http, got '{url!s:.60}'. Open a hit of a SEARCH.")
        found = socket.getaddrinfo(url.host, url.port or url.scheme, type=socket.SOCK_STREAM)
        addresses = [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found]
        meant = [getattr(each, "ipv4_mapped", None) or each for each in addresses]
        public = (each.is_global and not each.is_multicast for each in meant)
        allowed = (one or (self._loopback and each.is_loopback) for one, each in zip(public, meant, strict=True))
        if not all(allowed):
            raise ToolFault(f"a page must be on a public address, got that of '{url.host:.60}'. Open another.")
        return str(addresses[0])


def _price(litellm: Any, engine: str) -> float | None:
    """Return US dollars for a search of few hits by litellm's list. None if it has no price."""
    entry = litellm.model_cost.get(f"{engine}/search", {})
    tiers = entry.get("tiered_pricing") or [entry]
    price: float | None = tiers[0].get("input_cost_per_query")
    return price


class _Text(HTMLParser):
    """Collects the title and the visible text of a page, a line for each block."""

    def __init__(self) -> None:
        super().__init__()
        self.title, self.parts, self._open = "", list[str](), list[str]()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in _HIDDEN or tag == "title":
            self._open.append(tag)
        self.parts.append("" if tag in _INLINE else "\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]
        self.parts.append("" if tag in _INLINE else "\n")

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["title"]:
            self.title += data
        elif not self._open:
            self.parts.append(data)


def html_text(html: str) -> tuple[str, str]:
    r"""Return the title and the visible text of a page, without scripts, styles and marks.

    >>> html_text("<title>A</title><p>one <b>two</b><script>x</script><p>three &amp; four")
    ('A', 'one two\nthree & four')
    """
    parser = _Text()
    parser.feed(html)
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.parts).split("\n"))
    return " ".join(parser.title.split()), "\n".join(filter(None, lines))
