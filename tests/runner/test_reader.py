"""Studies whose actions are read by a model, on a real server on loopback: at once, resumed, capped and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.analysis import load_run
from inquitree_gym.analysis.rethreshold import rematch_run
from inquitree_gym.cli import main
from inquitree_gym.embeddings import Embedder
from inquitree_gym.errors import OptionError
from inquitree_gym.llm import Budget
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.runner import RunOptions, RunSummary, StudyConfig, run_study
from inquitree_gym.runner.growth import differences
from inquitree_gym.runner.study import make_study, read_study
from tests.runner.played import TREE, episodes
from tests.servers import COMPLETION_TOKENS, KEY, PROMPT_TOKENS, Body, Rote, Service, failed
from tests.test_readers import meet, sort

pytestmark = pytest.mark.e2e

CHOICES = len(TREE.subtopics) + sum(len(subtopic.studies) for subtopic in TREE.subtopics)
"""Readings of one episode of the oracle, at most."""


@pytest.fixture
def sorting(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A model that plays and reads, and an empty cache of replies."""
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path / "cache"))
    play = Rote(TREE)
    service.reply = lambda body: sort(body) if reads(body) else play(body)
    return service


def reads(body: Body) -> bool:
    return body["messages"][0]["content"].startswith("You sort the proposals")


def paid_readings(episode: Episode) -> int:
    return sum(reply.role == "reader" and not reply.cached for reply in episode.replies)


def study_of(service: Service, *agents: str, seeds: int = 2, **settings: Any) -> StudyConfig:
    asked = {"model": "gpt-4o-mini", "base_url": service.address, "retries": 0}
    models = [asked] if "llm" in agents else []
    return make_study(agents=agents, models=models, trees=("2",), seeds=seeds, reader={**asked, **settings})


def test_readings_are_logged_paid_for_once_and_counted(sorting: Service, tmp_path: Path):
    budget = Budget()
    study = study_of(sorting, "oracle", "llm")
    assert run_study(study, tmp_path, RunOptions(budget=budget)) == RunSummary(played=4, found=0)
    found = episodes(tmp_path)
    read = [reply for episode in found.values() for reply in episode.replies if reply.role == "reader"]
    assert len(read) == 4 * CHOICES
    assert (
        sum(not reply.cached for reply in read) == sum(reads(request.body) for request in sorting.requests) <= CHOICES
    )
    assert budget.usage.replies == len(sorting.requests)
    assert budget.usage.tokens == len(sorting.requests) * (PROMPT_TOKENS + COMPLETION_TOKENS)
    assert {episode.header.reader["name"] for episode in found.values() if episode.header.reader} == {"llm:gpt-4o-mini"}
    run = load_run(tmp_path)
    assert {score.reading for score in run.scores} == {"llm:gpt-4o-mini"}
    assert {episode.cost.unread for episode in run.episodes} == {0}
    assert KEY not in (tmp_path / "run.json").read_text()
    asked = len(sorting.requests)
    assert run_study(study, tmp_path) == RunSummary(played=0, found=4)
    rematch_run(tmp_path)
    assert len(sorting.requests) == asked


def test_agents_without_a_model_are_read_at_the_same_time(sorting: Service, tmp_path: Path):
    meet(sorting, 3)
    study = study_of(sorting, "random-words", seeds=3)
    assert run_study(study, tmp_path, RunOptions(max_concurrency=3, cache=tmp_path / "replies")).played == 3
    assert list((tmp_path / "replies").rglob("*.json"))


def test_a_torn_run_is_resumed_and_only_new_actions_are_read(sorting: Service, tmp_path: Path):
    study = study_of(sorting, "oracle", seeds=1)
    sorting.planned.extend([lambda: None] * 3 + [failed(500)])
    summary = run_study(study, tmp_path)
    assert (len(summary.failures), summary.models, summary.ended) == (1, {}, "")
    assert "the reader could not read an action" in summary.failures[0].error
    (torn,) = episodes(tmp_path).values()
    assert (torn.status, len(torn.turns)) == ("failed", 4)
    for file in (tmp_path / "cache").rglob("*.json"):
        file.unlink()
    assert run_study(study, tmp_path) == RunSummary(played=1, found=0)
    (episode,) = episodes(tmp_path).values()
    assert len(sorting.requests) == paid_readings(episode) + 1


def test_a_reader_that_is_refused_stops_the_run_and_is_no_fault_of_the_agents_model(sorting: Service, tmp_path: Path):
    sorting.planned.extend([failed(401, "Incorrect API key")] * 99)
    summary = run_study(study_of(sorting, "oracle", seeds=4), tmp_path, RunOptions(max_concurrency=1))
    assert (len(summary.failures), summary.left, summary.models) == (1, 3, {})
    assert "the reader could not read an action" in summary.ended
    sorting.planned.clear()
    sorting.planned.extend([lambda: None, failed(401, "Incorrect API key")])
    summary = run_study(study_of(sorting, "llm", seeds=2), tmp_path / "llm", RunOptions(max_concurrency=1))
    assert (summary.models, summary.left) == ({}, 1)
    assert "the reader" in summary.ended


def test_a_key_that_is_missing_is_told_before_anything_is_played(
    sorting: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    summary = run_study(study_of(sorting, "oracle", api_key_env="NO_SUCH_KEY"), tmp_path)
    assert (summary.left, summary.played) == (2, 0)
    assert "NO_SUCH_KEY" in summary.ended
    assert sorting.requests == []


def test_a_cap_holds_for_readings(sorting: Service, tmp_path: Path):
    budget = Budget(max_total_tokens=2 * (PROMPT_TOKENS + COMPLETION_TOKENS))
    summary = run_study(study_of(sorting, "oracle"), tmp_path, RunOptions(max_concurrency=1, budget=budget))
    assert (summary.played, summary.left, len(sorting.requests)) == (0, 2, 2)
    assert "the cap of 240 tokens is reached" in summary.ended
    with pytest.raises(OptionError, match="knows no price for 'my-own'"):
        run_study(study_of(sorting, "oracle", model="my-own"), tmp_path / "x", RunOptions(budget=Budget(max_cost=1)))
    assert not (tmp_path / "x").exists()


def test_replies_that_name_no_candidate_are_counted(sorting: Service, tmp_path: Path):
    sorting.reply = lambda body: "I cannot say."
    run_study(study_of(sorting, "oracle", seeds=1), tmp_path)
    (episode,) = load_run(tmp_path).episodes
    assert episode.cost.unread == episode.cost.replies >= CHOICES
    assert episode.score.trajectory.coverage == 1  # by forced moves
    assert episode.readings.reasons["below_threshold"] == episode.cost.unread


def test_a_study_file_names_a_reader(tmp_path: Path):
    file = tmp_path / "s.toml"
    file.write_text('agents = ["oracle"]\ntrees = ["2"]\nreader = "llm:gpt-4o-mini"\n')
    study = read_study(file)
    assert (study.reader_name, study.embedder) == ("llm:gpt-4o-mini", StudyConfig(agents=("oracle",)).embedder)
    assert StudyConfig.model_validate(json.loads(json.dumps(study.model_dump(mode="json")))) == study
    file.write_text('agents = ["oracle"]\ntrees = ["2"]\n[reader]\nmodel = "gpt-4o-mini"\ntimeout = 9\n')
    table = read_study(file)
    assert list(differences(study, table)) == []
    file.write_text('agents = ["oracle"]\ntrees = ["2"]\nreader = "local"\n')
    assert list(differences(study, read_study(file))) == ["reader is gpt-4o-mini there and not set here"]
    file.write_text('agents = ["oracle"]\nreader = "gpt-4o"\n')
    with pytest.raises(OptionError, match=r"reader: reader is 'local' or 'llm:MODEL'"):
        read_study(file)


@pytest.fixture
def inquitree(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run the command line; return status, output and error stream."""

    def command(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["inquitree", *map(str, arguments)])
        capsys.readouterr()
        status = 0
        try:
            main()
        except SystemExit as left:
            status = int(left.code or 0)
        out, err = capsys.readouterr()
        return status, " ".join(out.split()), " ".join(err.split())

    return command


def test_the_command_line_takes_a_reader(
    inquitree: Callable[..., tuple[int, str, str]], sorting: Service, tmp_path: Path, minilm: Embedder
):
    folder = tmp_path / "run"
    flags = ("--papers", "2", "--agent", "oracle", "--seeds", 1, "--out", folder)
    reader = ("--reader", "llm:gpt-4o-mini", "--reader-base-url", sorting.address)
    status, out, err = inquitree("run", *flags, *reader, "--dry-run")
    assert (status, err) == (0, "")
    assert "llm:gpt-4o-mini reads the actions, at most one request a turn; these requests are not included" in out
    assert json.loads(inquitree("run", *flags, *reader, "--dry-run", "--json")[1])["reader"] == "llm:gpt-4o-mini"
    assert sorting.requests == []
    status, _, err = inquitree("run", *flags, *reader)
    assert status == 0, err
    (log,) = (folder / "episodes").iterdir()
    asked = paid_readings(read_episode(log))
    assert asked == len(sorting.requests)
    assert f"({asked} replies, $0." in err
    status, _, err = inquitree("run", *flags)
    assert status == 2
    assert "reader is gpt-4o-mini there and not set here" in err
    assert "Read again by llm:gpt-4o-mini" in inquitree("reread", folder)[1]
    assert f"Read again by {minilm.name}" in inquitree("reread", folder, "--embedder", minilm.name)[1]
    assert len(sorting.requests) == asked


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--reader", "gpt-4o"), "reader is 'local' or 'llm:MODEL' with litellm's name of a model"),
        (("--reader", "llm:no-such-model"), "litellm knows no provider for the model 'no-such-model'"),
        (("--reader-base-url", "http://x/v1"), "--reader-base-url without a model does nothing"),
    ],
)
def test_wrong_readers_write_nothing(
    inquitree: Callable[..., tuple[int, str, str]], tmp_path: Path, given: tuple[str, ...], told: str
):
    status, _, err = inquitree("run", "--agent", "oracle", "--papers", "2", *given, "--out", tmp_path / "run")
    assert status == 2
    assert told in err
    assert not (tmp_path / "run").exists()
