"""The verb probe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inquitree_gym.analysis.probe import probe_items
from inquitree_gym.runner.run import run_study
from inquitree_gym.runner.study import make_study
from inquitree_gym.trees import load_tree
from tests.analysis.test_probe import Checker
from tests.cli import test_cli
from tests.cli.test_cli import Inquitree
from tests.servers import Service, failed, said

pytestmark = pytest.mark.e2e

inquitree = test_cli.inquitree
MODEL = ("--model", "gpt-4o-mini")
ITEMS = len(probe_items(load_tree("paper2")))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    study = make_study(agents=("random", "random-redo"), trees=("paper2",), fake_levels=(0, 5), seeds=4)
    run_study(study, folder)
    return folder


@pytest.fixture
def checking(service: Service) -> Service:
    service.reply = Checker(load_tree("paper2"), load_tree("paper28"))
    return service


def test_probe_shows_rates_and_keeps_the_answers(inquitree: Inquitree, checking: Service, tmp_path: Path):
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


def test_probe_beside_a_run_takes_its_trees_and_pairs_its_agents(
    inquitree: Inquitree, checking: Service, played: Path, tmp_path: Path
):
    options = (*MODEL, "--base-url", checking.address, "--out", tmp_path, "--run", played)
    found = json.loads(inquitree("probe", *options, "--json").out)
    assert (found["results"], len(found["items"]), found["unread"]) == (ITEMS, ITEMS, 0)
    assert found["estimates"]["hits"]["mean"] == 1
    assert [each["player"][0] for each in found["pairs"]] == ["random", "random-redo"]
    random, redoing = found["pairs"]
    assert random["results"] == redoing["results"] > 4
    assert (random["loop"]["hits"]["mean"], random["difference"]["hits"]["mean"]) == (0, -1)
    assert redoing["difference"]["hits"]["mean"] == redoing["difference"]["false alarms"]["mean"] == 0
    said_so = inquitree("probe", *options).out
    assert "in the loop" in said_so
    assert "probe" in said_so
    assert "random-redo, default" in said_so


def test_probe_of_bare_statements(inquitree: Inquitree, checking: Service, tmp_path: Path):
    options = (*MODEL, "--base-url", checking.address, "--papers", "2", "--out", tmp_path, "--bare")
    found = json.loads(inquitree("probe", *options, "--json").out)
    assert (found["mode"], found["results"], found["estimates"]["hits"]["mean"]) == ("bare", ITEMS, 1)
    assert all(messages[-1]["content"].startswith("Statement: ") for messages in checking.chats)
    assert "Bare statements (the control), by gpt-4o-mini" in inquitree("probe", *options).out


def test_what_is_missing_is_told_and_asked_by_the_same_command(inquitree: Inquitree, checking: Service, tmp_path: Path):
    options = (*MODEL, "--base-url", checking.address, "--papers", "2", "--out", tmp_path, "--max-concurrency", 1)
    checking.planned.extend([failed(400, "not this one"), said("VALID, I think")])
    done = inquitree("probe", *options)
    assert done.status == 2
    assert "answers: 1 without an answer, the last error: the model 'gpt-4o-mini' was asked once" in done.said
    assert "answers without a verdict: 1" in done.said
    assert "1.000" in done.out, "what was answered is shown"
    again = inquitree("probe", *options)
    assert again.status == 0
    assert f"answers: 1 now (120 tokens, $0.0000), {ITEMS - 1} from before" in again.said


@pytest.mark.parametrize("cap", [("--max-total-tokens", 300), ("--max-cost", 0.00006)])
def test_a_cap_ends_the_asking_and_a_higher_one_goes_on(
    cap: tuple[str, float], inquitree: Inquitree, checking: Service, tmp_path: Path
):
    options = (*MODEL, "--base-url", checking.address, "--papers", "2", "--out", tmp_path, "--max-concurrency", 1)
    done = inquitree("probe", *options, *cap)
    assert done.status == 2
    assert "is reached" in done.said
    assert len(checking.requests) == 3
    done = inquitree("probe", *options, cap[0], 10**6)
    assert (done.status, len(checking.requests)) == (0, ITEMS)


def test_a_service_that_will_answer_nothing_ends_it_with_what_to_do(
    inquitree: Inquitree, service: Service, tmp_path: Path
):
    service.planned.append(failed(401, "who are you"))
    done = inquitree(
        "probe", *MODEL, "--base-url", service.address, "--papers", "2", "--out", tmp_path, "--max-concurrency", 1
    )
    assert (done.status, done.out) == (2, "")
    assert "who are you; check the key" in done.said
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "--model"),
        ((*MODEL, "--papers", "6"), "paper6"),
        ((*MODEL, "--repeats", "0"), "--repeats"),
        ((*MODEL, "--max-concurrency", "0"), "--max-concurrency"),
        ((*MODEL, "--max-cost", "0"), "is a number above 0"),
        ((*MODEL, "--run", "nowhere"), "it does not exist"),
        (("--model", "nobody-knows-me", "--papers", "2"), "litellm knows no provider"),
        (("--model", "openai/unpriced", "--max-cost", "1", "--papers", "2"), "knows no price"),
    ],
)
def test_wrong_words_end_with_status_2(inquitree: Inquitree, arguments: tuple[str, ...], told: str, tmp_path: Path):
    done = inquitree("probe", *arguments, "--out", tmp_path)
    assert (done.status, done.out) == (2, "")
    assert told in done.said
