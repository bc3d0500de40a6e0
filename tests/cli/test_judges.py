"""The verb judge."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.results.figures import DOTS
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.run import run_study
from tests.contract.command_line import inquitree
from tests.inquiry.judges.test_llm import Grader
from tests.results.html import read_page
from tests.servers import Service

MODEL = "llm:gpt-4o-mini"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    run_study(make_study(agents=("oracle", "random-menu"), trees=("paper2",), seeds=1, max_turns=None), folder)
    return folder


@pytest.fixture
def run(played: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(played, tmp_path / "run"))


@pytest.fixture
def reading(service: Service) -> Service:
    service.reply = Grader(lambda place, text, asked: int(asked.count(text) > 1))
    return service


def test_effort_and_reply_tokens_reach_the_model_of_a_judge(run: Path, reading: Service, tmp_path: Path):
    options = ("--base-url", reading.address, "--cache", tmp_path / "cache", "--reasoning-effort", "low")
    done = inquitree("judge", run, "--judge", "llm:o3-mini", *options, "--reply-tokens", 700)
    assert done.status == 0, done.err
    sent = {(each.body["reasoning_effort"], each.body["max_completion_tokens"]) for each in reading.requests}
    assert sent == {("low", 700)}


def test_judges_side_by_side_as_json(run: Path, reading: Service, tmp_path: Path):
    options = (
        "--base-url",
        reading.address,
        "--cache",
        tmp_path / "cache",
        "--repeats",
        2,
        "--max-concurrency",
        1,
        "--json",
    )
    done = inquitree("judge", run, "--judge", f"llm:o3-mini, {MODEL}", *options)
    (found,) = json.loads(done.out)
    assert [each["judge"] for each in found["judges"]] == ["llm:o3-mini", MODEL]
    assert [each["usage"]["replies"] for each in found["judges"]] == [2 * 2 * 2] * 2
    assert len(reading.requests) == 2 * 2 * 2 * 2
    assert set(found["scores"]) == {"llm:o3-mini v1", f"{MODEL} v1"}
    by_agent = {each["agent"]: each["quality_share"] for each in found["scores"][f"{MODEL} v1"]}
    assert by_agent["oracle"] == 1
    assert len(list((tmp_path / "cache").rglob("*.json"))) == len(reading.requests)


def test_judge_says_what_it_took_and_what_the_budget_left_out(run: Path, reading: Service, tmp_path: Path):
    options = ("--judge", MODEL, "--base-url", reading.address, "--cache", tmp_path / "cache", "--max-concurrency", 1)
    done = inquitree("judge", run, *options, "--max-cost", 1e-9)
    assert done.status == 0
    assert "replies paid for: 1 (120 tokens, $0.0000); left out for the budget: 3" in done.said
    done = inquitree("judge", run, *options, "--max-total-tokens", 1)
    assert "replies paid for: 1 (120 tokens, $0.0000); from the cache: 1; left out for the budget: 2" in done.said
    done = inquitree("judge", run, *options)
    assert (
        "conclusions judged: 1; judged before: 1; items unscored: 0 llm:gpt-4o-mini: replies paid for: 2 (240 tokens"
        in done.said
    )


def test_conclusions_have_no_judge_by_default(run: Path):
    done = inquitree("judge", run)
    assert done.status == 2
    assert "no judge is named for the conclusions; name one, such as --judge llm:MODEL; known: nli:MODEL" in done.said
    assert "no judge is called 'local'; known: nli:MODEL" in inquitree("judge", run, "--judge", "local").said


# The judge of the tables


@pytest.fixture
def zeros(run: Path, service: Service, tmp_path: Path) -> Path:
    """A run that the model has judged, and found nothing in."""
    service.reply = Grader(lambda place, text, asked: 0)
    options = ("--base-url", service.address, "--cache", tmp_path / "cache")
    assert inquitree("judge", run, "--judge", MODEL, *options).status == 0
    return run


@pytest.mark.e2e
def test_one_judge_for_every_table(zeros: Path, service: Service, tmp_path: Path):
    asked = len(service.requests)
    label = f"{MODEL} v1"
    assert {each["quality"] for each in json.loads(inquitree("score", zeros, "--judge", MODEL, "--json").out)} == {0}
    assert f"judged by {label}" in " ".join(inquitree("score", zeros, "--judge", MODEL).out.split())
    found = json.loads(inquitree("report", zeros, "--judge", MODEL, "--json").out)
    assert found["judged_by"] == label
    assert {row["estimates"]["Q/|C|"]["mean"] for row in found["rows"]} == {0}
    done = inquitree("report", zeros, "--judge", MODEL, "--out", tmp_path / "r.html")
    assert f"Results, judged by {label}" in " ".join(done.out.split())
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    chart = f"conclusion Q/|C| by agent; {DOTS}"
    for caption in (chart, "Conclusion Q/|C|", "Before and after"):
        assert (f"{caption}, judged by {label}<" in page) is (caption != "Before and after"), caption
    assert f"coverage r_c by agent, judged by {label}" not in page
    assert label in (tmp_path / "r.csv").read_text(encoding="utf-8")
    assert inquitree("view", zeros, "--judge", MODEL, "--out", tmp_path / "view").status == 0
    assert f"episodes, judged by {label}" in read_page(tmp_path / "view" / "index.html").text
    one = ("--agent", "oracle", "--judge", MODEL, "--out", tmp_path / "one.html")
    assert inquitree("view", zeros, *one).status == 0
    assert f"Conclusion items, judged by {label}" in read_page(tmp_path / "one.html").text
    assert len(service.requests) == asked, "tables ask nobody"


@pytest.mark.parametrize("verb", ["score", "report", "view"])
def test_a_judge_that_was_not_asked_is_an_error_with_the_command(run: Path, verb: str):
    done = inquitree(verb, run, "--judge", MODEL)
    assert (done.status, done.out) == (2, "")
    assert f"of '{run}' yet; run: inquitree judge {run} --judge {MODEL}" in done.said
    assert "no judge is called 'nil:m' (did you mean 'nli:'?)" in inquitree(verb, run, "--judge", "nil:m").said


def test_a_log_outside_of_a_run_has_no_judge(zeros: Path, tmp_path: Path):
    log = shutil.copy(next((zeros / "episodes").iterdir()), tmp_path / "one.jsonl")
    done = inquitree("view", log, "--judge", MODEL)
    assert (done.status, "has not judged 'one.jsonl'" in done.said) == (2, True)
    assert inquitree("view", log).status == 0


# The setting of the paper


def test_the_paper_asks_once_without_false_variants(run: Path, service: Service, tmp_path: Path):
    service.reply = Grader(lambda place, text, asked: 0.6)
    options = ("--base-url", service.address, "--cache", tmp_path / "cache", "--json")
    paper = "llm-paper:gpt-4o-mini"
    done = inquitree("judge", run, "--judge", paper, *options)
    (found,) = json.loads(done.out)
    assert [each["judge"] for each in found["judges"]] == [paper]
    assert len(service.requests) == 2
    assert not any("contrary" in message["content"] for chat in service.chats for message in chat)
    assert json.loads(inquitree("score", run, "--judge", paper, "--json").out)[0]["judge"] == paper
    # The same by the two switches; the replies are there.
    same = json.loads(inquitree("judge", run, "--judge", MODEL, "--orders", 1, "--no-variants", *options).out)
    assert (same[0]["judges"][0]["judge"], same[0]["judges"][0]["found"]) == (paper, 2)
    assert len(service.requests) == 2


def test_each_switch_alone_is_a_setting_of_its_own(run: Path, service: Service, tmp_path: Path):
    service.reply = Grader(lambda place, text, asked: 1)
    options = ("--base-url", service.address, "--cache", tmp_path / "cache", "--json")
    assert inquitree("judge", run, "--judge", MODEL, "--orders", 1, *options).status == 0
    assert len(service.requests) == 2
    assert all("contrary to" in chat[-1]["content"] for chat in service.chats)
    found = json.loads(inquitree("judge", run, "--judge", MODEL, "--no-variants", *options).out)
    assert len(service.requests) == 2 + 4
    assert set(found[0]["scores"]) == {f"{MODEL} v1"}
    assert inquitree("score", run, "--judge", MODEL).status == 0
    assert inquitree("judge", run, "--judge", MODEL, "--orders", 3).status == 2


@pytest.mark.parametrize(
    ("judge", "flags", "flag"),
    [
        ("nli:nosuch", ("--orders", 1), "--orders"),
        ("nli:nosuch", ("--no-variants",), "--no-variants"),
        ("nli:nosuch", ("--max-cost", 1), "--max-cost"),
        ("nli:nosuch", ("--repeats", 2), "--repeats"),
        ("llm-paper:gpt-4o-mini", ("--orders", 1), "--orders"),
    ],
)
def test_a_flag_that_no_judge_uses_is_refused(judge: str, flags: tuple[Any, ...], flag: str, run: Path):
    done = inquitree("judge", run, "--judge", judge, *flags)
    assert done.status == 2
    assert f"{flag} must come with a judge that asks a chat model and leaves it open, got --judge {judge}." in done.said
    assert f"Leave out {flag}, or name such a judge: --judge llm:MODEL." in done.said
    assert not (run / "judgements").exists()
