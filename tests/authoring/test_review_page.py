"""The page of a review: what its server refuses, and the page itself in a real browser."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.authoring.applying import save_decisions
from inquitree_gym.authoring.findings import Findings, Quotation, side_file
from inquitree_gym.authoring.page import ReviewServer
from inquitree_gym.cli.reviews import Review
from inquitree_gym.errors import OptionError
from inquitree_gym.loopback import MAX_BODY
from inquitree_gym.trees import Tree
from tests.authoring.reviewed import Case, case_in
from tests.contract.command_line import inquitree
from tests.results.browser import CHROMIUM, DESKTOP, PHONE, Tab, open_browser
from tests.servers import ask_page

QUOTED = {"s1a": [Quotation(quotation="We measured <b>it</b> twice.", place="Methods, p. 3")]}


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return case_in(tmp_path, reviewed=False)


def start(case: Case) -> tuple[ReviewServer, threading.Thread]:
    def save(findings: Findings) -> Tree:
        return save_decisions(side_file(case.file), case.file, server.tree, findings)

    server = ReviewServer(case.tree, case.findings, QUOTED, "Ann", save)
    thread = threading.Thread(target=partial(server.serve_forever, 0.01))
    thread.start()
    return server, thread


@pytest.fixture
def server(case: Case) -> Iterator[ReviewServer]:
    started, thread = start(case)
    yield started
    started.shutdown()
    thread.join()
    started.server_close()


def act(server: ReviewServer, order: Any, **headers: str) -> tuple[int, Any]:
    status, content = ask_page(server, f"/{server.token}/act", order, **headers)
    return status, json.loads(content)


REJECT = {"do": "decide", "row": 0, "choice": "rejected"}


def test_orders_are_saved_before_they_are_answered(server: ReviewServer, case: Case):
    status, state = act(server, {"do": "decide", "row": 0, "choice": "edited", "text": "Weigh it."})
    assert (status, state["rows"][0]["decision"]["text"]) == (200, "Weigh it.")
    assert case.findings.states[0].by == "Ann"
    for row in (1, 2):
        state = act(server, {"do": "decide", "row": row, "choice": "accepted"})[1]
    assert state["reviewed"] is True
    assert case.now.reviewed is True
    assert act(server, {"do": "undo"})[1]["reviewed"] is False
    assert case.now.reviewed is False


@pytest.mark.parametrize(
    ("path", "headers", "why"),
    [
        ("/wrong/act", {}, "the token is wrong"),
        ("/act", {}, "the token is wrong"),
        ("/TOKEN/act", {"Origin": "http://example.org"}, "orders come from the page itself"),
        ("/TOKEN/act", {"Content-Type": "text/plain"}, "orders come from the page itself"),
        ("/TOKEN/act", {"Host": "example.org"}, "this is not the address of the page"),
        ("/TOKEN/act", {"Content-Length": str(MAX_BODY + 1)}, "at most"),
    ],
)
def test_orders_from_elsewhere_are_refused(
    path: str, headers: dict[str, str], why: str, server: ReviewServer, case: Case
):
    status, content = ask_page(server, path.replace("TOKEN", server.token), REJECT, **headers)
    assert status in (403, 413)
    assert why in json.loads(content)["error"]
    assert case.findings.decisions == ()


@pytest.mark.parametrize("path", ["/", "/wrong/", "/wrong/state", "/TOKEN/other"])
def test_without_the_token_nothing_can_be_read(path: str, server: ReviewServer, case: Case):
    status, content = ask_page(server, path.replace("TOKEN", server.token))
    assert status in (403, 404)
    assert case.tree.topic.encode() not in content


@pytest.mark.parametrize(
    "order",
    [b"{", [], {"do": "dance"}, REJECT | {"row": 9}, REJECT | {"choice": "edited"}, REJECT | {"choice": "open"}],
)
def test_an_order_that_does_not_fit_is_told_and_decides_nothing(order: Any, server: ReviewServer, case: Case):
    status, told = act(server, order)
    assert status == 400
    assert told["error"]
    assert case.findings.decisions == ()


def test_a_taken_port_is_told(server: ReviewServer, case: Case):
    with pytest.raises(OptionError, match="take another --port"):
        ReviewServer(case.tree, case.findings, {}, "Ann", lambda findings: case.tree, server.server_port)
    done = inquitree("review", case.file, "--page", "--port", server.server_port)
    assert (done.status, "take another --port" in done.said) == (2, True)


def test_finish_ends_the_command(case: Case, monkeypatch: pytest.MonkeyPatch):
    review = Review(case.tree, case.findings, {}, "Ann", partial(save_decisions, side_file(case.file), case.file))
    opened: list[ReviewServer] = []
    monkeypatch.setattr(ReviewServer, "service_actions", lambda server: opened.append(server))
    thread = threading.Thread(target=review.serve, args=(0,))
    thread.start()
    while not opened:
        thread.join(0.01)
    assert act(opened[0], REJECT)[0] == 200
    assert act(opened[0], {"do": "finish"})[0] == 200
    thread.join(30)
    assert not thread.is_alive()
    assert review.findings.open_rows == [1, 2]


# In the browser


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    if CHROMIUM is None:
        pytest.skip("no browser is installed")
    with open_browser() as opened:
        yield opened


def shown(tab: Tab, script: str) -> Any:
    """Return a value of the page once it has shown its first row and has no order under way."""
    settled = "new Promise(done => { const look = () => state && !busy ? done(true) : setTimeout(look, 5); look(); })"
    assert tab.run(settled)
    return tab.run(script)


def faults(tab: Tab, server: ReviewServer) -> list[Any]:
    return [each for each in tab.faults if not str(each.get("request", {}).get("url", "")).startswith(server.address)]


@pytest.mark.e2e
def test_the_page_is_worked_with_keys_alone(tab: Tab, server: ReviewServer, case: Case):
    tab.events.clear()
    tab.open(server.address)
    assert shown(tab, "by('head').textContent") == "Row 1 of 3: leak (error), s1/s1a"
    assert shown(tab, "by('text').textContent") == case.tree.subtopics[0].studies[0].text
    assert shown(tab, "by('quotations').textContent") == "We measured <b>it</b> twice.Methods, p. 3"
    assert shown(tab, "document.querySelectorAll('svg g').length") == len(case.tree.subtopics)
    assert shown(tab, "document.querySelector('svg g.here text').textContent") == "s1"
    tab.press("a")
    assert shown(tab, "by('head').textContent").startswith("Row 2 of 3: superfluous-edge")
    tab.press("r")
    assert shown(tab, "by('head').textContent").startswith("Row 3 of 3")
    tab.run("by('new').focus(); by('new').value = 'What moves?'")
    tab.press("u")
    assert shown(tab, "by('count').textContent") == "3 rows, 1 open · not reviewed", "keys type in the text"
    tab.run("by('new').value = 'What moves?'")
    tab.press("Escape")
    tab.press("e")
    assert shown(tab, "by('count').textContent") == "3 rows, 0 open · reviewed"
    assert [each and each.choice for each in case.findings.states] == ["accepted", "rejected", "edited"]
    tab.press("u")
    assert shown(tab, "by('count').textContent") == "3 rows, 1 open · not reviewed"
    tab.press("k")
    assert shown(tab, "by('state').textContent").startswith("rejected by Ann, 2")
    assert faults(tab, server) == []


@pytest.mark.e2e
def test_an_edit_without_a_text_and_a_change_that_is_not_saved_are_told(tab: Tab, server: ReviewServer, case: Case):
    tab.open(server.address)
    shown(tab, "by('new').value = 'Mine.', by('accept').click()")
    assert shown(tab, "by('said').textContent").startswith("You changed the text.")
    shown(tab, "go(2), by('edit').click()")
    assert "an edited row must have a text" in shown(tab, "by('said').textContent")
    assert case.findings.decisions == ()


@pytest.mark.e2e
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_the_page_fits_its_screen_in_both_schemes(
    tab: Tab, server: ReviewServer, size: tuple[int, int], dark: bool, tmp_path: Path
):
    tab.open(server.address, size, dark)
    assert shown(tab, "document.documentElement.scrollWidth <= innerWidth")
    shade = tab.run("getComputedStyle(document.body).backgroundColor")
    assert shade == ("rgb(20, 23, 28)" if dark else "rgb(255, 255, 255)")
    small = "[...document.querySelectorAll('button')].filter(each => each.getBoundingClientRect().height < 44).length"
    assert tab.run(small) == 0
    tab.picture(tmp_path / f"review-{size[0]}-{'dark' if dark else 'light'}.png", whole=True)
