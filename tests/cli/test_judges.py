"""The verb judge."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from inquitree_gym.runner.run import run_study
from inquitree_gym.runner.study import make_study
from tests.cli import test_cli
from tests.cli.test_cli import Inquitree
from tests.judges.test_llm import Grader
from tests.servers import Service

inquitree = test_cli.inquitree
MODEL = "llm:gpt-4o-mini"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    run_study(make_study(agents=("oracle", "random-menu"), trees=("paper2",), seeds=1), folder)
    return folder


@pytest.fixture
def run(played: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(played, tmp_path / "run"))


@pytest.fixture
def reading(service: Service) -> Service:
    service.reply = Grader(lambda place, text, asked: int(asked.count(text) > 1))
    return service


def test_judge_keeps_judgements_beside_the_run(inquitree: Inquitree, run: Path):
    done = inquitree("judge", run)
    assert done.status == 0
    assert "local: conclusions judged: 2; items unscored: 0" in done.said
    assert "Judges of" in done.out
    (file,) = (run / "judgements").iterdir()
    assert file.name.startswith("local-")
    again = inquitree("judge", run, run)
    assert "local: conclusions judged: 0; judged before: 2; items unscored: 0" in again.said
    assert again.said.count("local:") == 1, "a run named twice is one run"


def test_judges_side_by_side_as_json(inquitree: Inquitree, run: Path, reading: Service, tmp_path: Path):
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
    done = inquitree("judge", run, "--judge", f"local, {MODEL}", *options)
    (found,) = json.loads(done.out)
    assert [each["judge"] for each in found["judges"]] == ["local", MODEL]
    assert found["judges"][1]["usage"]["replies"] == len(reading.requests) == 2 * 2 * 2
    assert set(found["scores"]) == {"local", MODEL}
    by_agent = {each["agent"]: each["quality_share"] for each in found["scores"][MODEL]}
    assert by_agent["oracle"] == 1
    (agreed,) = found["agreement"]
    assert {agreed["judge"], agreed["with"]} == {"local", MODEL}
    assert len(list((tmp_path / "cache").rglob("*.json"))) == len(reading.requests)


def test_judge_says_what_it_took_and_what_the_budget_left_out(
    inquitree: Inquitree,
    run: Path,
    reading: Service,
    tmp_path: Path,
):
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
    assert "Agreement" not in done.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("judge", "nowhere"), "is no run folder"),
        (("judge", "nowhere", "--judge", "oracle"), "no judge is called 'oracle'"),
        (("judge", "nowhere", "--max-cost", "0"), "is a number above 0"),
        (("judge", "nowhere", "--repeats", "0"), "--repeats"),
    ],
)
def test_wrong_words_end_with_status_2(inquitree: Inquitree, arguments: tuple[str, ...], told: str):
    done = inquitree(*arguments)
    assert (done.status, done.out) == (2, "")
    assert told in done.said
