"""The verb closed-book, and what report makes of cutoffs and of its folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inquitree_gym.results.cutoff import load_models
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.run import run_study
from inquitree_gym.trees import load_tree
from tests.contract.command_line import inquitree
from tests.inquiry.test_memorisation import knowing
from tests.results.html import read_page
from tests.servers import Service, failed

TREES = {name: load_tree(name) for name in ("paper2", "paper17")}
OWN = """
[sources]
us = "our own card"

[[models]]
name = "Ours"
patterns = ["ours"]
cutoff = { date = "2022-12", source = "us" }
"""


@pytest.fixture
def recited(service: Service, tmp_path: Path) -> Path:
    service.reply = knowing(TREES, "paper17")
    done = inquitree("closed-book", "--model", "openai/o3", "--papers", "2,17", "--base-url", service.address,
                     "--reply-tokens", 600, "--out", tmp_path / "known")  # fmt: skip
    assert done.status == 0, done.err
    assert {request.body["max_completion_tokens"] for request in service.requests} == {600}
    return tmp_path / "known"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of an oracle, its logs signed by a model."""
    folder = tmp_path_factory.mktemp("run")
    run_study(make_study(agents=("oracle", "random-menu"), trees=("2", "17"), seeds=1), folder)
    for file in (folder / "episodes").glob("*oracle*"):
        head, *rest = file.read_text().split("\n")
        header = json.loads(head)
        header["agent"] = {"name": "llm", "model": "openai/o3", "reasoning_effort": None}
        file.write_text("\n".join([json.dumps(header), *rest]))
    return folder


def test_models_conclude_from_the_topic_alone(service: Service, tmp_path: Path):
    service.reply = knowing(TREES, "paper17")
    (tmp_path / "own.toml").write_text(OWN)
    options = ("--papers", "2,17", "--base-url", service.address, "--out", tmp_path / "known", "--repeats", 2)
    done = inquitree("closed-book", "--model", "openai/ours, openai/theirs", *options, "--max-concurrency", 1,
                     "--models", tmp_path / "own.toml", "--json")  # fmt: skip
    assert done.status == 0
    ours, theirs = sorted(json.loads(done.out), key=lambda each: each["model"])
    assert [ours[part]["mean"] for part in ("memory", "before", "after", "difference")] == [0.5, 1, 0, 1]
    assert (ours["cutoff"], theirs["cutoff"], theirs["memory"]["mean"]) == ("2022-12", None, 0.5)
    assert "no training cutoff is known for 'openai/theirs'; add it in a file with --models" in done.said
    assert "'openai/ours'" not in done.said
    assert "openai/ours: conclusions: 4 now (480 tokens, $0.0000 and 4 of unknown price), 0 from before" in done.said
    assert "local: conclusions judged: 8; items unscored: 0" in done.said
    again = inquitree("closed-book", "--model", "openai/ours", *options)
    assert "openai/ours: conclusions: 0 now (0 tokens, $0.0000), 4 from before" in again.said
    assert "openai/theirs" in again.out, "the table shows everything that the folder holds"
    assert len(service.requests) == 8


def test_what_could_not_be_asked_ends_with_status_2_and_the_rest_is_shown(service, tmp_path):
    service.reply = knowing(TREES, "paper17")
    options = ("--model", "gpt-4o-mini", "--papers", "2,17", "--base-url", service.address, "--max-concurrency", 1)
    done = inquitree("closed-book", *options, "--out", tmp_path / "capped", "--max-total-tokens", 1)
    assert done.status == 2
    assert "the cap of 1 tokens is reached" in done.said
    assert "1 (1)" in done.out
    done = inquitree("closed-book", *options, "--out", tmp_path / "dear", "--max-cost", 1e-9)
    assert "the cap of $1e-09 is reached" in done.said
    service.planned.append(failed(400, "no such parameter"))
    done = inquitree("closed-book", *options, "--out", tmp_path / "faulty", "--reasoning-effort", "low")
    assert done.status == 2
    assert "1 without an answer, the last error:" in done.said
    assert "no such parameter" in done.said


@pytest.mark.e2e
def test_report_splits_at_the_cutoff_and_sets_memory_beside_it(service, recited, played, tmp_path):
    done = inquitree("report", played, "--closed-book", recited, "--out", tmp_path / "r.html")
    assert done.status == 0
    assert "Before − after the training cutoff" in done.out
    assert "Closed book: mean S from the topic alone" in done.out
    assert "r-cutoff.csv" in done.said
    text = read_page(tmp_path / "r.html").text
    for wanted in ("In the loop beside closed book", "random-menu, control", "only the gain was earned in the loop"):
        assert wanted in text
    found = json.loads(inquitree("report", played, "--closed-book", recited, "--json").out)
    (gain,) = found["closed_book"]["gains"]
    assert (gain["loop"]["mean"], gain["memory"]["mean"], gain["gain"]["mean"]) == (1, 0.5, 0.5)
    assert [split["cutoff"] for split in found["cutoffs"]["splits"]] == ["2024-06-01"] * 2
    assert "closed_book" not in json.loads(inquitree("report", played, "--json").out)


def test_report_takes_cutoffs_of_the_user_and_names_what_has_none(played: Path, tmp_path: Path):
    own = OWN.replace('["ours"]', '["o3"]')
    (tmp_path / "own.toml").write_text(own)
    found = json.loads(inquitree("report", played, "--models", tmp_path / "own.toml", "--json").out)
    split = found["cutoffs"]["splits"][0]
    assert (split["cutoff"], split["before"]["coverage"]["trees"], split["after"]["coverage"]["trees"]) == (
        "2022-12", 1, 1,
    )  # fmt: skip
    for file in (played / "episodes").glob("*oracle*"):
        file.write_text(file.read_text().replace('"openai/o3"', '"openai/o3-unheard-of"'))
    done = inquitree("report", played)
    assert "no training cutoff is known for 'openai/o3-unheard-of', which leaves 2 episodes out" in done.said
    assert "Before − after" not in done.out


def test_a_file_of_models_that_is_at_fault_is_told_before_anything_is_read(tmp_path: Path):
    (tmp_path / "own.toml").write_text(OWN.replace("2022-12", "late"))
    for arguments in (("report", tmp_path / "no-run"), ("closed-book", "--model", "x/y", "--out", tmp_path / "o")):
        done = inquitree(*arguments, "--models", tmp_path / "own.toml")
        assert (done.status, done.out) == (2, "")
        assert "Ours › cutoff › date: Value error, 'late' is not a date" in done.said
    assert not (tmp_path / "o").exists()
    assert len(load_models()) > 20
