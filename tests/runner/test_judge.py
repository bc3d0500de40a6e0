"""Studies whose reward a model sets, on a real server on loopback: at once, resumed, capped and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.analysis import load_run
from inquitree_gym.errors import JudgeError, OptionError
from inquitree_gym.llm import Budget
from inquitree_gym.runner import RunOptions, RunSummary, StudyConfig, run_study
from inquitree_gym.runner.growth import differences
from inquitree_gym.runner.study import make_study, read_study
from tests.judges.test_llm import Grader
from tests.runner import test_reader
from tests.runner.played import TREE, episodes
from tests.servers import COMPLETION_TOKENS, KEY, PROMPT_TOKENS, Body, Rote, Service, failed

pytestmark = pytest.mark.e2e

inquitree = test_reader.inquitree


@pytest.fixture
def grading(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A model that plays and judges, and an empty cache of replies."""
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path / "cache"))
    play, grade = Rote(TREE), Grader(lambda place, text, asked: 0.6)
    service.reply = lambda body: grade(body) if judges(body) else play(body)
    return service


def judges(body: Body) -> bool:
    return body["messages"][0]["content"].startswith("You grade the conclusion")


def study_of(service: Service, *agents: str, seeds: int = 2, **settings: Any) -> StudyConfig:
    asked = {"model": "gpt-4o-mini", "base_url": service.address, "retries": 0}
    models = [asked] if "llm" in agents else []
    return make_study(agents=agents, models=models, trees=("2",), seeds=seeds, judge={**asked, **settings})


def test_a_model_sets_the_rewards_of_a_study_and_is_paid_once(grading: Service, tmp_path: Path):
    budget = Budget()
    study = study_of(grading, "oracle", "llm")
    assert run_study(study, tmp_path, RunOptions(budget=budget)) == RunSummary(played=4, found=0)
    found = episodes(tmp_path).values()
    by_agent = {episode.header.agent["name"]: episode.footer.episode_return for episode in found}
    assert by_agent["oracle"] == pytest.approx(0.6)
    assert 0 < by_agent["llm"] <= 0.6
    assert {episode.judge["name"] for episode in found} == {"llm:gpt-4o-mini"}
    replies = [reply for episode in found for reply in episode.replies if reply.role == "judge"]
    assert len(replies) == 4 * 2
    assert sum(not reply.cached for reply in replies) == sum(judges(request.body) for request in grading.requests)
    assert budget.usage.replies == len(grading.requests)
    assert KEY not in (tmp_path / "run.json").read_text()
    asked = len(grading.requests)
    assert run_study(study, tmp_path) == RunSummary(played=0, found=4)
    assert len(grading.requests) == asked
    with pytest.raises(JudgeError, match="inquitree judge"):
        load_run(tmp_path, judge="llm:gpt-4o-mini")


def test_inquitree_judge_takes_what_the_reward_has_paid(
    inquitree: Callable[..., tuple[int, str, str]], grading: Service, tmp_path: Path
):
    run_study(study_of(grading, "oracle", seeds=1), tmp_path)
    asked = len(grading.requests)
    status, _, err = inquitree("judge", tmp_path, "--judge", "llm:gpt-4o-mini", "--base-url", grading.address)
    assert (status, len(grading.requests)) == (0, asked), err
    (score,) = load_run(tmp_path, judge="llm:gpt-4o-mini").scores
    (episode,) = episodes(tmp_path).values()
    assert score.quality_share == pytest.approx(episode.footer.episode_return) == pytest.approx(0.6)


def test_a_torn_run_is_resumed_and_only_the_missing_reply_is_paid(grading: Service, tmp_path: Path):
    study = study_of(grading, "oracle", seeds=1)
    grading.planned.extend([lambda: None, failed(500)])
    summary = run_study(study, tmp_path)
    assert (len(summary.failures), summary.models, summary.ended) == (1, {}, "")
    assert "the judge could not grade a conclusion" in summary.failures[0].error
    assert run_study(study, tmp_path) == RunSummary(played=1, found=0)
    assert len(grading.requests) == 3


def test_a_judge_that_is_refused_stops_the_run_and_is_no_fault_of_the_agents_model(grading: Service, tmp_path: Path):
    grading.planned.extend([failed(401, "Incorrect API key")] * 99)
    summary = run_study(study_of(grading, "oracle", seeds=4), tmp_path, RunOptions(max_concurrency=1))
    assert (len(summary.failures), summary.left, summary.models) == (1, 3, {})
    assert "the judge could not grade a conclusion" in summary.ended


def test_a_key_that_is_missing_is_told_before_anything_is_played(
    grading: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    summary = run_study(study_of(grading, "oracle", api_key_env="NO_SUCH_KEY"), tmp_path)
    assert (summary.left, summary.played, "NO_SUCH_KEY" in summary.ended) == (2, 0, True)
    assert grading.requests == []


def test_a_cap_holds_for_grades(grading: Service, tmp_path: Path):
    budget = Budget(max_total_tokens=PROMPT_TOKENS + COMPLETION_TOKENS)
    summary = run_study(study_of(grading, "oracle"), tmp_path, RunOptions(max_concurrency=1, budget=budget))
    assert (summary.played, summary.left, len(summary.failures), len(grading.requests)) == (0, 2, 0, 1)
    assert "the budget is used up" in summary.ended


def test_a_study_file_names_a_judge(tmp_path: Path):
    file = tmp_path / "s.toml"
    file.write_text('agents = ["oracle"]\ntrees = ["2"]\njudge = "llm-paper:gpt-4o-mini"\n')
    study = read_study(file)
    assert (study.judge_name, study.judge.orders, study.judge.variants) == ("llm-paper:gpt-4o-mini", 1, False)
    assert StudyConfig.model_validate(json.loads(json.dumps(study.model_dump(mode="json")))) == study
    table = '[judge]\nmodel = "gpt-4o-mini"\norders = 1\nvariants = false\ntimeout = 9\n'
    file.write_text(f'agents = ["oracle"]\ntrees = ["2"]\n{table}')
    assert list(differences(study, read_study(file))) == []
    file.write_text('agents = ["oracle"]\ntrees = ["2"]\njudge = "local"\n')
    assert list(differences(study, read_study(file))) == ["judge is gpt-4o-mini there and not set here"]
    assert read_study(file).judge_name == "local"
    file.write_text('agents = ["oracle"]\njudge = "nli:my-model"\n')
    with pytest.raises(
        OptionError, match=r"judge: the judge of a study is 'local', .* run inquitree judge after the study"
    ):
        read_study(file)
    file.write_text('agents = ["oracle"]\n[judge]\nmodel = "gpt-4o-mini"\norders = 3\n')
    with pytest.raises(OptionError, match=r"judge\.orders: needs at most 2"):
        read_study(file)


def test_the_command_line_takes_a_judge(
    inquitree: Callable[..., tuple[int, str, str]], grading: Service, tmp_path: Path
):
    folder = tmp_path / "run"
    flags = ("--papers", "2", "--agent", "oracle", "--seeds", 1, "--out", folder)
    judge = ("--judge", "llm-paper:gpt-4o-mini", "--judge-base-url", grading.address)
    status, out, _ = inquitree("run", *flags, *judge, "--dry-run")
    assert status == 0
    assert "llm-paper:gpt-4o-mini judges the conclusions, 1 request each; these requests are not included" in out
    assert json.loads(inquitree("run", *flags, *judge, "--dry-run", "--json")[1])["judge"] == "llm-paper:gpt-4o-mini"
    assert grading.requests == []
    status, _, err = inquitree("run", *flags, *judge)
    assert (status, len(grading.requests)) == (0, 1), err
    status, _, err = inquitree("run", *flags)
    assert (status, "judge is gpt-4o-mini there and not set here" in err) == (2, True)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--judge", "gpt-4o"), "the judge of a study is 'local', 'llm:MODEL' or 'llm-paper:MODEL', not 'gpt-4o'"),
        (("--judge", "llm:"), "the judge of a study is"),
        (("--judge", "llm:no-such-model"), "litellm knows no provider for the model 'no-such-model'"),
        (("--judge-base-url", "http://x/v1"), "--judge-base-url without a model does nothing"),
    ],
)
def test_wrong_judges_write_nothing(
    inquitree: Callable[..., tuple[int, str, str]], tmp_path: Path, given: tuple[str, ...], told: str
):
    status, _, err = inquitree("run", "--agent", "oracle", "--papers", "2", *given, "--out", tmp_path / "run")
    assert (status, told in err) == (2, True), err
    assert not (tmp_path / "run").exists()
