"""Scripted agents that need no gold: one reads, one opens as much as it can."""

from __future__ import annotations

import pytest

from inquitree_gym import make_agent, play
from inquitree_gym.exploration.actions import parse_action
from inquitree_gym.exploration.env import ExplorationEnv
from inquitree_gym.exploration.reading import parts_of, read_question
from inquitree_gym.exploration.schema import Condition, Query
from inquitree_gym.exploration.tasks import frozen_tasks
from inquitree_gym.exploration.wide import MOST_HITS

FROZEN = frozen_tasks()


def mean_score(agent: str, kind: str, most: int = 99) -> float:
    tasks = [task for task in FROZEN.values() if task.kind == kind][:most]
    found = []
    for task in tasks:
        env = ExplorationEnv(task)
        play(env, make_agent(agent, env), seed=0)
        found.append(env.last.grade.score)
    return sum(found) / len(found)


@pytest.mark.parametrize("kind", ["T1", "T4"])
def test_the_reader_solves_what_question_and_pages_tell(kind: str) -> None:
    assert mean_score("reader", kind) >= 0.5


def told(conditions: tuple[Condition, ...]) -> list[tuple[str, str, object]]:
    return [(each.column, each.op, each.value) for each in conditions]


@pytest.mark.parametrize("task", [task for task in FROZEN.values() if task.kind in ("T1", "T4")][::7])
def test_a_question_says_its_query(task) -> None:
    def check(query: Query, letter: str) -> None:
        wanted = read_question(task.question).wanted[letter]
        tests = parse_action(f"LOOKUP {wanted.database}: {'; '.join(wanted.tests)}").tests
        numbers = [(name, op, float(value) if op != "=" else value) for name, op, value in tests]
        assert (wanted.database, sorted(numbers)) == (query.database, sorted(told(query.where)))
        assert {*wanted.links} == {link.column for link in query.links}
        for link in query.links:
            check(link.record, wanted.links[link.column])

    check(task.query, next(reversed(read_question(task.question).wanted)))


@pytest.mark.parametrize("name", ["reader", "wide"])
@pytest.mark.parametrize("task", ["t1-s5-38", "t2-s3-02", "t3-s9-05", "t4-s1-11"])
@pytest.mark.parametrize("rules", [{"max_turns": 2}, {"tools": "none"}, {"tools": "search"}])
def test_they_answer_when_turns_or_tools_run_out(name: str, task: str, rules: dict[str, object]) -> None:
    pytest.importorskip("bm25s")
    env = ExplorationEnv(task, **rules)
    play(env, make_agent(name, env), seed=0)
    assert env.state.phase == "end"


def test_wide_opens_fifty_hits_and_finds_little() -> None:
    pytest.importorskip("bm25s")
    env = ExplorationEnv("t1-s5-38", max_turns=200)
    play(env, make_agent("wide", env), seed=0)
    assert len(env.last.shown) == MOST_HITS
    assert mean_score("wide", "T3", 3) <= 0.1


def test_an_observation_is_read_before_and_after_the_last_turn() -> None:
    env = ExplorationEnv("t1-s5-38", max_turns=1)
    question, outcome = parts_of(env.reset(seed=0)[0])
    assert (question, outcome) == (FROZEN["t1-s5-38"].question, "")
    assert parts_of(env.step("LOOKUP taxa: status = rare")[0])[1].startswith("5")
    assert parts_of("nothing of the kind") == ("", "nothing of the kind")
