"""Cassettes: a source on loopback is recorded once, and replayed without it to the same fingerprint."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote
from urllib.request import urlopen

import pytest

from inquitree_gym import make_agent, play
from inquitree_gym.errors import OptionError
from inquitree_gym.exploration.actions import parse_action
from inquitree_gym.exploration.cassette import LABEL, Cassette, CassetteError
from inquitree_gym.exploration.env import ExplorationEnv
from inquitree_gym.exploration.library import Document
from inquitree_gym.exploration.providers import Hit, Listing, LocalLibrary, ToolFault
from tests.exploration.questions import make_library, make_question

LIBRARY = LocalLibrary(make_library())
KEY = next(iter(LIBRARY.library.documents))


class _Web(BaseHTTPRequestHandler):
    """Answers the path TOOL/TEXT from the library: any server on the web, as far as a provider can tell."""

    def do_GET(self) -> None:
        _, tool, text = unquote(self.path).split("/", 2)
        try:
            if tool == "open":
                found = LIBRARY.open(text)
                answer = [found.id, found.title, found.pages]
            elif tool == "search":
                answer = LIBRARY.search(text)
            else:
                answer = LIBRARY.lookup(*parse_action(text)[1:4:2])
        except ToolFault as fault:
            answer = {"fault": str(fault)}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class WebLibrary:
    """A provider without a digest that asks a server."""

    name, digest = "loopback", None

    def __init__(self, address: str) -> None:
        self.address, self.asked = address, 0

    def _get(self, tool: str, text: str) -> list:
        self.asked += 1
        with urlopen(f"{self.address}/{tool}/{quote(text, safe='')}", timeout=20) as reply:
            found = json.load(reply)
        if isinstance(found, dict):
            raise ToolFault(found["fault"])
        return found

    def search(self, query: str) -> list[Hit]:
        return [Hit(*hit) for hit in self._get("search", query)]

    def open(self, name: str) -> Document:
        found = self._get("open", name)
        return Document(found[0], found[1], tuple(found[2]))

    def lookup(self, database: str, tests: Sequence) -> Listing:
        total, records, fields = self._get("lookup", f"LOOKUP {database}: {'; '.join(map(' '.join, tests))}")
        return Listing(total, tuple(map(tuple, records)), tuple(fields))


@pytest.fixture
def web() -> Iterator[WebLibrary]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Web) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        yield WebLibrary(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()


def played(provider, agent: str = "oracle"):
    env = ExplorationEnv(make_question(), provider=provider, privileged=True)
    return play(env, make_agent(agent, env), seed=2)


def test_a_cassette_replays_a_loopback_web_to_the_same_fingerprint(web: WebLibrary, tmp_path: Path) -> None:
    pytest.importorskip("bm25s")
    recorded = {name: played(Cassette(web, tmp_path), name) for name in ("oracle", "wide", "first-hit")}
    asked = web.asked
    assert asked > 3
    for name, episode in recorded.items():
        replayed = played(Cassette(None, tmp_path), name)
        assert replayed.fingerprint == episode.fingerprint
        assert replayed.header.setup.repeatable
    assert played(Cassette(web, tmp_path)).fingerprint == recorded["oracle"].fingerprint
    assert web.asked == asked
    assert recorded["oracle"].footer.episode_return == 1.0


def test_an_episode_on_a_changing_source_is_not_repeatable(web: WebLibrary) -> None:
    assert not played(web).header.setup.repeatable


def test_a_request_that_was_not_recorded_is_an_error_and_never_asked(web: WebLibrary, tmp_path: Path) -> None:
    Cassette(web, tmp_path).open(KEY)
    replaying = Cassette(None, tmp_path)
    assert replaying.open(KEY) == LIBRARY.open(KEY)
    with pytest.raises(CassetteError, match=r"must have every request, got none of \[\"open\", \"nowhere\"\]"):
        replaying.open("nowhere")
    env = ExplorationEnv(make_question(), provider=replaying)
    env.reset(seed=1)
    with pytest.raises(CassetteError):
        env.step("LOOKUP taxa")
    assert web.asked == 1


def test_faults_are_kept_too(web: WebLibrary, tmp_path: Path) -> None:
    for provider in (web, None):
        with pytest.raises(ToolFault, match="no document has the id 'nowhere'"):
            Cassette(provider, tmp_path).open("nowhere")


def test_a_cassette_of_a_library_has_its_digest(tmp_path: Path) -> None:
    Cassette(LIBRARY, tmp_path)
    assert Cassette(None, tmp_path).digest == LIBRARY.digest


def test_a_cassette_that_is_none_or_of_another_is_refused(web: WebLibrary, tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match="cannot read"):
        Cassette(None, tmp_path)
    kept = Cassette(LIBRARY, tmp_path / "a")
    with pytest.raises(OptionError, match="must be of loopback, got library-s1"):
        Cassette(web, tmp_path / "a")
    kept.open(KEY)
    for file in (tmp_path / "a").iterdir():
        file.write_text("{}" if file.name != LABEL else file.read_text())
    with pytest.raises(CassetteError, match="must be a file of a cassette"):
        Cassette(None, tmp_path / "a").open(KEY)
