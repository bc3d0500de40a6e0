"""Runs whose agents ask models, against a real server on loopback: at once, with every fault, within caps."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.prompts import inquiry_prompts
from inquitree_gym.llm import Budget, SystemClock
from inquitree_gym.log import read_episode
from inquitree_gym.results.load import load_run
from inquitree_gym.runner import Outcome, RunOptions, RunSummary, run_study
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.services import PATIENCE, StopConditions
from tests.runner.played import TURNS, episodes, fingerprints, study_of
from tests.servers import COMPLETION_TOKENS, KEY, PASSING, PROMPT_TOKENS, WAIT_AT_MOST, Body, Hourglass, Service, failed

pytestmark = pytest.mark.e2e

# Agents, models, and all at once


def test_one_folder_of_prompts_is_that_of_the_episodes_and_of_the_models(rote: Service, tmp_path: Path):
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "topic.md").write_text("On with {{ topic }}")
    own = inquiry_prompts(None, ("llm_system",)).render("llm_system") + "\nBe brief."
    (folder / "llm_system.md").write_text(own)
    model = {"model": "gpt-4o-mini", "base_url": rote.address}
    rules = {"preset": "paper", "decisions": "phrases"}
    study = make_study(agents=("llm",), models=[model], trees=("2",), seeds=1, rules=rules, prompts=str(folder))
    assert run_study(study, tmp_path / "run").is_complete
    (episode,) = episodes(tmp_path / "run").values()
    assert episode.header.prompts == inquiry_prompts(folder).digest
    assert rote.requests[0].body["messages"][0]["content"] == own
    assert any(turn.observation.startswith("On with") for turn in episode.turns)


def test_models_and_agents_are_crossed_logged_and_told_apart(rote: Service, tmp_path: Path):
    models = [
        {"model": "gpt-4o-mini", "base_url": rote.address, "context": 20_000},
        {"model": "gpt-4o-mini", "base_url": rote.address, "temperature": 0.7, "name": "warm"},
    ]
    study = make_study(agents=("llm", "sceptic", "oracle"), models=models, trees=("2",), seeds=2, max_turns="11n")
    assert run_study(study, tmp_path, RunOptions(max_concurrency=5)) == RunSummary(played=10, found=0)
    found = episodes(tmp_path)
    assert found.keys() == {cell.file_name for cell in study.specs()}
    assert {episode.status for episode in found.values()} == {"concluded"}
    plain, warm = (found[f"paper2_llm_{part}_f0_s1.jsonl"].header.agent for part in ("gpt-4o-mini", "warm"))
    assert (plain["temperature"], plain["context"], "label" in plain) == (0.0, 20_000, False)
    assert (warm["temperature"], warm["model"], warm["label"]) == (0.7, "gpt-4o-mini", "warm")
    run = load_run(tmp_path)
    assert {score.agent for score in run.scores} == {
        "llm gpt-4o-mini", "llm warm", "sceptic gpt-4o-mini", "sceptic warm", "oracle",
    }  # fmt: skip
    assert run.missing == ()
    assert {score.values["coverage"] for score in run.scores} == {1.0}
    written = (tmp_path / "run.json").read_text() + "".join(log.read_text() for log in tmp_path.glob("episodes/*"))
    assert KEY not in written


def test_no_more_episodes_are_under_way_than_at_once(rote: Service, tmp_path: Path):
    under_way, most, play = set[int](), 0, rote.reply

    def count(body: Body) -> str:
        nonlocal most
        under_way.add(body["seed"])
        most = max(most, len(under_way))
        reply = play(body)
        if "ACTION: 1 " in reply:  # the exam
            under_way.discard(body["seed"])
        return reply

    rote.reply = count
    run_study(study_of(rote, seeds=7), tmp_path, RunOptions(max_concurrency=3))
    assert most == 3


def test_it_comes_out_the_same_however_many_are_played_at_once(rote: Service, tmp_path: Path):
    study = study_of(rote, "llm", "sceptic", "random", seeds=3)
    for max_concurrency in (1, 9):
        run_study(study, tmp_path / str(max_concurrency), RunOptions(max_concurrency=max_concurrency))
    assert fingerprints(tmp_path / "1") == fingerprints(tmp_path / "9")


# Faults


@pytest.mark.parametrize(
    ("fault", "told"), [(PASSING[next(iter(PASSING))], "gave no answer"), (failed(400, "this prompt is odd"), "odd")]
)
def test_a_fault_of_one_request_fails_one_episode_and_the_same_command_mends_it(
    rote: Service, tmp_path: Path, fault: Any, told: str
):
    study = study_of(rote, seeds=3)
    rote.planned.extend([lambda: None] * 4 + [fault])
    summary = run_study(study, tmp_path, RunOptions(max_concurrency=1))
    assert (summary.played, summary.left, len(summary.failures), summary.models) == (2, 0, 1, {})
    assert told in summary.failures[0].error
    torn = read_episode(tmp_path / "episodes" / summary.failures[0].spec.file_name)
    assert (torn.status, len(torn.turns)) == ("failed", 4)
    assert run_study(study, tmp_path) == RunSummary(played=1, found=2)
    assert len(rote.requests) == 3 * TURNS + 1


def test_faults_that_pass_are_got_over_by_trying_again(rote: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    hourglass = Hourglass()
    monkeypatch.setattr(SystemClock, "sleep", lambda self, seconds: hourglass.sleep(seconds))
    faults = list(PASSING.values())
    rote.planned.extend([answer for fault in faults for answer in (lambda: None, fault)])
    options = RunOptions(max_concurrency=1)
    assert run_study(study_of(rote, seeds=3, retries=3), tmp_path, options) == RunSummary(played=3, found=0)
    assert len(hourglass.waits) == len(rote.requests) - 3 * TURNS == len(faults)


ENDING = {
    "wrong key": failed(401, "Incorrect API key"),
    "no credit": failed(402, "Insufficient balance"),
    "quota": failed(429, "You exceeded your quota", code="insufficient_quota"),
}


@pytest.mark.parametrize("fault", ENDING)
def test_a_fault_that_concerns_a_model_ends_the_rest_of_it_and_the_others_go_on(
    rote: Service, tmp_path: Path, fault: str
):
    play = rote.reply
    rote.planned.extend([_only(rote, "broken", ENDING[fault])] * 500)
    models = [{"model": name, "base_url": rote.address} for name in ("broken", "gpt-4o-mini")]
    study = make_study(agents=("llm", "oracle"), models=models, trees=("2",), seeds=4)
    summary = run_study(study, tmp_path, RunOptions(max_concurrency=2))
    assert (summary.played, len(summary.failures), summary.left, summary.ended) == (8, 1, 3, "")
    assert list(summary.models) == ["broken"]
    assert summary.models["broken"] == summary.failures[0].error
    assert sum(request.body["model"] == "broken" for request in rote.requests) == 1
    rote.planned.clear()
    rote.reply = play
    assert run_study(study, tmp_path) == RunSummary(played=4, found=8)


def _only(service: Service, model: str, answer: Any) -> Callable[[], Any]:
    return lambda: answer if service.requests[-1].body["model"] == model else None


def test_a_service_that_fails_one_episode_after_the_other_is_given_up(rote: Service, tmp_path: Path):
    rote.planned.extend([failed(503)] * (PATIENCE - 1) + [lambda: None] * TURNS + [failed(503)] * PATIENCE)
    study = study_of(rote, "llm", "oracle", seeds=3 * PATIENCE)
    summary = run_study(study, tmp_path, RunOptions(max_concurrency=1))
    assert (summary.played, len(summary.failures)) == (3 * PATIENCE + 1, 2 * PATIENCE - 1)
    assert summary.left == PATIENCE
    assert "10 episodes failed in a row; the last error: the model" in summary.models["gpt-4o-mini"]
    assert run_study(study, tmp_path).is_complete


def test_of_a_model_without_its_key_nothing_is_begun(rote: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    here = {"model": "gpt-4o-mini", "base_url": rote.address}
    models = [here, {**here, "name": "keyless", "api_key_env": "NO_SUCH_KEY"}]
    study = make_study(agents=("llm", "oracle"), models=models, trees=("2",), seeds=3)
    summary = run_study(study, tmp_path, RunOptions(1))
    assert (summary.played, summary.failures, summary.left) == (6, (), 3)
    assert summary.models == {"keyless": "set the environment variable NO_SUCH_KEY to the API key"}
    assert not any("keyless" in name for name in episodes(tmp_path))
    monkeypatch.setenv("NO_SUCH_KEY", KEY)
    assert run_study(study, tmp_path, RunOptions(1)) == RunSummary(played=3, found=6)


@pytest.mark.parametrize(
    ("settings", "options", "told"),
    [
        ({"models": [{"model": "no-such-model"}]}, {}, "litellm knows no provider for the model 'no-such-model'"),
        ({"models": [{"model": "my-own", "base_url": "http://localhost:9/v1"}]}, {"budget": Budget(max_cost=1)},
         r"litellm knows no price for 'my-own', .* cap the tokens instead"),
        ({"models": [{"model": "gpt-4o"}], "prompts": "nosuch"}, {}, r"no folder of templates at '.*nosuch'"),
        ({"models": [{"model": "gpt-4o"}]}, {"max_concurrency": 0}, "max_concurrency must be an integer from 1, got 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_told_before_anything_is_written(
    tmp_path: Path, settings: dict, options: dict, told: str
):
    with pytest.raises(OptionError, match=told):
        run_study(make_study(agents=("llm",), trees=("2",), **settings), tmp_path / "run", RunOptions(**options))
    assert not (tmp_path / "run").exists()


# Caps


@pytest.mark.parametrize(
    ("caps", "words"),
    [
        ({"max_total_tokens": 5 * (PROMPT_TOKENS + COMPLETION_TOKENS)}, "the cap of 600 tokens is reached"),
        ({"max_cost": 5 * 2.7e-05 - 1e-9}, r"the cap of \$0.000134999 is reached"),
    ],
)
def test_a_cap_ends_the_run_in_order_and_a_new_one_goes_on(rote: Service, tmp_path: Path, caps: dict, words: str):
    study = study_of(rote, "llm", "oracle", seeds=3)
    summary = run_study(study, tmp_path, RunOptions(max_concurrency=1, budget=Budget(**caps)))
    assert (summary.played, summary.failures, summary.left) == (3, (), 3)
    assert re.search(words, summary.ended)
    assert len(rote.requests) == 5
    torn = read_episode(tmp_path / "episodes" / "paper2_llm_gpt-4o-mini_f0_s0.jsonl")
    assert (torn.status, len(torn.turns), len(torn.replies)) == ("failed", 5, 5)
    assert torn.failure is not None
    assert torn.failure.error.startswith("BudgetError")
    again = Budget(**{name: 100 * cap for name, cap in caps.items()})
    assert run_study(study, tmp_path, RunOptions(budget=again)) == RunSummary(played=3, found=3)
    assert len(rote.requests) == 3 * TURNS
    assert again.usage.replies == 3 * TURNS - 5, "a cap is one command's"


def test_requests_under_way_when_a_cap_is_reached_are_paid_and_logged(rote: Service, tmp_path: Path):
    barrier, play = threading.Barrier(4), rote.reply

    def meet(body: Body) -> str:
        barrier.wait(WAIT_AT_MOST)
        return play(body)

    rote.reply = meet
    budget = Budget(max_total_tokens=1)
    summary = run_study(study_of(rote, seeds=6), tmp_path, RunOptions(max_concurrency=4, budget=budget))
    assert (summary.played, summary.left, budget.usage.replies) == (0, 6, 4)
    assert [len(episode.replies) for episode in episodes(tmp_path).values()] == [1, 1, 1, 1]


# Cache and pace


def test_replies_from_a_cache_are_not_paid_for_and_stand_in_the_log_as_such(rote: Service, tmp_path: Path):
    study, budget = study_of(rote, "sceptic", seeds=2), Budget()
    run_study(study, tmp_path / "one", RunOptions(cache=tmp_path / "cache"))
    paid = len(rote.requests)
    assert not any(reply.cached for episode in episodes(tmp_path / "one").values() for reply in episode.replies)
    assert run_study(study, tmp_path / "two", RunOptions(cache=tmp_path / "cache", budget=budget)).played == 2
    assert (len(rote.requests), budget.usage.replies) == (paid, 0)
    replies = [reply for episode in episodes(tmp_path / "two").values() for reply in episode.replies]
    assert {(reply.cached, reply.cost) for reply in replies} == {(True, 0.0)}
    assert fingerprints(tmp_path / "one") == fingerprints(tmp_path / "two")
    run_study(study, tmp_path / "three")
    assert len(rote.requests) == 2 * paid, "without a folder there is no cache"


@pytest.mark.parametrize("rate", [{"requests_per_minute": 600.0}, {"tokens_per_minute": 60_000.0}])
def test_a_pace_of_the_study_is_kept(rote: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rate: dict):
    hourglass = Hourglass()
    monkeypatch.setattr(SystemClock, "sleep", lambda self, seconds: hourglass.sleep(seconds))
    run_study(study_of(rote, seeds=3, **rate), tmp_path, RunOptions(max_concurrency=3))
    assert len(hourglass.waits) > TURNS
    assert max(hourglass.waits) > 0.1


# Stopping


def test_a_run_that_is_ended_lets_requests_under_way_be_answered(rote: Service, tmp_path: Path):
    stop, play, reached = StopConditions(), rote.reply, threading.Event()

    def end_at_third(body: Body) -> str:
        if len(rote.requests) == 3:
            stop.stop("enough")
            reached.set()
        reached.wait(WAIT_AT_MOST)
        return play(body)

    rote.reply = end_at_third
    told: list[Outcome] = []
    summary = run_study(study_of(rote, seeds=5), tmp_path, RunOptions(max_concurrency=3), told.append, stop)
    assert (summary.played, summary.failures, summary.left, summary.ended) == (0, (), 5, "enough")
    assert {outcome.status for outcome in told} == {"left"}
    assert [len(episode.replies) for episode in episodes(tmp_path).values()] == [1, 1, 1]
    errors = {episode.failure.error for episode in episodes(tmp_path).values() if episode.failure}
    assert errors == {"StoppedError: the run was stopped: enough"}
    rote.reply = play
    assert run_study(study_of(rote, seeds=5), tmp_path).played == 5
    assert len(rote.requests) == 5 * TURNS
