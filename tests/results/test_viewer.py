"""Episodes as pages: what each turn says, where the boxes stand, and that nothing a log holds can do harm."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from inquitree_gym.baselines import RandomMenuAgent
from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.events import ReadingRecord
from inquitree_gym.inquiry.pages import InquiryTurn, turn_views
from inquitree_gym.inquiry.trajectory import read_trajectory
from inquitree_gym.inquiry.vigilance import ALL, Counts
from inquitree_gym.log import Episode, Failure, Reply, read_episode
from inquitree_gym.results.viewer import view_log, view_run, write_view
from inquitree_gym.rollout import play
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.run import run_study
from inquitree_gym.trees import Tree, dump_tree, load_tree, parse_tree
from tests.inquiry.test_trajectory import ASKED_AGAIN, CONCLUDE, END, EXPLORE, enter, episode_of, failed, redo, result
from tests.results.html import HOSTILE, Page, read_page
from tests.strategies import make_tree

TREE = make_tree([[], [0]], [2, 1], tree_id="made")


def told(*way, **rules) -> list[InquiryTurn]:
    return turn_views(episode_of(TREE, *way, **rules), TREE)


# Steps


def test_every_action_gets_a_sign_and_a_sentence():
    forced = enter("s1", accepted=False, forced=True, reason="prerequisite_unmet")
    way = [
        failed("subtopic_hint", 1), forced, failed("study_hint", 2, "s1b"), result("s1b"), redo("s1b", 2), ASKED_AGAIN,
        EXPLORE, enter("s2"), result("s2a", 1, accepted=False, forced=True, reason="below_threshold"), CONCLUDE, END,
    ]  # fmt: skip
    marks = [(step.mark.kind, step.mark.sign, step.mark.words) for step in told(*way)]
    assert marks == [
        ("hint", "1", "not accepted (below threshold); hint 1 towards s1"),
        ("forced", "!", "forced into s1 (prerequisite unmet)"),
        ("hint", "2", "not accepted (below threshold); hint 2 towards s1b"),
        ("true", "T", "runs s1b; the true result is shown"),
        ("fake", "F", "redoes s1b; fake result 2 is shown"),
        ("hint", "?", "no decision can be read; asked again"),
        ("decision", "→", "decides to explore"),
        ("accepted", "●", "enters s2"),
        ("fake", "F", "forced into s2a (below threshold); fake result 1 is shown"),
        ("decision", "■", "decides to conclude"),
        ("decision", "■", "the project is closed"),
    ]


def test_declined_subtopics_are_told_and_are_no_verdicts():
    declined = {"kind": "declined", "node": "s2", "decision": "explore"}
    found = told(enter("s1"), result("s1a", 1), EXPLORE, enter("s2"), declined, CONCLUDE)
    assert [(step.mark.kind, step.mark.sign, step.mark.words) for step in found[3:]] == [
        ("accepted", "●", "enters s2"),
        ("decision", "←", "declines s2"),
        ("decision", "■", "decides to conclude"),
    ]
    assert [step.path for step in found[3:]] == [("s1", "s2"), ("s1",), ("s1",)]
    assert [bool(step.verdict) for step in found] == [False, False, True, False, False, False]


def test_the_turn_limit_is_told_and_gives_no_hint():
    (step,) = told({**failed("subtopic_hint", 0), "limit": True})
    assert step.mark.words == "not accepted (below threshold); the turn limit strikes"
    assert (step.mark.sign, step.target) == ("×", "")


def test_what_a_decision_on_a_result_was_worth():
    way = [
        enter("s1"), result("s1a", 1), redo("s1a", 1), redo("s1a"), redo("s1a", 2), ASKED_AGAIN, EXPLORE, enter("s2"),
        result("s2a"), CONCLUDE, END,
    ]  # fmt: skip
    assert [step.verdict.partition(":")[0] for step in told(*way)] == [
        "", "", "hit", "hit", "false alarm", "", "miss", "", "", "", "",
    ]  # fmt: skip


def test_a_result_at_the_limit_left_no_choice():
    way = [enter("s1"), {**result("s1a", 1), "limit": True}, END]
    assert [step.verdict for step in told(*way)] == ["", "", ""]


def test_verdicts_are_those_of_the_scores():
    paper = load_tree("paper12")
    # Among the redone studies are some that are never faked, and results that are recalled.
    episodes = [play(InquiryEnv(paper, fake_level=5), RandomMenuAgent(paper), seed) for seed in range(8, 14)]
    found = [step.verdict.partition(":")[0] for episode in episodes for step in turn_views(episode, paper)]
    shown = sum((read_trajectory(episode, paper).showings[ALL] for episode in episodes), Counts())
    assert (found.count("hit"), found.count("false alarm")) == (shown.hits, shown.false_alarms)
    assert shown.fakes - shown.hits == found.count("miss")
    assert shown.hits + shown.false_alarms > 0


def test_what_is_shown_is_what_the_turn_before_led_to():
    found = told(failed("subtopic_hint", 3), enter("s1"), result("s1a", 1), redo("s1a"), EXPLORE)
    assert [step.shown and (step.shown.kind, step.shown.words) for step in found] == [
        None,
        ("hint", "hint 3 of 4, towards s1"),
        None,
        ("fake", "fake result 1 of s1a"),
        ("true", "true result of s1a"),
    ]


def test_a_fake_stands_beside_the_truth():
    truths = [step.truth for step in told(enter("s1"), result("s1a", 1), redo("s1a"), EXPLORE)]
    assert truths == ["", "", "The outcome of s1a rose.", ""]


def test_the_map_follows_the_inquiry():
    way = [
        failed("subtopic_hint", 1),
        enter("s1"),
        result("s1b", 1),
        redo("s1b"),
        EXPLORE,
        enter("s1"),
        result("s1a", 2),
    ]
    found = told(*way)
    assert [step.path for step in found][-2:] == [("s1", "s1")] * 2
    assert [step.current for step in found] == ["", "s1", "s1", "s1", "", "s1", "s1"]
    assert [step.target for step in found] == ["s1"] + [""] * 6
    assert found[2].results == {"s1b": 1}
    assert found[-1].results == {"s1b": 0, "s1a": 2}


# Pages


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run of two agents at two levels; one episode torn, one missing."""
    folder = tmp_path_factory.mktemp("run #1 50%")
    study = make_study(agents=("oracle", "random-menu"), trees=("paper8",), fake_level=(0, 6), seeds=2)
    run_study(study, folder)
    torn = folder / "episodes" / "paper8_random-menu_f0_s1.jsonl"
    torn.write_bytes(torn.read_bytes()[:-5])
    (folder / "episodes" / "paper8_oracle_f0_s0.jsonl").unlink()
    return folder


def log_of(run: Path, name: str) -> Path:
    return run / "episodes" / f"paper8_{name}.jsonl"


@pytest.fixture(scope="module")
def page(run: Path, tmp_path_factory) -> Page:
    return read_page(view_log(log_of(run, "random-menu_f6_s1"), tmp_path_factory.mktemp("page") / "episode.html"))


def test_a_page_shows_readings_with_the_threshold(run: Path, page: Page):
    episode = read_episode(log_of(run, "random-menu_f6_s1"))
    for name, similarity in episode.turns[0].event.reading.top:
        assert f"{similarity:.3f}" in page.text
        assert page.has("g", id=f"node-{name}")
    styles = page.attributes("style")
    threshold = 100 * episode.header.rules["threshold"]
    assert any(style.startswith(f"--threshold: {threshold:.0f}") for style in styles)
    assert f"width: {round(100 * episode.turns[0].event.reading.top[0][1], 2)}%" in styles


def test_a_page_shows_every_statement_of_the_exam(page: Page):
    assert all(text in page.text for item in load_tree("paper8").conclusions for text in item.options)
    assert page.text.count("✓") == len(load_tree("paper8").conclusions)


def test_the_map_of_each_turn_names_nodes_of_the_picture(page: Page):
    nodes = {node.removeprefix("node-") for node in page.attributes("id") if node.startswith("node-")}
    studies = set(page.attributes("data-study"))
    assert nodes == set(page.attributes("data-node"))
    assert {name for path in page.attributes("data-path") for name in path.split()} <= nodes
    assert set(page.attributes("data-target")) - {""} <= nodes | studies
    assert {pair.split(":")[0] for pairs in page.attributes("data-results") for pair in pairs.split()} <= studies


def test_a_page_can_be_used_without_eyes_and_without_a_mouse(page: Page):
    buttons = [a for tag, a in page.tags if tag == "button" and "data-go" in a]
    assert {a["data-go"] for a in buttons} == {"first", "back", "on", "last", "all", "help"}
    assert all(a.get("aria-label") for a in buttons)
    (script,) = page.scripts
    assert all(
        f'{key}: "' in script or f'"{key}": "' in script for key in ("ArrowLeft", "ArrowRight", "Home", "End", "?")
    )
    assert page.has("output", id="where", **{"aria-live": "polite"})
    assert page.has("html", lang="en")


def hostile_episode(tree: Tree) -> Episode:
    """An episode in which everything that an agent or a service writes is hostile."""
    made = episode_of(tree, enter("s1"), result("s1a"), CONCLUDE, {**END, "action": HOSTILE}, agent={"name": HOSTILE})
    top = ReadingRecord(
        candidate="s1", similarity=0.7, decision=HOSTILE, margin=0.1, top=(("s1", 0.7), (HOSTILE, -0.2))
    )
    said = {"action": HOSTILE + "\ud800", "observation": HOSTILE}
    turns = tuple(
        turn.model_copy(update={**said, "event": turn.event.model_copy(update={"reading": top})}) for turn in made.turns
    )
    replies = tuple(
        Reply(turn=turn.turn, role=HOSTILE, text=HOSTILE, finish_reason="stop", seconds=0.5, fault=HOSTILE, cost=0.01)
        for turn in turns
    )
    return Episode(made.header, turns, made.footer, None, replies)


def test_what_a_log_holds_can_neither_run_nor_break_the_page(tmp_path: Path):
    document = TREE.model_dump(mode="json")
    document["subtopics"][0]["name"] = "<script>alert(3)</script>"
    document["paper"]["title"] = document["topic"] = "</title><script>alert(4)</script>"
    tree = parse_tree(__import__("json").dumps(document).encode())
    write_view(hostile_episode(tree), tree, tmp_path / "page.html", back="index.html")
    page = read_page(tmp_path / "page.html")
    assert len(page.scripts) == 1
    assert page.text.count("alert(1)") > 10
    assert "alert(3)" in page.text
    assert "{{ 7 * 7 }}" in page.text


def test_replies_faults_and_costs_are_shown(tmp_path: Path):
    made = episode_of(TREE, enter("s1"))
    said = {"turn": 1, "finish_reason": "stop"}
    tokens = {"prompt": 3, "completion": 4}
    replies = (
        Reply(role="proposer", text="garbled", seconds=1.5, fault="no ACTION", retries=2, **said),
        Reply(role="correction", text="x", seconds=1.0, tokens=tokens, cost=0.0125, cached=True, **said),
    )
    write_view(Episode(made.header, made.turns, None, None, replies), TREE, tmp_path / "p.html")
    text = " ".join(read_page(tmp_path / "p.html").text.split())
    for wanted in (
        "proposer no ACTION 1.5 s, 2 failed requests",
        "garbled",
        "from the cache",
        "3 prompt, 4 completion tokens, $0.01250",
    ):
        assert wanted in text
    assert "US dollars–" in text, "what came from a cache was not paid for"


@pytest.mark.parametrize(
    ("failure", "said"), [(None, "The episode is torn"), (Failure(error="TimeoutError", when="now"), "TimeoutError")]
)
def test_an_episode_that_is_not_whole_is_shown_and_not_scored(tmp_path: Path, failure: Failure | None, said: str):
    made = episode_of(TREE, enter("s1"), result("s1a"))
    assert write_view(Episode(made.header, made.turns, None, failure), TREE, tmp_path / "p.html") is None
    page = read_page(tmp_path / "p.html")
    assert said in page.text
    assert not page.has("caption")


def test_a_log_of_another_version_of_the_tree_is_refused(tmp_path: Path):
    with pytest.raises(LogError, match="score it with the"):
        write_view(episode_of(TREE, END), load_tree("paper8"), tmp_path / "p.html")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [(b'"kind":"turn"', b'"kind":"tarn"', "line 2: "), (b'"id":"paper8"', b'"id":"bread"', "which is not at hand")],
)
def test_a_log_that_cannot_be_shown_is_told(run: Path, tmp_path: Path, old: bytes, new: bytes, told: str):
    log = tmp_path / "log.jsonl"
    log.write_bytes(log_of(run, "oracle_f6_s1").read_bytes().replace(old, new, 1))
    with pytest.raises(LogError, match=told):
        view_log(log)


# Places


def test_the_page_of_a_log_lies_beside_it_unless_told_otherwise(run: Path, tmp_path: Path):
    copy = tmp_path / "mine.jsonl"
    copy.write_bytes(log_of(run, "oracle_f6_s0").read_bytes())
    assert view_log(copy) == tmp_path / "mine.html"
    read_page(tmp_path / "mine.html")


def test_an_index_links_every_episode_and_each_links_back(run: Path):
    told = []
    index = view_run(run, progress=told.append)
    assert index == run / "view" / "index.html"
    assert len(told) == 8
    page = read_page(index)
    links = page.attributes("href")
    assert len(links) == 7
    for link in links:
        target = (index.parent / unquote(link)).resolve()
        (back,) = [each for each in read_page(target).attributes("href") if not each.startswith("#")]
        assert (target.parent / unquote(back)).resolve() == index.resolve()
    assert page.text.count("concluded") == 6
    assert page.text.count("torn") == page.text.count("missing") == 1


def test_an_index_can_be_given_a_name(run: Path, tmp_path: Path):
    index = view_run(run, tmp_path / "deep" / "all.html", wanted=lambda spec: spec.agent == "oracle")
    assert index == tmp_path / "deep" / "all.html"
    assert len(read_page(index).attributes("href")) == 3
    assert len(list((tmp_path / "deep" / "all-episodes").iterdir())) == 3


@pytest.mark.parametrize(("out", "page"), [("p.html", "p.html"), ("folder", "folder/paper8_oracle_f6_s1.html")])
def test_one_wanted_episode_is_one_page(run: Path, tmp_path: Path, out: str, page: str):
    made = view_run(
        run,
        tmp_path / out,
        wanted=lambda spec: (spec.agent, spec.cell, spec.seed) == ("oracle", (("fake_level", 6),), 1),
    )
    assert made == tmp_path / page
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [made]


@pytest.mark.parametrize(
    ("wanted", "match"),
    [
        (lambda spec: False, "0 match"),
        (lambda spec: (spec.agent, spec.cell, spec.seed) == ("oracle", (("fake_level", 0),), 0), "1 match"),
    ],
)
def test_a_choice_that_nothing_answers_to_is_told(run: Path, tmp_path: Path, wanted, match: str):
    with pytest.raises(OptionError, match=match):
        view_run(run, tmp_path, wanted=wanted)


def test_strange_names_of_files_can_be_linked_to(tmp_path: Path):
    file = tmp_path / "own #1 50%.json"
    file.write_text(dump_tree(make_tree([[], [0]], [1, 1], tree_id="own")))
    run_study(make_study(agents=("worst-case",), trees=(str(file),), seeds=2), tmp_path / "run")
    index = view_run(tmp_path / "run")
    targets = [(index.parent / unquote(link)) for link in read_page(index).attributes("href")]
    assert [target.is_file() for target in targets] == [True, True]
    assert all("#" not in link for link in read_page(index).attributes("href"))


def test_the_script_and_the_page_speak_of_the_same_things(page: Page):
    (script,) = page.scripts
    for name in re.findall(r'getElementById\("([\w-]+)"\)', script):
        assert name in page.attributes("id")
    classes = {name for each in page.attributes("class") for name in each.split()}
    for name in re.findall(r'querySelector(?:All)?\("\.([\w-]+)', script):
        assert name in classes
