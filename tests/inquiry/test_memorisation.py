"""The closed-book probe against a real server: what is asked, kept, judged, and set beside the loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from inquitree_gym.inquiry.judges.llm import JudgeOptions
from inquitree_gym.inquiry.judges.local import VERSION
from inquitree_gym.inquiry.judging import JUDGING
from inquitree_gym.inquiry.memory import (
    ClosedBookGrade,
    ask_closed_book,
    closed_book_conclusions,
    compare_with_loop,
    grade_closed_book,
    memory_table,
    summarise_memory,
)
from inquitree_gym.judging.registry import make_judges
from inquitree_gym.llm import Chat, ChatModel
from inquitree_gym.results.cutoff import ModelDates
from inquitree_gym.results.offline_judging import judge_texts
from inquitree_gym.results.questions import AskingResult
from inquitree_gym.results.summary import as_plain
from inquitree_gym.trees import Tree, load_tree
from tests.inquiry.judges.test_llm import Grader
from tests.results.test_aggregate import score
from tests.servers import KEY, Body, Hourglass, Service, said

TREES = ("paper2", "paper17")
GOOD = "THOUGHT: I have read it.\nACTION: 1. {}"


@pytest.fixture(scope="module")
def trees() -> dict[str, Tree]:
    return {name: load_tree(name) for name in TREES}


def knowing(trees: dict[str, Tree], *known: str) -> Callable[[Body], str]:
    """A model that knows the conclusions of some trees, and makes up the others."""

    def reply(body: Body) -> str:
        asked = body["messages"][-1]["content"]
        tree = next(tree for tree in trees.values() if tree.topic in asked)
        if tree.id not in known:
            return GOOD.format("Something grows wherever something else shrinks.")
        return GOOD.format("\n2. ".join(item.text for item in tree.conclusions))

    return reply


def chat_of(service: Service, **settings) -> ChatModel:
    return ChatModel("gpt-4o-mini", base_url=service.address, clock=Hourglass(), retries=0, **settings)


def run(chat: Chat, trees: dict[str, Tree], folder: Path, repeats: int = 1, max_concurrency: int = 4) -> AskingResult:
    return asyncio.run(ask_closed_book(chat, list(trees.values()), folder, repeats, max_concurrency, lambda: None))


def judge(trees: dict[str, Tree], folder: Path, name: str = "local", **terms):
    (judge,) = make_judges([name], JudgeOptions(**terms))
    return asyncio.run(judge_texts(folder, closed_book_conclusions(folder, trees), judge, 2, lambda _: None))


def test_the_topic_alone_is_asked(service: Service, trees: dict[str, Tree], tmp_path: Path):
    service.reply = knowing(trees)
    done = run(chat_of(service), trees, tmp_path, repeats=2)
    assert (done.answered, done.found, done.failed, done.left) == (4, 0, (), "")
    for request in service.requests:
        whole = "\n".join(message["content"] for message in request.body["messages"])
        (tree,) = (tree for tree in trees.values() if tree.topic in whole)
        hidden = (*tree.subtopics, *tree.studies, *tree.conclusions)
        assert not [node.id for node in hidden if node.text in whole]
        assert request.body["temperature"] == 0
        assert tree.paper.title not in whole
    assert sorted(request.body["seed"] for request in service.requests) == [0, 0, 1, 1]


def test_what_was_answered_is_not_asked_again(service: Service, trees: dict[str, Tree], tmp_path: Path):
    service.reply = knowing(trees)
    run(chat_of(service), {"paper2": trees["paper2"]}, tmp_path)
    done = run(chat_of(service), trees, tmp_path)
    assert (done.answered, done.found, len(service.requests)) == (1, 1, 2)
    other = run(chat_of(service, reasoning_effort=None, max_tokens=99), trees, tmp_path)
    assert other.answered == 2, "another setting is another file"
    assert len(list(tmp_path.glob("closed-book-*.jsonl"))) == 2
    assert KEY not in "".join(file.read_text() for file in tmp_path.glob("*.jsonl"))


def test_only_the_action_part_concludes_and_an_answer_off_format_is_taken_whole(service, trees, tmp_path):
    service.planned.append(said("THOUGHT: mice sleep.\nACTION: 1. Rats sleep."))
    service.planned.append(said("1. Rats sleep. THOUGHT of mice."))
    run(chat_of(service), trees, tmp_path, max_concurrency=1)
    found = [(each.text, each.off_format) for each in closed_book_conclusions(tmp_path, trees)]
    assert found == [("1. Rats sleep.", False), ("1. Rats sleep. THOUGHT of mice.", True)]


def test_knowledge_earns_grades_and_inventions_none(service: Service, trees: dict[str, Tree], tmp_path: Path):
    service.reply = knowing(trees, "paper2")
    run(chat_of(service), trees, tmp_path)
    done = judge(trees, tmp_path)
    assert (done.judge, done.judged, done.found) == ("local", 2, 0)
    scores = {grade.conclusion.task.id: grade.score for grade in grade_closed_book(tmp_path, trees)}
    assert scores == {"paper2": 1.0, "paper17": 0.0}
    again = judge(trees, tmp_path)
    assert (again.judged, again.found) == (0, 2)


def test_judges_stand_side_by_side_and_an_unscored_item_leaves_no_score(service, trees, tmp_path):
    service.reply = knowing(trees, *TREES)
    run(chat_of(service), trees, tmp_path)
    judge(trees, tmp_path)
    service.begin(Grader(lambda place, text, asked: "unsure" if place == 0 else 1))
    done = judge(trees, tmp_path, "llm:gpt-4o-mini", base_url=service.address, cache=tmp_path / "cache")
    assert done.usage.replies == len(service.requests) == 4
    grades = grade_closed_book(tmp_path, trees)
    assert {grade.score for grade in grades if grade.judge == JUDGING.own} == {1.0}
    assert {grade.score for grade in grades if grade.judge == "llm:gpt-4o-mini v1"} == {None}
    unscored = {memory.judge: memory.unscored for memory in summarise_memory(grades, [])}
    assert unscored == {JUDGING.own: 0, "llm:gpt-4o-mini v1": 2}


def model(cutoff: str) -> list[ModelDates]:
    dates = {"date": cutoff, "source": "s"}
    return [ModelDates.model_validate({"name": "m", "patterns": ["gpt-4o-mini"], "cutoff": dates})]


@pytest.fixture
def grades(service: Service, trees: dict[str, Tree], tmp_path: Path) -> list[ClosedBookGrade]:
    """Of a model that knows the newer of two papers: paper17 is of July 2022, paper2 of April 2023."""
    service.reply = knowing(trees, "paper2")
    run(chat_of(service), trees, tmp_path, repeats=2)
    judge(trees, tmp_path)
    return grade_closed_book(tmp_path, trees)


def test_memory_is_split_at_the_cutoff(grades: list[ClosedBookGrade]):
    (found,) = summarise_memory(grades, model("2023-01"))
    assert (found.name, found.judge, found.conclusions, found.off_format) == ("gpt-4o-mini", JUDGING.own, 4, 0)
    assert [found.memory.mean, found.before.mean, found.after.mean, found.difference.mean] == [0.5, 0, 1, -1]
    assert (found.memory.trees, found.memory.episodes, found.cutoff, found.unclear) == (2, 4, "2023-01", 0)
    (unclear,) = summarise_memory(grades, model("2023"))
    assert (unclear.unclear, unclear.after.mean, unclear.difference.mean) == (1, None, None)
    (unknown,) = summarise_memory(grades, [])
    assert (unknown.cutoff, unknown.before.mean, unknown.memory.mean) == (None, None, 0.5)
    heads, line = memory_table([unknown])
    assert dict(zip(heads, line, strict=True))["cutoff"] == "–"


def test_the_loop_is_set_beside_memory_by_the_same_judge_model_and_effort(grades: list[ClosedBookGrade]):
    def played(tree: str, *scores: float, **more) -> object:
        by = {"judge": "local", "judge_version": VERSION}
        return replace(score(tree, *scores), **{"model": "gpt-4o-mini", "agent": "llm gpt-4o-mini", **by, **more})

    episodes = [played("paper2", 1, 0.6), played("paper17", 0.6, 0.6), played("paper12", 0, 0)]
    strangers = [played("paper2", 0, 0, effort="high", agent="llm gpt-4o-mini (high)"), score("paper2", 0, 0)]
    later = [played("paper2", 0, 0, cell={"fake_level": 3})]
    found = compare_with_loop(grades, [*episodes, *strangers, *later], model("2023-01"))
    assert found.cell == {"fake_level": 0}
    (gain,) = found.gains
    assert (gain.player[0], gain.judge, gain.gain.trees) == ("llm gpt-4o-mini", JUDGING.own, 2)
    assert [gain.loop.mean, gain.memory.mean, gain.gain.mean] == pytest.approx([0.7, 0.5, 0.2])
    assert json.loads(json.dumps(as_plain(found)))["gains"][0]["gain"]["mean"] == pytest.approx(0.2)
