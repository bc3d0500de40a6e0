"""Sections of reports: intervals over libraries, repeats, searches, and databases, worked by hand."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import fmean, variance

import pytest

from inquitree_gym.exploration.gold import TableGold
from inquitree_gym.exploration.graders import grade
from inquitree_gym.exploration.scores import over_libraries, task_value
from inquitree_gym.exploration.tasks import TASKS
from tests.contract.command_line import inquitree
from tests.exploration.questions import make_question

FIVE = [(name, value) for name, value in zip("abcde", (1.0, 1.0, 0.0, 0.0, 0.0), strict=True)]


def test_one_task_a_library_has_the_usual_t_interval():
    found = over_libraries([(1.0, FIVE)])
    half = 2.7764451 * (0.3 / 5) ** 0.5  # s² = 0.3 over five values
    assert found[:3] == pytest.approx((0.4, 0.4 - half, 0.4 + half))
    assert found[3:5] == (5, 5)


def test_tasks_of_one_library_are_no_further_observations():
    assert over_libraries([(1.0, FIVE * 4)])[:3] == pytest.approx(over_libraries([(1.0, FIVE)])[:3])


def test_a_score_is_the_mean_over_tasks_not_over_libraries():
    assert over_libraries([(1.0, [("a", 1.0), ("a", 1.0), ("b", 0.0)])])[:3] == (pytest.approx(2 / 3), None, None)


def test_terms_of_a_weighted_sum_cancel_within_a_library():
    opposite = [(name, 1 - value) for name, value in FIVE]
    found = over_libraries([(0.5, FIVE), (0.5, opposite)])
    assert found[:3] == pytest.approx((0.5, 0.5, 0.5))


def test_a_sum_without_one_of_its_terms_has_no_value():
    assert over_libraries([(0.2, FIVE), (0.8, [])]).mean is None


def test_a_task_adds_to_the_scores_of_its_type_alone():
    table = grade(TableGold(headers=("Key", "x"), rows=(("a", "1"), ("b", "2"))), "|Key|x|\n|-|-|\n|a|1|")
    assert (task_value(table, "r_item"), task_value(table, "row_precision"), task_value(table, "t1")) == (0.5, 1, None)


def test_repeats_searches_and_databases_are_reported(tmp_path: Path):
    task = make_question()
    (tmp_path / "task.json").write_bytes(TASKS.dump(task))
    done = inquitree("run", "--env", "exploration", "--agent", "oracle,random", "--papers", tmp_path / "task.json",
                     "--seeds", "3", "--out", tmp_path / "run")  # fmt: skip
    assert done.status == 0, done.err
    assert inquitree("report", tmp_path / "run", "--out", tmp_path / "report.html").status == 0
    calls = {tool: [str(float(sum(step.startswith(tool) for step in task.path))), "0.0"] for tool in ("LOOKUP", "OPEN")}
    scores = inquitree("score", tmp_path / "run", "--json").json
    lucky = [100 * each["values"]["score"] for each in scores if each["agent"] == "random"]
    spread = variance(lucky)
    wanted = {
        "effort-calls-per-question": {**calls, "searches": calls["LOOKUP"]},
        "repeats-mean-over-repeats": {"repeats": ["3", "3"], "T1": ["100.0", str(fmean(lucky))]},
        "repeats-variance-over-repeats": {"T1": ["0.0", str(spread), str(spread / 2)], "T2": ["", "", ""]},
    }
    for name, columns in wanted.items():
        rows = rows_of(tmp_path, name)
        assert {column: [row[column] for row in rows] for column in columns} == columns, name
    oracle, _ = rows_of(tmp_path, "sources-pages-opened-per-question")
    opened = {head: float(value) for head, value in oracle.items() if head not in ("system", "category")}
    assert set(opened) == {query.database for query in task.query.records()}
    assert sum(opened.values()) == len({step for step in task.path if step.startswith("OPEN")})
    assert {"hops.svg", "searches.svg", "databases.svg"} <= {
        each.name for each in (tmp_path / "report-figures").iterdir()
    }


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "report-tables" / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
