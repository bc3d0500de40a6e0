"""Runs judged offline, by judges beside each other: kept, resumed, compared."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from inquitree_gym.errors import LogError, OptionError, ServiceError
from inquitree_gym.inquiry.judges.llm import JudgeOptions, LLMJudge
from inquitree_gym.judging.judgement import AsyncJudge
from inquitree_gym.judging.registry import make_judges
from inquitree_gym.judging.stored import read_judgements
from inquitree_gym.llm import Budget, ChatModel, ReplyCache
from inquitree_gym.results.offline_judging import JudgingResult, judge_texts, recorded_scores, stated_texts
from inquitree_gym.runner import run_study
from inquitree_gym.runner.check import make_study
from inquitree_gym.trees import load_tree
from tests.inquiry.judges.test_llm import TOKENS, Grader
from tests.servers import Body, Hourglass, Service, failed

TREES = ("paper2", "paper8")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of each tree two equal oracle episodes, and two of random menu texts."""
    folder = tmp_path_factory.mktemp("run")
    run_study(
        make_study(agents=("oracle", "random-menu"), trees=TREES, rules={"world": "actual"}, seeds=2, max_turns="11n"),
        folder,
    )
    return folder


@pytest.fixture
def run(played: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(played, tmp_path / "run"))


def judge(run: Path, judge: AsyncJudge, max_concurrency: int = 4) -> JudgingResult:
    return asyncio.run(judge_texts(run, stated_texts(run), judge, max_concurrency, lambda _: None))


@pytest.fixture
def reading(service: Service) -> Service:
    """A server whose model grades by the words: a finding that stands in the conclusion is asserted."""
    service.reply = Grader(lambda place, text, asked: int(asked.count(text) > 1))
    return service


def llm(service: Service, folder: Path, **settings: object) -> LLMJudge:
    chat = ChatModel("gpt-4o-mini", base_url=service.address, clock=Hourglass(), retries=0)
    return LLMJudge(chat, cache=ReplyCache(folder), **settings)


def test_equal_conclusions_are_asked_about_once(run: Path, reading: Service, tmp_path: Path):
    done = judge(run, llm(reading, tmp_path / "cache"))
    different = len({(each.task.id, each.text) for each in stated_texts(run)})
    assert different <= 6 < done.judged == 8, "the oracle concludes the same for every seed"
    assert done.usage.replies == len(reading.requests) <= 2 * different
    found = read_judgements(run).judges["llm:gpt-4o-mini"]
    assert sum(each.usage.get("replies", 0) for each in found.by_turn.values()) == done.usage.replies
    assert len(found.by_turn) == 8


def test_each_judge_scores_a_run_by_its_newest_judgements(run: Path, reading: Service, tmp_path: Path):
    judge(run, llm(reading, tmp_path / "cache"))
    scores = recorded_scores(run, "llm:gpt-4o-mini")
    assert {score.judged_by for score in scores} == {"llm:gpt-4o-mini v1"}
    assert all(score.detail.quality_share == 1 for score in scores if score.agent == "oracle")
    for file in (run / "judgements").iterdir():
        os.utime(file, (0, 0))
    judge(run, llm(reading, tmp_path / "cache", repeats=2))
    assert read_judgements(run).judges["llm:gpt-4o-mini"].config["repeats"] == 2


def test_a_budget_leaves_the_rest_for_another_time(run: Path, reading: Service, tmp_path: Path):
    first = judge(run, llm(reading, tmp_path / "cache", budget=Budget(max_total_tokens=TOKENS)), max_concurrency=1)
    assert first.usage.replies == 1
    assert first.usage.skipped > 0
    assert first.unscored == sum(len(each.task.conclusions) for each in stated_texts(run) if each.text.strip())
    scored = recorded_scores(run, "llm:gpt-4o-mini")
    assert {score.detail.quality for score in scored} == {None}, "unscored is not 0"
    second = judge(run, llm(reading, tmp_path / "cache"))
    assert (second.unscored, second.usage.cached) == (0, 1)
    assert first.usage.replies + second.usage.replies == len(reading.requests)


def test_a_service_that_will_answer_nothing_ends_it_and_what_was_judged_is_kept(
    run: Path, reading: Service, tmp_path: Path
):
    grader = reading.reply

    def twice(body: Body) -> str:
        if len(reading.requests) == 2:
            reading.planned.append(failed(401, "wrong key"))
        return grader(body)

    reading.reply = twice
    with pytest.raises(ServiceError, match="check the key"):
        judge(run, llm(reading, tmp_path / "cache"), max_concurrency=1)
    kept = len(read_judgements(run).judges["llm:gpt-4o-mini"].by_turn)
    assert kept == 2, "the first conclusion, which two episodes share"
    reading.reply = grader
    assert judge(run, llm(reading, tmp_path / "cache")).judged == 8 - kept


def test_a_run_without_a_conclusion_is_told(tmp_path: Path):
    with pytest.raises(LogError, match="holds no episode log"):
        stated_texts(tmp_path)
    run_study(make_study(agents=("oracle",), trees=("paper2",), seeds=1), tmp_path)
    for log in (tmp_path / "episodes").iterdir():
        log.unlink()
    with pytest.raises(LogError, match="holds no conclusion to judge yet"):
        stated_texts(tmp_path)
    assert not (tmp_path / "judgements").exists()


# Judges by name


def test_judges_are_named_and_each_sits_once(tmp_path: Path):
    (tmp_path / "config.json").write_text("{}")
    panel = make_judges(
        [f"nli:{tmp_path}", "llm:ollama/llama3:8b", f"nli:{tmp_path}"], JudgeOptions(repeats=3, base_url="http://h/v1")
    )
    assert [each.name for each in panel] == [f"nli:{tmp_path}", "llm:ollama/llama3:8b"]
    nli, asked = panel
    assert nli.config["model"] == str(tmp_path)
    assert asked.config["repeats"] == 3
    assert asked.config["chat"]["base_url"] == "http://h/v1"


def test_a_cap_on_cost_needs_a_price():
    with pytest.raises(OptionError, match="litellm knows no price for 'openai/mine'"):
        make_judges(["llm:openai/mine"], JudgeOptions(base_url="http://h/v1", budget=Budget(max_cost=1)))
    make_judges(["llm:openai/mine"], JudgeOptions(base_url="http://h/v1", budget=Budget(max_total_tokens=1)))
    make_judges(["llm:gpt-4o-mini"], JudgeOptions(budget=Budget(max_cost=1)))


def test_a_judge_is_one_object_per_tree(tmp_path: Path):
    judge = make_judges(["nli:nowhere"])[0]
    assert judge.for_task(load_tree("paper2")) is judge.for_task(load_tree("paper2"))
