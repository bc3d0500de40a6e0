"""The verb grade: answers from elsewhere in the paper's letters, and every bad line named."""

from __future__ import annotations

import json
from pathlib import Path

from inquitree_gym.exploration.tasks import frozen_tasks
from tests.contract.command_line import inquitree

GOLD = [{"task": task.id, "answer": task.path[-1].removeprefix("ANSWER")} for task in frozen_tasks().values()]


def written(file: Path, *lines: object) -> Path:
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return file


def test_answers_from_elsewhere_are_scored_in_the_papers_letters(tmp_path: Path) -> None:
    found = inquitree("grade", "all", written(tmp_path / "gold.jsonl", *GOLD, ""), "--json").json
    assert found["scores"]["overall"] == 1.0
    assert {*found["tasks"].values()} == {1.0}
    part = written(tmp_path / "part.jsonl", *GOLD[:9], {"task": GOLD[9]["task"], "answer": "no idea at all"})
    done = inquitree("grade", "T1", part)
    assert done.status == 0
    assert "29 tasks without an answer" in done.err
    assert next(line for line in done.out.splitlines() if "T1" in line).split("│")[2:7] == [
        " 23.08   ", " 39    ", " 9 ", " 1 ", " 29 "
    ]  # fmt: skip
    found = inquitree("grade", "T1", part, "--json", "--reading", "single=f_em").json["scores"]
    assert (round(found["t1"], 4), found["overall"]) == (0.3673, None)


def test_a_task_needs_no_library(tmp_path: Path) -> None:
    tasks = written(tmp_path / "tasks.jsonl", {"id": "a", "gold": {"kind": "T1", "parts": [{"number": 260}]}})
    found = inquitree("grade", tasks, written(tmp_path / "said.jsonl", {"task": "a", "answer": "260"}), "--json").json
    assert found["tasks"] == {"a": 1.0}


def test_every_bad_line_is_named(tmp_path: Path) -> None:
    bad = written(tmp_path / "bad.jsonl", GOLD[0], "{", {"task": "t9"}, {"task": "t9", "answer": "x"}, GOLD[0])
    done = inquitree("grade", "T1", bad)
    assert done.status == 2
    for wanted in ("line 2: Invalid JSON", "line 3: answer Field required", "line 4: no task is called 't9'",
                   "line 5: 't1-s1-01' stands there twice"):  # fmt: skip
        assert wanted in done.err
    assert inquitree("grade", "T1", tmp_path / "none.jsonl").status == 2
    assert (
        "--reading must be NAME=VALUE"
        in inquitree("grade", "T1", written(bad, GOLD[0]), "--reading", "weights=mine").err
    )
