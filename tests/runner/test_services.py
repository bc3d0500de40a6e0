"""Studies whose actions a model reads or whose rewards one sets, on loopback: at once, resumed, capped and refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from inquitree_gym.errors import JudgeError, OptionError
from inquitree_gym.llm import Budget
from inquitree_gym.log import Episode, Reply
from inquitree_gym.results.load import load_run
from inquitree_gym.runner import RunOptions, RunSummary, StudyConfig, run_study
from inquitree_gym.runner.check import make_study, read_study
from inquitree_gym.runner.growth import differences
from inquitree_gym.runner.services import judge_settings
from tests.contract.command_line import inquitree
from tests.inquiry.judges.test_llm import Grader
from tests.inquiry.test_readers import meet, sort
from tests.runner.played import TREE, episodes
from tests.servers import COMPLETION_TOKENS, KEY, PROMPT_TOKENS, Body, Rote, Service, failed

pytestmark = pytest.mark.e2e

CHOICES = 2 * len(TREE.subtopics)
"""Readings of one episode of the oracle."""


class Case(NamedTuple):
    """A model beside the agent's, as a setting of the study."""

    setting: str
    opening: str
    """How its requests begin."""
    reply: Callable[[Body], str]
    fault: str
    """What is told where it gives no answer."""
    name: str
    """The model by name in a study file, and on the command line."""
    table: str
    """The same as a table."""
    dry_run: str
    wrong: str
    """A name that is refused."""
    told: str

    def asked_by(self, body: Body) -> bool:
        return body["messages"][0]["content"].startswith(self.opening)

    def replies(self, found: Iterable[Episode]) -> list[Reply]:
        return [reply for episode in found for reply in episode.replies if reply.role == self.setting]

    def study(self, service: Service, *agents: str, seeds: int = 2, **settings: Any) -> StudyConfig:
        asked = {"model": "gpt-4o-mini", "base_url": service.address, "retries": 0}
        models = [asked] if "llm" in agents else []
        return make_study(
            agents=agents,
            models=models,
            trees=("2",),
            seeds=seeds,
            max_turns="11n",
            **{self.setting: {**asked, **settings}},
        )


READER = Case(
    setting="reader", opening="You sort the proposals", reply=sort, fault="the reader could not read an action",
    name="llm:gpt-4o-mini", table="timeout = 9\n", wrong="gpt-4o",
    told="reader: a reader must be 'local' or 'llm:MODEL'",
    dry_run="The environment asks gpt-4o-mini; these requests are not included",
)  # fmt: skip
JUDGE = Case(
    setting="judge", opening="You grade the conclusion", reply=Grader(lambda place, text, asked: 0.6),
    fault="the judge could not grade a conclusion", name="llm-paper:gpt-4o-mini",
    table="orders = 1\nvariants = false\ntimeout = 9\n", wrong="nli:my-model",
    told="the judge of a study must be 'llm:MODEL' or .* run inquitree judge after the study",
    dry_run="llm-paper:gpt-4o-mini judges the conclusions, 1 request each; these requests are not included",
)  # fmt: skip


@pytest.fixture(params=[READER, JUDGE], ids=lambda case: case.setting)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture
def answering(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A model that plays, reads and judges, and an empty cache of replies."""
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path / "cache"))
    play = Rote(TREE)

    def reply(body: Body) -> str:
        other = next((each for each in (READER, JUDGE) if each.asked_by(body)), None)
        return other.reply(body) if other else play(body)

    service.reply = reply
    return service


def test_replies_are_logged_paid_for_once_and_counted(case: Case, answering: Service, tmp_path: Path):
    study, budget = case.study(answering, "oracle", "llm"), Budget()
    assert run_study(study, tmp_path, RunOptions(budget=budget)) == RunSummary(played=4, found=0)
    found = episodes(tmp_path).values()
    replies = case.replies(found)
    assert len(replies) == {"reader": 4 * CHOICES, "judge": 4 * 2}[case.setting]
    assert sum(not reply.cached for reply in replies) == sum(
        case.asked_by(request.body) for request in answering.requests
    )
    assert budget.usage.replies == len(answering.requests)
    assert budget.usage.tokens == len(answering.requests) * (PROMPT_TOKENS + COMPLETION_TOKENS)
    assert KEY not in (tmp_path / "run.json").read_text()
    asked = len(answering.requests)
    assert run_study(study, tmp_path) == RunSummary(played=0, found=4)
    assert len(answering.requests) == asked
    if case is READER:
        assert {episode.header.setup.reader["name"] for episode in found} == {"llm:gpt-4o-mini"}
        for score in load_run(tmp_path).scores:
            assert ("llm:gpt-4o-mini" in score.rules, score.cost.unread) == (True, 0)
    else:
        earned = {episode.header.agent["name"]: episode.footer.episode_return for episode in found}
        assert 0 < earned["llm"] <= earned["oracle"] == pytest.approx(0.6)
        assert {episode.judge["name"] for episode in found} == {"llm:gpt-4o-mini"}
        with pytest.raises(JudgeError, match="inquitree judge"):
            load_run(tmp_path, judge="llm:gpt-4o-mini")


def test_a_torn_run_is_resumed_and_only_the_missing_replies_are_paid(case: Case, answering: Service, tmp_path: Path):
    study = case.study(answering, "oracle", seeds=1)
    answering.planned.extend([lambda: None] * (3 if case is READER else 1) + [failed(500)])
    summary = run_study(study, tmp_path)
    assert (len(summary.failures), summary.models, summary.ended) == (1, {}, "")
    assert case.fault in summary.failures[0].error
    if case is READER:  # its readings stand in the log
        for file in (tmp_path / "cache").rglob("*.json"):
            file.unlink()
    assert run_study(study, tmp_path) == RunSummary(played=1, found=0)
    paid = 2 if case is JUDGE else sum(not reply.cached for reply in case.replies(episodes(tmp_path).values()))
    assert len(answering.requests) == paid + 1


def test_a_model_that_is_refused_stops_the_run_and_is_no_fault_of_the_agents_model(
    case: Case, answering: Service, tmp_path: Path
):
    refused = failed(401, "Incorrect API key")
    answering.planned.extend([lambda: refused if case.asked_by(answering.requests[-1].body) else None] * 500)
    summary = run_study(case.study(answering, "llm", seeds=4), tmp_path, RunOptions(max_concurrency=1))
    assert (len(summary.failures), summary.left, summary.models) == (1, 3, {})
    assert case.fault in summary.ended


def test_a_key_that_is_missing_is_told_before_anything_is_played(
    case: Case, answering: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    summary = run_study(case.study(answering, "oracle", api_key_env="NO_SUCH_KEY"), tmp_path)
    assert (summary.left, summary.played, "NO_SUCH_KEY" in summary.ended) == (2, 0, True)
    assert answering.requests == []


@pytest.mark.parametrize(("case", "told"), [(READER, "the cap of 120 tokens"), (JUDGE, "the budget is used up")])
def test_a_cap_holds_for_its_replies(case: Case, told: str, answering: Service, tmp_path: Path):
    budget = Budget(max_total_tokens=PROMPT_TOKENS + COMPLETION_TOKENS)
    summary = run_study(case.study(answering, "oracle"), tmp_path, RunOptions(max_concurrency=1, budget=budget))
    assert (summary.played, summary.left, len(answering.requests)) == (0, 2, 1)
    assert told in summary.ended


def test_a_study_file_names_it(case: Case, tmp_path: Path):
    def written(line: str) -> StudyConfig:
        (tmp_path / "s.toml").write_text(f'agents = ["oracle"]\ntrees = ["2"]\n{line}\n')
        return read_study(tmp_path / "s.toml")

    study = written(f'{case.setting} = "{case.name}"')
    assert StudyConfig.model_validate(json.loads(json.dumps(study.model_dump(mode="json")))) == study
    assert list(differences(study, written(f'[{case.setting}]\nmodel = "gpt-4o-mini"\n{case.table}'))) == []
    local = written('reader = "local"' if case is READER else "")
    assert list(differences(study, local)) == [
        f"the run has {case.setting}=gpt-4o-mini, this study {case.setting}=not set"
    ]
    with pytest.raises(OptionError, match=case.told):
        written(f'{case.setting} = "{case.wrong}"')
    if case is JUDGE:
        judge = judge_settings(study)
        assert (judge.judge_name, judge.orders, judge.variants) == ("llm-paper:gpt-4o-mini", 1, False)
        assert judge_settings(local) is None
        with pytest.raises(OptionError, match="orders: needs at most 2"):
            written('[judge]\nmodel = "gpt-4o-mini"\norders = 3')


def test_the_command_line_takes_it(case: Case, answering: Service, tmp_path: Path):
    folder = tmp_path / "run"
    flags = ("run", "--papers", "2", "--agent", "oracle", "--seeds", 1, "--out", folder)
    asked = (f"--{case.setting}", case.name, f"--{case.setting}-base-url", answering.address)
    assert case.dry_run in " ".join(inquitree(*flags, *asked, "--dry-run").out.split())
    plan = inquitree(*flags, *asked, "--dry-run", "--json").json
    assert plan["environment" if case is READER else "judge"] == (["gpt-4o-mini"] if case is READER else case.name)
    assert answering.requests == []
    done = inquitree(*flags, *asked)
    assert done.status == 0, done.err
    paid = sum(not reply.cached for reply in case.replies(episodes(folder).values()))
    assert paid == len(answering.requests) > 0
    assert f"({paid} repl" in done.said
    done = inquitree(*flags)
    assert (done.status, f"the run has {case.setting}=gpt-4o-mini, this study {case.setting}=not set" in done.said) == (
        2,
        True,
    )


def test_agents_without_a_model_are_read_at_the_same_time(answering: Service, tmp_path: Path):
    meet(answering, 3)
    study = READER.study(answering, "random-words", seeds=3)
    assert run_study(study, tmp_path, RunOptions(max_concurrency=3, cache=tmp_path / "replies")).played == 3
    assert list((tmp_path / "replies").rglob("*.json"))


def test_replies_that_name_no_candidate_are_counted(answering: Service, tmp_path: Path):
    answering.reply = lambda body: "I cannot say."
    run_study(READER.study(answering, "oracle", seeds=1), tmp_path)
    (score,) = load_run(tmp_path).scores
    assert score.cost.unread == score.cost.replies >= CHOICES
    assert score.detail.trajectory.coverage == 1  # by forced moves
    assert score.detail.readings.reasons["below_threshold"] == score.cost.unread


def test_inquitree_judge_takes_what_the_reward_has_paid(answering: Service, tmp_path: Path):
    run_study(JUDGE.study(answering, "oracle", seeds=1), tmp_path)
    asked = len(answering.requests)
    done = inquitree("judge", tmp_path, "--judge", "llm:gpt-4o-mini", "--base-url", answering.address)
    assert (done.status, len(answering.requests)) == (0, asked), done.err
    (score,) = load_run(tmp_path, judge="llm:gpt-4o-mini").scores
    (episode,) = episodes(tmp_path).values()
    assert score.detail.quality_share == pytest.approx(episode.footer.episode_return) == pytest.approx(0.6)
