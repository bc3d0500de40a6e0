"""The web as a provider, from a server on loopback: SearXNG's search, and pages with every fault."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import gymnasium as gym
import pytest

pytest.importorskip("litellm")

from inquitree_gym import make_agent, play
from inquitree_gym.errors import BudgetError, OptionError
from inquitree_gym.exploration.cassette import Cassette
from inquitree_gym.exploration.env import ExplorationEnv
from inquitree_gym.exploration.providers import ToolFault
from inquitree_gym.exploration.schema import ExplorationTask
from inquitree_gym.exploration.web import REDIRECTS, WebError, WebSearch, html_text
from inquitree_gym.log import read_episode
from inquitree_gym.results.score import score_episode
from inquitree_gym.wrappers import LogEpisodes
from tests.contract.command_line import inquitree
from tests.servers import DRIPPING, SLOW, WAIT_AT_MOST, Answer, Request, Service

HTML = {"Content-Type": "text/html; charset=utf-8"}
PAGE = "<!doctype html><html><head><title>Slow &amp; wet gels</title><style>p{}</style></head><body><h1>Gels</h1>"
PAGE += "<p>The gel has <b>260</b> residues — so far.<script>no()</script><p>End.</body></html>"
TASK = {
    "id": "mine", "kind": "T1", "library": {"web": True}, "question": "How many residues has the gel?",
    "gold": {"kind": "T1", "parts": [{"number": 260}]},
}  # fmt: skip


class Web(Service):
    """Searches like SearXNG, and serves pages."""

    def answer(self, request: Request) -> Answer:
        if self.planned:
            return super().answer(request)
        url = urlsplit(request.path)
        if url.path == "/v1/search":
            asked = parse_qs(url.query)["q"][0]
            hits = [{"url": f"{self.address}/page", "title": "Gels", "content": f"all\nabout {asked} {'x' * 300}"}] * 9
            return Answer(200, {"query": asked, "results": hits})
        page = self.pages(url.path.removeprefix("/v1/"))
        if page.held and not page.dripping:
            self.wait(WAIT_AT_MOST)
        return page

    def pages(self, name: str) -> Answer:
        pages = {
            "page": Answer(200, PAGE.encode(), HTML),
            "latin": Answer(200, "caf\xe9".encode("latin-1"), {"Content-Type": "text/plain; charset=latin-1"}),
            "long": Answer(200, b"word " * 1_000, {"Content-Type": "text/plain"}),
            "huge": Answer(200, b"x" * 50_001, HTML),
            "cut": Answer(200, b"<p>half", HTML, missing=100),
            "slow": SLOW._replace(headers=HTML),
            "dripping": DRIPPING._replace(headers=HTML),
            "binary": Answer(200, b"%PDF-1.7", {"Content-Type": "application/pdf"}),
            "moved": Answer(302, b"", {"Location": "page"}),
            "inside": Answer(302, b"", {"Location": "http://10.0.0.1/admin"}),
            "file": Answer(302, b"", {"Location": "file:///etc/passwd"}),
            "loop": Answer(302, b"", {"Location": "loop"}),
        }
        return pages.get(name, Answer(404, b"none", HTML))


@pytest.fixture
def server() -> Iterator[Web]:
    with Web() as running:
        yield running


def web(server: Web, **options) -> WebSearch:
    return WebSearch("searxng", address=server.address, **{"loopback": True, "pace": 0.0, **options})


def test_hits_have_url_title_and_a_short_line(server: Web):
    hits = web(server).search("wet gels")
    assert len(hits) == 5
    assert hits[0][:3] == (f"{server.address}/page", "Gels", 1)
    assert hits[0].snippet.startswith("all about wet gels x")
    assert len(hits[0].snippet) == 200


def test_a_page_is_its_visible_text(server: Web):
    page = web(server).open(f"{server.address}/page")
    assert (page.title, page.pages) == ("Slow & wet gels", ("Gels\nThe gel has 260 residues — so far.\nEnd.",))
    assert web(server).open(f"{server.address}/latin").pages == ("café",)


def test_a_long_page_is_cut_into_pages_and_asked_for_once(server: Web):
    source = web(server)
    assert [len(source.open(f"{server.address}/long").pages) for _ in range(2)] == [3, 3]
    assert (len(server.requests), source.requests) == (1, 1)


FAULTS = {
    "huge": ({"max_bytes": 50_000}, "at most 50,000 bytes"),
    "cut": ({}, "readable, got RemoteProtocolError"),
    "slow": ({"timeout": 0.2}, "readable, got ReadTimeout"),
    "dripping": ({"timeout": 0.2}, "within 0.2 seconds"),
    "binary": ({}, "must be text, got application/pdf"),
    "inside": ({}, "public address, got that of '10.0.0.1'"),
    "file": ({}, "begins with http, got 'file:/"),
    "loop": ({}, f"at most {REDIRECTS} redirects"),
    "none": ({}, "status 200, got 404"),
    "page": ({"loopback": False}, "public address, got that of '127.0.0.1'"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_page_that_cannot_be_read_is_told_to_the_agent(server: Web, name: str):
    options, told = FAULTS[name]
    with pytest.raises(ToolFault, match=told):
        web(server, **options).open(f"{server.address}/{name}")
    server.release()


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/", "http://[::ffff:10.0.0.1]/", "http://[fe80::1]/", "ftp://a.b/", "gels"]
)
def test_private_addresses_and_other_schemes_are_never_asked(server: Web, url: str):
    with pytest.raises(ToolFault, match=r"public address|begins with http"):
        web(server).open(url)


def test_a_redirect_is_followed_and_counted(server: Web):
    source = web(server)
    assert source.open(f"{server.address}/moved").title == "Slow & wet gels"
    assert source.requests == 2


def test_budgets_stop_before_the_request(server: Web):
    source = web(server, max_requests=2)
    source.search("a")
    source.open(f"{server.address}/page")
    with pytest.raises(BudgetError, match="max_requests of 2 is reached"):
        source.search("b")
    priced = web(server, max_dollars=0.015, dollars_per_search=0.01)
    priced.search("a")
    with pytest.raises(BudgetError, match="max_dollars"):
        priced.search("b")
    assert (priced.dollars, len(server.requests)) == (0.01, 3)


def test_requests_keep_their_pace(server: Web):
    waits: list[float] = []
    source = web(server, pace=100.0, sleep=waits.append)
    source.search("a")
    source.open(f"{server.address}/page")
    (wait,) = waits
    assert 0 < wait <= 100


@pytest.mark.parametrize(
    "option", [{"max_requests": 0}, {"max_dollars": 0.0}, {"timeout": 0}, {"max_bytes": -1}, {"pace": -1.0}]
)
def test_limits_out_of_range_are_refused(option: dict):
    with pytest.raises(OptionError, match=next(iter(option))):
        WebSearch("searxng", **option)


def test_a_cap_on_costs_needs_a_price():
    with pytest.raises(OptionError, match="price of nobody"):
        WebSearch("nobody", max_dollars=1.0)


def test_text_of_broken_html_is_kept():
    assert html_text("<ul><li>a<li>b</span></ul><p>1 < 2") == ("", "a\nb\n1 < 2")


def task_of(folder: Path) -> ExplorationTask:
    return ExplorationTask.model_validate_json((folder / "mine.json").read_text())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "mine.json").write_text(json.dumps(TASK))
    return tmp_path / "mine.json"


def test_a_task_of_ones_own_is_played_on_the_web_and_marked(server: Web, file: Path, tmp_path: Path, monkeypatch):
    env = LogEpisodes(gym.make("SciExplore-v0", task=str(file), provider=web(server), tools="search"), tmp_path / "run")
    observation, _ = env.reset(seed=0)
    assert "invented" not in observation
    env.step("SEARCH gel residues")
    observation, *_ = env.step(f"OPEN {server.address}/page")
    assert "The gel has 260 residues" in observation
    assert env.step("ANSWER 260")[1:3] == (1.0, True)
    (log,) = (tmp_path / "run").glob("*.jsonl")
    episode = read_episode(log)
    score = score_episode(episode, task_of(tmp_path))
    assert (score.values["score"], score.values["p"], score.detail.repeatable) == (1.0, None, False)
    assert episode.header.setup.provider == {"name": "web-searxng", "digest": None}
    monkeypatch.setenv("INQUITREE_TREES", str(tmp_path))
    assert inquitree("report", tmp_path / "run", "--out", tmp_path / "report.html").status == 0
    assert "which cannot be repeated: 1." in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_a_service_that_fails_is_a_status_and_no_score(server: Web, file: Path, tmp_path: Path):
    server.planned.append(Answer(500, {"error": "tripped"}))
    env = ExplorationEnv(str(file), provider=web(server))
    with pytest.raises(WebError, match="searxng must answer a search") as fault:
        play(env, make_agent("first-hit", env), seed=0, file=tmp_path / "a.jsonl")
    assert fault.value.status == 500
    episode = read_episode(tmp_path / "a.jsonl")
    assert episode.footer is None
    assert episode.failure.error.startswith("WebError: searxng must answer")


def test_a_cassette_makes_the_web_repeatable(server: Web, file: Path, tmp_path: Path):
    def fingerprint(provider) -> str:
        env = ExplorationEnv(str(file), provider=provider)
        return play(env, make_agent("first-hit", env), seed=0).fingerprint

    first = fingerprint(Cassette(web(server), tmp_path / "kept"))
    assert len(server.requests) == 2
    server.planned.append(Answer(500, {}))
    assert fingerprint(Cassette(None, tmp_path / "kept")) == first


def test_a_task_on_the_web_needs_a_provider(file: Path):
    with pytest.raises(OptionError, match="must have a provider"):
        ExplorationEnv(str(file)).reset(seed=0)
