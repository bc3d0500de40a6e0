"""The verb probe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inquitree_gym.inquiry.probe import probe_items
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.run import run_study
from inquitree_gym.trees import load_tree
from tests.contract.command_line import inquitree
from tests.inquiry.test_probe import Checker
from tests.servers import Service

pytestmark = pytest.mark.e2e
MODEL = ("--model", "gpt-4o-mini")
ITEMS = len(probe_items(load_tree("paper2")))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    study = make_study(agents=("random", "random-redo"), trees=("paper2",), fake_level=(0, 5), seeds=4, max_turns="11n")
    run_study(study, folder)
    return folder


@pytest.fixture
def checking(service: Service) -> Service:
    service.reply = Checker(load_tree("paper2"), load_tree("paper28"))
    return service


def test_probe_shows_rates_and_keeps_the_answers(checking: Service, tmp_path: Path):
    options = (*MODEL, "--base-url", checking.address, "--papers", "2,paper28", "--out", tmp_path / "kept")
    thrifty = ("--reasoning-effort", "low", "--reply-tokens", "none")
    done = inquitree("probe", *options, "--repeats", 2, "--max-concurrency", 3, *thrifty)
    assert done.status == 0
    assert "Results with their study alone, by gpt-4o-mini" in done.out
    assert "1.000" in done.out
    assert f"answers: {len(checking.requests)} now" in done.said
    (file,) = (tmp_path / "kept").iterdir()
    asked = json.loads(file.read_text().splitlines()[0])["config"]["chat"]
    assert (asked["temperature"], asked["reasoning_effort"], asked["max_tokens"]) == (0.0, "low", None)
    again = inquitree("probe", *options, "--repeats", 2, *thrifty)
    assert f"answers: 0 now (0 tokens, $0.0000), {len(checking.requests)} from before" in again.said
    inquitree("probe", *options, "--reasoning-effort", "high")
    assert len(list((tmp_path / "kept").iterdir())) == 2, "other settings, another file"


def test_probe_beside_a_run_takes_its_trees_and_pairs_its_agents(checking, played, tmp_path):
    options = (*MODEL, "--base-url", checking.address, "--out", tmp_path, "--run", played)
    found = json.loads(inquitree("probe", *options, "--json").out)
    assert (found["results"], len(found["items"]), found["unread"]) == (ITEMS, ITEMS, 0)
    assert found["estimates"]["hit_rate"]["mean"] == 1
    assert [each["player"][0] for each in found["pairs"]] == ["random", "random-redo"]
    random, redoing = found["pairs"]
    assert random["results"] == redoing["results"] > 4
    assert (random["loop"]["hit_rate"]["mean"], random["difference"]["hit_rate"]["mean"]) == (0, -1)
    assert redoing["difference"]["hit_rate"]["mean"] == redoing["difference"]["false_alarm_rate"]["mean"] == 0
    said_so = inquitree("probe", *options).out
    assert "in the loop" in said_so
    assert "probe" in said_so
    assert "random-redo, 11n" in said_so


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "--model"),
        ((*MODEL, "--papers", "6"), "paper6"),
        ((*MODEL, "--repeats", "0"), "--repeats"),
        ((*MODEL, "--max-concurrency", "0"), "--max-concurrency"),
        ((*MODEL, "--max-cost", "0"), "must be a number above 0"),
        ((*MODEL, "--run", "nowhere"), "it does not exist"),
        (("--model", "nobody-knows-me", "--papers", "2"), "litellm knows no provider"),
        (("--model", "openai/unpriced", "--max-cost", "1", "--papers", "2"), "knows no price"),
    ],
)
def test_wrong_words_end_with_status_2(arguments: tuple[str, ...], told: str, tmp_path: Path):
    done = inquitree("probe", *arguments, "--out", tmp_path)
    assert (done.status, done.out) == (2, "")
    assert told in done.said
