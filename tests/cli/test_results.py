"""The verbs about what came out: report with a page, view."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from inquitree_gym import cluster
from inquitree_gym.errors import InquiTreeError
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.run import run_study
from inquitree_gym.trees import load_tree
from tests.contract.command_line import inquitree
from tests.inquiry.judges.test_llm import Grader
from tests.results.html import read_page
from tests.servers import Rote, Service

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> tuple[Path, Path]:
    """Two runs of the same trees and seeds."""
    made = []
    for agent in ("random-menu", "oracle"):
        folder = tmp_path_factory.mktemp(agent)
        run_study(make_study(agents=(agent,), trees=("paper8", "paper12"), fake_level=(0, 4), seeds=2), folder)
        made.append(folder)
    return made[0], made[1]


# report


def test_report_compares_two_runs(runs, tmp_path: Path):
    done = inquitree("report", *runs, "--compare", "--out", tmp_path)
    assert "Paired differences" in done.out
    assert "oracle − random-menu" in " ".join(done.out.split())
    assert read_page(tmp_path / "report.html").has("section", id="comparison")
    found = json.loads(inquitree("report", *runs, "--compare", "--json").out)
    assert [(each["fake_level"], each["pairs"]) for each in found["differences"]] == [(0, 4), (4, 4)]
    assert found["differences"][0]["estimates"]["return"]["mean"] > 0.5
    assert "differences" not in json.loads(inquitree("report", *runs, "--json").out)


def test_the_option_may_stand_before_the_two_runs(runs):
    assert "oracle − random-menu" in " ".join(inquitree("report", "--compare", *runs).out.split())


def test_report_compares_the_agents_of_one_run(tmp_path: Path):
    run_study(make_study(agents=("random", "random-menu", "oracle"), trees=("paper8",), seeds=1), tmp_path)
    found = json.loads(inquitree("report", tmp_path, "--compare", "--json").out)["differences"]
    assert [each["name"] for each in found] == ["random-menu − random", "oracle − random", "oracle − random-menu"]
    chosen = ("--agent", "oracle", "--agent", "random")
    (one,) = json.loads(inquitree("report", tmp_path, "--compare", *chosen, "--json").out)["differences"]
    assert (one["name"], one["pairs"]) == ("random − oracle", 1), "in the order in which they are named"
    assert one["estimates"]["return"]["mean"] < -0.5
    assert "no agent is called 'orcale' here" in inquitree("report", tmp_path, "--compare", "--agent", "orcale").said
    assert "give both" in inquitree("report", tmp_path, "--agent", "oracle").said


@pytest.mark.parametrize(("count", "said"), [(1, "two agents that share"), (3, "got 3 runs")])
def test_a_comparison_takes_two_runs_or_two_agents(runs, tmp_path: Path, count: int, said: str):
    done = inquitree("report", *[*runs, tmp_path][:count], "--compare")
    assert (done.status, done.out) == (2, "")
    assert said in done.said


def test_a_run_compared_with_itself_is_one_run(runs):
    assert "these are 'random-menu'" in inquitree("report", runs[0], runs[0], "--compare").said


def test_many_logs_are_scored_by_several_processes_with_the_same_results(runs, tmp_path: Path, monkeypatch):
    torn = tmp_path / "run"
    shutil.copytree(runs[0], torn)
    log = next((torn / "episodes").iterdir())
    log.write_bytes(log.read_bytes()[:-40])

    def told() -> tuple[str, str, str, bytes]:
        scored = inquitree("score", torn, "--json")
        inquitree("report", torn, "--all", "--out", tmp_path / "page")
        return scored.out, scored.said, str(scored.status), (tmp_path / "page" / "report.html").read_bytes()

    here = told()
    monkeypatch.setattr(cluster, "MANY", 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert told() == here
    assert log.name in here[1]


def test_a_process_that_dies_while_it_scores_is_told(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(cluster, "MANY", 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    with cluster.map_on(None, tmp_path) as mapped, pytest.raises(InquiTreeError, match="a process of this command was"):
        list(mapped(os._exit, [1, 1]))


# view


def test_view_of_a_run_writes_an_index(runs, tmp_path: Path):
    done = inquitree("view", runs[1], "--out", tmp_path, "--tree", "8", "--fake-level", 4)
    assert (done.status, done.out) == (0, "")
    assert f"written: {tmp_path / 'index.html'}" in done.said
    assert len(read_page(tmp_path / "index.html").attributes("href")) == 2


def test_view_of_one_episode(runs, tmp_path: Path):
    page = tmp_path / "one.html"
    chosen = ("--tree", "paper12", "--agent", "oracle", "--fake-level", 0, "--seed", 1)
    assert f"written: {page}" in inquitree("view", runs[1], *chosen, "--out", page).said
    assert "paper12 · oracle · fake level 0 · seed 1" in read_page(page).text
    log = runs[1] / "episodes" / "paper12_oracle_f0_s1.jsonl"
    again = tmp_path / "again.html"
    assert inquitree("view", log, "--out", again).status == 0
    assert again.read_bytes() == page.read_bytes()


def test_view_refuses_choices_beside_a_log_and_tells_what_is_not_there(runs, tmp_path: Path):
    log = runs[1] / "episodes" / "paper12_oracle_f0_s1.jsonl"
    assert "holds no episode of that kind: 0 match" in inquitree("view", log, "--seed", 0).said
    assert "cannot read" in inquitree("view", tmp_path / "none.jsonl").said
    assert f"'{tmp_path}' holds no episode log" in inquitree("view", tmp_path).said
    assert "holds no episode of that kind" in inquitree("view", runs[1], "--agent", "random").said


def test_only_a_run_with_wanted_episodes_is_followed(runs, tmp_path: Path):
    log = runs[1] / "episodes" / "paper12_oracle_f0_s1.jsonl"
    for options in ((log,), (runs[1], "--agent", "random"), (tmp_path,), (tmp_path / "none",)):
        done = inquitree("view", *options, "--follow")
        assert (done.status, len(done.said.strip().splitlines())) == (2, 1)
        assert "error: " in done.said


def test_view_chooses_by_model(service: Service, tmp_path: Path):
    service.reply = Rote(load_tree("paper2"))
    here = {"model": "gpt-4o-mini", "base_url": service.address}
    study = make_study(agents=("llm", "oracle"), models=[here, {**here, "name": "twin"}], trees=("2",), seeds=1)
    run_study(study, tmp_path)
    assert inquitree("view", tmp_path, "--model", "twin", "--out", tmp_path / "one.html").status == 0
    assert "paper2 · llm twin · fake level 0 · seed 0" in read_page(tmp_path / "one.html").text
    assert "0 match" in inquitree("view", tmp_path, "--model", "nobody").said


# Any logs


@pytest.fixture
def own(runs: tuple[Path, Path], tmp_path: Path) -> Path:
    """A folder of logs without a run: an agent of one's own, a torn log, a foreign file and an unknown tree."""
    folder = tmp_path / "own"
    folder.mkdir()
    whole = (runs[1] / "episodes" / "paper8_oracle_f0_s0.jsonl").read_bytes()
    mine = whole.replace(b'"agent":{"name":"oracle"}', b'"agent":{"name":"mine","depth":2}', 1)
    (folder / "mine.jsonl").write_bytes(mine)
    (folder / "torn.jsonl").write_bytes(mine[:-20])
    (folder / "foreign.jsonl").write_text('{"messages": []}\n')
    (folder / "elsewhere.jsonl").write_bytes(mine.replace(b'"id":"paper8"', b'"id":"bread"', 1))
    return folder


@pytest.fixture
def judge(service: Service, tmp_path: Path) -> list[object]:
    """Flags of a judge."""
    service.reply = Grader(lambda place, text, asked: 1)
    return ["--judge", "llm:gpt-4o-mini", "--base-url", service.address, "--cache", tmp_path / "cache"]


@pytest.mark.parametrize("verb", ["score", "report", "view", "judge"])
def test_logs_without_a_run_are_read_by_every_verb_and_what_is_none_is_named(own: Path, verb: str, judge: list):
    done = inquitree(verb, own, *judge * (verb == "judge"))
    assert done.status == 0
    assert "it is not the header of an episode log" in done.said
    if verb != "view":
        assert "1 log was played on bread with digest" in done.said
        assert "mine" in done.out or verb == "judge"


def test_runs_folders_and_logs_are_reported_together(runs, own: Path, tmp_path: Path):
    other = tmp_path / "other.jsonl"
    other.write_bytes((own / "mine.jsonl").read_bytes().replace(b'"depth":2', b'"depth":3', 1))
    found = json.loads(inquitree("report", runs[1], own, other, tmp_path / "own" / "foreign.jsonl", "--json").out)
    assert {row["agent"] for row in found["rows"]} == {"oracle", "mine (depth=2)", "mine (depth=3)"}
    assert "--out" in inquitree("view", runs[1], own, other).said
    assert inquitree("view", runs[1], own, other, "--out", tmp_path / "pages").status == 0
    page = read_page(tmp_path / "pages" / "index.html")
    shown = [each for each in page.attributes("href") if each.endswith((".html", ".html#"))]
    assert len(set(shown)) >= 11


# One bad log


@pytest.mark.parametrize("verb", ["score", "report", "view", "judge"])
def test_one_bad_log_is_named_and_the_rest_is_told(runs, tmp_path: Path, verb: str, judge: list):
    run = tmp_path / "run"
    shutil.copytree(runs[1], run)
    bad = run / "episodes" / "paper8_oracle_f0_s1.jsonl"
    bad.write_bytes(bad.read_bytes().replace(b'"fake_level":0', b'"fake_level":"x"', 1))
    flags = judge * (verb == "judge")
    done = inquitree(verb, run, *flags)
    assert done.status == 0
    if verb == "view":
        assert "damaged" in read_page(run / "view" / "index.html").text
        return
    named = "damaged, and left out"
    assert (done.said.count(named), bad.name in done.said) == (1, True)
    plain = inquitree(verb, run, "--json", *flags)
    if verb == "report":
        assert json.loads(plain.out)["missing"] == [bad.name]
    else:
        assert named in plain.said
