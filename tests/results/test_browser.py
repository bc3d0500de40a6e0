"""The pages in a real browser: what their scripts do, that they fit, and that nothing a log holds runs."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inquitree_gym.inquiry.judges.quality import Verdict
from inquitree_gym.judging.judgement import Judged
from inquitree_gym.results.load import Missing, load_run
from inquitree_gym.results.pages import write_report
from inquitree_gym.results.report import ReportOptions
from inquitree_gym.results.viewer import view_run, write_view
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.run import run_study
from inquitree_gym.trees import parse_tree
from tests.inquiry.test_report import FAKES, run_of
from tests.results.browser import DESKTOP, PHONE, Tab, open_browser
from tests.results.drawing import drawing
from tests.results.html import HOSTILE
from tests.results.test_aggregate import score
from tests.results.test_viewer import TREE, hostile_episode

pytestmark = pytest.mark.e2e
ROWS = "[...document.querySelectorAll('tbody tr')].filter(row => !row.hidden)"
NAMES = f"{ROWS}.map(row => [...row.cells].slice(0, 4).map(cell => cell.textContent).join(' '))"


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(autouse=True)
def forget(tab: Tab) -> None:
    tab.events.clear()


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run with its viewer pages and its report, in a folder with a difficult name."""
    folder = tmp_path_factory.mktemp("run #1 50%")
    study = make_study(agents=("oracle", "random-menu"), trees=("paper8", "paper12"), fake_level=(0, 6), seeds=2)
    run_study(study, folder)
    view_run(folder)
    scored = load_run(folder)
    with drawing():
        write_report([scored], folder, ReportOptions(paired=True))
    return folder


@pytest.fixture(scope="module")
def pages(run: Path) -> dict[str, str]:
    index = (run / "view" / "index.html").as_uri()
    episode = (run / "view" / "index-episodes" / "paper12_random-menu_f6_s1.html").as_uri()
    pair = "#a=index-episodes/paper12_oracle_f6_s1.html&b=index-episodes/paper12_random-menu_f6_s1.html"
    return {
        "report": (run / "report.html").as_uri(),
        "list": (run / "report-episodes.html").as_uri(),
        "index": index,
        "episode": episode,
        "pair": index.replace("index.html", "index-pair.html") + pair,
    }


PAPER = (720, 1040)
"""Letter paper within its margins."""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_every_page_fits_its_screen_in_both_schemes_and_fetches_nothing(tab: Tab, pages: dict[str, str], size, dark):
    for name, address in pages.items():
        tab.open(address, size, dark)
        assert tab.run("document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than the screen"
        boxes = tab.run(
            "[...document.querySelectorAll('.controls button')].map(each => each.getBoundingClientRect().toJSON())"
        )
        assert all(box["left"] >= 0 and box["right"] <= size[0] for box in boxes), f"a button of {name} is cut"
        shade = tab.run("getComputedStyle(document.body).backgroundColor")
        assert shade == ("rgb(20, 23, 28)" if dark else "rgb(255, 255, 255)")
        assert tab.faults == []


def test_every_page_fits_its_paper(tab: Tab, pages: dict[str, str]):
    for name in ("report", "list", "index", "episode"):
        tab.open(pages[name], PAPER)
        tab.send("Emulation.setEmulatedMedia", media="print")
        assert tab.run("document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than the paper"
        assert not tab.run("[...document.querySelectorAll('.files')].some(each => each.checkVisibility())")
        tab.send("Emulation.setEmulatedMedia", media="")


def test_the_name_of_a_turn_has_its_sign(tab: Tab, pages: dict[str, str]):
    tab.open(pages["episode"])
    links = tab.run("[...document.querySelectorAll('.strip a')].map(each => [each.textContent, each.ariaLabel])")
    assert all(name.endswith(f", {sign}") for sign, name in links if sign in "TF12345")


def test_the_list_sorts_filters_searches_and_keeps_the_choice_in_its_address(tab: Tab, pages: dict[str, str]):
    tab.open(pages["index"])
    assert len(tab.run(ROWS + ".map(row => 0)")) == 16
    tab.run("[...document.querySelectorAll('th button')].find(head => head.textContent === 'tree').click()")
    assert tab.run(NAMES)[0].startswith("paper8"), "8 comes before 12"
    place = tab.run("[...document.querySelectorAll('th')].findIndex(each => each.textContent.trim() === 'turns')")
    turns = f"{ROWS}.map(row => Number(row.cells[{place}].textContent))"
    for down in (False, True):
        tab.run("[...document.querySelectorAll('th button')].find(head => head.textContent === 'turns').click()")
        found = tab.run(turns)
        assert found == sorted(found, reverse=down)
        assert len(set(found)) > 1
    tab.run("(field => { field.value = '6'; field.dispatchEvent(new Event('input', { bubbles: true })) })"
            "([...document.querySelectorAll('select')].find(each => each.dataset.column === 'fake level'))"
            )  # fmt: skip
    tab.run("document.getElementById('search').focus()")
    for key in "oracle":
        tab.press(key)
    wanted = {f"{tree} oracle 6 {seed}" for tree in ("paper8", "paper12") for seed in (0, 1)}
    assert set(tab.run(NAMES)) == wanted
    assert tab.run("document.getElementById('count').textContent") == "4 of 16"
    address = tab.run("location.href")
    assert address.endswith("#fake+level=6&search=oracle&sort=-turns")
    tab.open(address)
    assert set(tab.run(NAMES)) == wanted
    tab.run("document.querySelector('button[type=reset]').click()")
    assert len(tab.run(NAMES)) == 16


def test_a_number_of_the_report_leads_to_its_episodes_and_on_to_a_turn(tab: Tab, pages: dict[str, str]):
    tab.open(pages["report"])
    link = "[...document.querySelectorAll('#tasks td a')].find(link => link.hash.includes('random-menu'))"
    tab.run(f"{link}.click()")
    tab.wait("Page.loadEventFired")
    assert set(tab.run(NAMES)) in ({f"{tree} random-menu {level} {seed}" for seed in (0, 1)}
                                   for tree in ("paper8", "paper12") for level in (0, 6))  # fmt: skip
    tab.run(f"{ROWS}[0].querySelector('a').click()")
    tab.wait("Page.loadEventFired")
    assert tab.run("document.querySelectorAll('.turn.now').length") == 1
    tab.press("ArrowRight")
    assert tab.run("location.hash") == "#turn-2"
    assert tab.faults == []


def test_two_episodes_stand_side_by_side_and_step_together(tab: Tab, pages: dict[str, str]):
    tab.open(pages["index"])
    for place in (0, 5):
        tab.run(f"document.querySelectorAll('.pick button')[{place}].click()")
    tab.run("document.querySelector('#pair a').click()")
    tab.wait("Page.loadEventFired")
    told = "new Promise(done => addEventListener('message', () => setTimeout(() => " \
           "done(document.querySelector('output').textContent))))"  # fmt: skip
    tab.run(f"{{ const answer = {told}; document.querySelector('[data-go=first]').click(); answer }}")
    assert len(tab.run("[...document.querySelectorAll('iframe')].map(frame => frame.title)")) == 2
    said = tab.run(
        "new Promise(done => { addEventListener('message', () => setTimeout(() => { const told = "
        "document.querySelector('output').textContent; if (told.split('turn 2 of').length === 3) done(told) }));"
        "document.querySelector('[data-go=on]').click() })"
    )
    assert said.count("turn 2 of") == 2
    assert tab.faults == []


@pytest.mark.parametrize("place", ["javascript:alert(1)", "https://example.org/x.html", "data:text/html,x.html", ""])
def test_only_pages_of_the_same_place_stand_side_by_side(tab: Tab, pages: dict[str, str], place: str):
    tab.open(f"{pages['pair'].partition('#')[0]}#a={place}&b={place}")
    assert tab.run("document.querySelectorAll('iframe').length") == 0
    assert not tab.run("document.getElementById('nothing').hidden")
    assert tab.faults == []


def test_a_legend_stands_beside_the_signs_and_no_name_is_cut(tab: Tab, pages: dict[str, str]):
    tab.open(pages["episode"])
    used = tab.run("[...document.querySelectorAll('.strip a')].map(link => link.textContent)")
    told = tab.run("[...document.querySelectorAll('.signs .sign')].map(sign => sign.textContent)")
    assert {"1" if sign.isdigit() else sign for sign in used if sign != "Σ"} == set(told)
    assert tab.run("[...document.querySelectorAll('.signs li')].every(line => line.getClientRects().length)")
    assert not tab.run(
        "[...document.querySelectorAll('.now .bars .name')].some(name => name.scrollWidth > name.clientWidth)"
    )


@pytest.mark.usefixtures("drawn")
def test_nothing_that_a_log_names_runs_in_a_browser(tab: Tab, tmp_path: Path):
    settings = [(f"{HOSTILE}{i}", level) for i in range(2) for level in (0, 4)]
    named = [
        replace(score("t1", 1, 0, agent=agent, fake_level=level, steps=FAKES), task=HOSTILE)
        for agent, level in settings
    ]
    run = run_of(*named, name="run", missing=(Missing(HOSTILE, "failed", HOSTILE),))
    page, *_ = write_report([run], tmp_path, ReportOptions(paired=True))
    document = TREE.model_dump_json().replace(TREE.subtopics[0].name, "<img src=x onerror=alert(3)>")
    tree = parse_tree(document.encode())
    episode = hostile_episode(tree)
    judged = Judged(HOSTILE, 1, {len(episode.turns): tuple(Verdict(1.0, HOSTILE) for _ in TREE.conclusions)})
    write_view(episode, tree, tmp_path / "page.html", judged=judged)
    for file in (page, page.with_name("report-episodes.html"), tmp_path / "page.html"):
        tab.open(file.as_uri())
        assert tab.run("document.body.textContent.includes('alert(1)')"), "it is shown as it stands"
        assert tab.run("document.querySelectorAll('img, [onerror]').length") == 0
    tab.open(page.as_uri())
    tab.run("document.querySelector('#vigilance td a').click()")
    tab.wait("Page.loadEventFired")
    assert len(tab.run(NAMES)) == 1, "the hostile name is carried by the link"
    for figure in (tmp_path / "report-figures").glob("*.svg"):
        tab.open(figure.as_uri())
        assert tab.run("document.documentElement.tagName") == "svg"
    assert tab.faults == []


def test_the_pages_of_a_run_follow_it_while_it_is_played(tab: Tab, run: Path, tmp_path: Path):
    folder = Path(shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("view")))
    log = folder / "episodes" / "paper12_random-menu_f6_s1.jsonl"
    whole = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(whole[:4]))
    command = "import sys; from inquitree_gym.cli import main; sys.exit(main())"
    options = ("--tree", "12", "--agent", "random-menu", "--follow")
    follower = subprocess.Popen(
        [sys.executable, "-c", command, "view", str(folder), *options], stderr=subprocess.PIPE, text=True
    )
    try:
        assert follower.stderr is not None
        assert "following:" in follower.stderr.readline()
        tab.open((folder / "view" / "index-episodes" / f"{log.stem}.html").as_uri())
        assert tab.run("document.getElementById('where').textContent") == "turn 3 of 3", "the newest turn is open"
        log.write_bytes(b"".join(whole[:6]))
        while tab.run("document.querySelectorAll('.turn').length") != 6:
            tab.wait("Page.loadEventFired")
        assert tab.run("document.getElementById('where').textContent") == "turn 5 of 5", "it stays with the newest turn"
        log.write_bytes(b"".join(whole))
        assert follower.wait() == 0, "the follower ends with the run"
        tab.open((folder / "view" / "index.html").as_uri())
        assert tab.run("document.body.dataset.live") is None
        assert len(tab.run(NAMES)) == 4
    finally:
        follower.kill()
        follower.communicate()


def test_following_ends_with_ctrl_c_and_leaves_pages_that_rest(run: Path, tmp_path: Path):
    folder = Path(shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("view")))
    log = folder / "episodes" / "paper8_oracle_f0_s0.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:3]))
    command = "import sys; from inquitree_gym.cli import main; sys.exit(main())"
    follower = subprocess.Popen(
        [sys.executable, "-c", command, "view", str(folder), "--follow"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert follower.stderr is not None
        assert "following:" in follower.stderr.readline()
        page, index = folder / "view" / "index-episodes" / f"{log.stem}.html", folder / "view" / "index.html"
        assert all('data-live="1"' in file.read_text(encoding="utf-8") for file in (page, index))
        follower.send_signal(signal.SIGINT)
        assert follower.wait() == 0
        assert not any('data-live="1"' in file.read_text(encoding="utf-8") for file in (page, index))
    finally:
        follower.kill()
        follower.communicate()
