"""The environment of explorations: turns, the limit, rewards, infos, agents, frozen tasks and results."""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import pytest

from inquitree_gym.baselines import make_agent
from inquitree_gym.errors import OptionError
from inquitree_gym.exploration.env import ExplorationEnv
from inquitree_gym.exploration.failures import contradicted
from inquitree_gym.exploration.providers import local_library
from inquitree_gym.exploration.tasks import TASKS, frozen_tasks
from inquitree_gym.log import read_episode
from inquitree_gym.results.score import score_episode
from inquitree_gym.rollout import play
from inquitree_gym.wrappers import LogEpisodes
from tests.contract.command_line import inquitree
from tests.exploration.questions import make_question

TASK = make_question()


def started(**options) -> ExplorationEnv:
    env = ExplorationEnv(TASK, **options)
    env.reset(seed=1)
    return env


def test_the_gold_path_earns_the_reward_at_its_end():
    env = started(privileged=True)
    steps = [env.step(action) for action in TASK.path]
    assert [step[1] for step in steps] == [0.0] * (len(steps) - 1) + [1.0]
    assert [step[2] for step in steps] == [False] * (len(steps) - 1) + [True]
    found = [step[4]["privileged"]["found"] for step in steps]
    assert found == sorted(found)
    assert found[-1] == steps[-1][4]["privileged"]["facts"] == len(TASK.evidence)


@pytest.mark.parametrize("answer", ["ANSWER", "ANSWER unknown", "ANSWER 1e9", "answer\nnobody"])
def test_a_wrong_answer_earns_nothing_and_ends_the_task(answer: str):
    _, reward, terminated, truncated, info = started().step(answer)
    assert (reward, terminated, truncated, info["state"]) == (0.0, True, False, "end")


def test_after_the_limit_any_text_is_the_answer():
    env = started(max_turns=2)
    assert env.step("OPEN nothing")[4]["state"] == "explore"
    observation, *_, info = env.step("OPEN nothing")
    assert info["state"] == "answer"
    assert "All 2 turns are used" in observation
    answer = TASK.path[-1].removeprefix("ANSWER ")
    assert env.step(answer)[1:3] == (1.0, True)


def test_an_observation_has_the_question_the_forms_and_the_outcome():
    env = started(tools="search")
    opening, _ = env.reset(seed=1)
    assert TASK.question in opening
    assert "SEARCH words" in opening
    assert "LOOKUP" not in opening
    key = TASK.evidence[0].document
    shown = env.step(f"OPEN {key}")[0]
    assert key in shown
    assert TASK.question in shown
    refused = env.step("LOOKUP taxa")[0]
    assert "not among the tools" in refused


def test_infos_hold_nothing_of_the_answer_unless_asked():
    env = ExplorationEnv(TASK)
    _, info = env.reset(seed=1)
    assert info == {"state": "explore", "turn": 0, "tool": ""}
    assert env.step(TASK.path[0])[4] == {"state": "explore", "turn": 1, "tool": "lookup"}


@pytest.mark.parametrize("rule", [{"max_turns": 0}, {"max_turns": True}, {"tools": "most"}])
def test_rules_out_of_range_are_refused(rule):
    with pytest.raises(OptionError, match="must be"):
        ExplorationEnv(TASK, **rule)


def test_every_id_makes_an_environment_over_all_its_tasks():
    tasks = {name: gym.make(f"SciExplore{name}-v0").unwrapped.tasks for name in ("", "-T1", "-T2", "-T3", "-T4")}
    assert {name: len(own) for name, own in tasks.items()} == {"": 103, "-T1": 39, "-T2": 32, "-T3": 14, "-T4": 18}
    assert set(tasks.pop("")) == {task for own in tasks.values() for task in own}


def test_the_frozen_tasks_are_about_five_libraries():
    assert len({task.library.seed for task in frozen_tasks().values()}) == 5


def test_frozen_tasks_are_proved_by_the_linter():
    pytest.importorskip("bm25s")
    for task in list(frozen_tasks().values())[::5]:
        assert TASKS.lint(task) == []


def test_a_broken_task_is_named_by_the_linter():
    broken = TASK.model_copy(update={"path": TASK.path[:-1]})
    assert any("right answer" in fault.message for fault in TASKS.lint(broken))


@pytest.mark.parametrize(
    ("name", "score", "evidence"), [("oracle", 1.0, 1.0), ("silent", 0.0, 0.0), ("random", 0.0, 0.0)]
)
def test_agents_are_scored_from_their_logs(name: str, score: float, evidence: float, tmp_path: Path):
    env = ExplorationEnv(TASK, privileged=True)
    logged = LogEpisodes(env, tmp_path)
    play(logged, make_agent(name, env), seed=3)
    (file,) = tmp_path.glob("*.jsonl")
    found = score_episode(read_episode(file), TASK)
    assert (found.values["score"], found.values["p"]) == (score, evidence)
    assert found.values["guessed"] == 0
    assert found.values["not attempted"] == (name == "silent")


def test_a_right_answer_without_evidence_is_a_guess(tmp_path: Path):
    logged = LogEpisodes(ExplorationEnv(TASK), tmp_path)
    logged.reset(seed=1)
    logged.step(TASK.path[-1])
    (file,) = tmp_path.glob("*.jsonl")
    values = score_episode(read_episode(file), TASK).values
    assert (values["score"], values["guessed"], values["p·score"]) == (1.0, 1.0, 0.0)


def test_the_first_hit_solves_next_to_nothing(tmp_path: Path):
    pytest.importorskip("bm25s")
    env = ExplorationEnv(TASK)
    observation, info = env.reset(seed=1)
    agent = make_agent("first-hit", env)
    agent.reset(1)
    rewards = []
    for _ in range(3):
        observation, reward, over, _, info = env.step(agent.act(observation, info))
        rewards.append(reward)
    assert over
    assert sum(rewards) == 0


CELLS = {
    "types-scores-by-type": {"T1": ["100.0", "0.0"], "T2": ["", ""], "T4 item": ["100.0", "0.0"], "Overall": ["", ""]},
    "types-format-and-keys-of-t4": {"Format_Acc": ["100.0", "0.0"], "PK recall": ["100.0", "0.0"]},
    "types-precision-and-f1-of-t4": {"item F1": ["100.0", "0.0"], "row precision": ["100.0", "0.0"]},
    "hops-accuracy-of-t1-by-records": {"2 records (n = 1)": ["100.0", "0.0"]},
    "failures": {"abandoned": ["100.0"], "format": ["50.0"], "breadth": ["50.0"], "premature": ["0.0"]},
}
"""Columns of the tables of a report on oracle and silent, by file."""


def test_a_run_is_played_scored_and_reported(tmp_path: Path):
    folder = tmp_path / "run"
    done = inquitree("run", "--env", "exploration", "--agent", "oracle,silent", "--papers", "t1-s1-01,t4-s3-02",
                     "--seeds", "1", "--out", folder)  # fmt: skip
    assert done.status == 0, done.err
    scores = inquitree("score", folder, "--json").json
    assert {each["agent"]: each["values"]["score"] for each in scores} == {"oracle": 1.0, "silent": 0.0}
    assert inquitree("report", folder, "--out", tmp_path / "report.html").status == 0
    assert "score by task" in (tmp_path / "report.html").read_text(encoding="utf-8")
    for name, columns in CELLS.items():
        with (tmp_path / "report-tables" / f"{name}.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert {column: [row[column] for row in rows] for column in columns} == columns


def test_a_row_whose_page_breaks_the_scope_is_premature():
    task = frozen_tasks()["t4-s3-02"]
    library = local_library(task.library).library
    other = next(key for key, record in library.records[task.query.database].items()
                 if str(record["name"]) not in task.path[-1])  # fmt: skip
    env = ExplorationEnv(task)
    env.reset(seed=1)
    name = library.records[task.query.database][other]["name"]
    answer = f"| {' | '.join(task.gold.headers)} |\n|{'-|' * len(task.gold.headers)}\n| {name} |"
    for opened, expected in ((other, True), (task.evidence[0].document, False)):
        detail = SimpleNamespace(shown={(opened, 1)}, answer=answer)
        assert contradicted(detail, task, library) == expected
