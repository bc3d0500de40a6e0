"""Judgements beside a run: written as they happen, read back, damaged, torn, in use."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.errors import JudgeError, LogError
from inquitree_gym.inquiry.judges.quality import Verdict
from inquitree_gym.judging.judgement import Judgement
from inquitree_gym.judging.stored import JudgementFile, read_judgements
from inquitree_gym.llm import Usage
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.fields import CANARY
from tests.strategies import make_tree

SAID, KEY = "1. It rose.", ("one.jsonl", 3)
GRADED = (Verdict(1.0, "the model wrote \ud83d and stopped"), Verdict(None, "no verdict"), Verdict(0.25, ""))
RULING = Judgement(GRADED, Usage(replies=2, cost=0.5))
FULL = Judgement((Verdict(1.0, ""), Verdict(0.6, ""), Verdict(0.0, "")))


@pytest.fixture
def tree() -> Tree:
    return make_tree([[], [], []], [1, 1, 1])


def keep(run: Path, tree: Tree, judgement: Judgement = RULING, judge: str = "llm:a/b", **config: object) -> Path:
    with JudgementFile(run, judge, config) as kept:
        kept.add(KEY, tree, SAID, judgement)
        return kept.path


def change(file: Path, line: int, **changes: Any) -> None:
    """Change fields of a line; ``score`` and ``item`` are those of its first verdict."""
    lines = [json.loads(text) for text in file.read_text().splitlines()]
    for name, value in changes.items():
        place = lines[line]["payload"]["verdicts"][0] if name in ("score", "item") else lines[line]
        place[name] = value
    file.write_text("".join(json.dumps(document) + "\n" for document in lines))


def test_what_is_kept_is_read_again_without_its_text(tree: Tree, tmp_path: Path):
    text = keep(tmp_path, tree, repeats=2).read_text()
    assert CANARY in text.splitlines()[0]
    assert SAID not in text
    judges, faults = read_judgements(tmp_path)
    found = judges["llm:a/b"]
    assert (found.judge, found.config, list(found.by_turn), faults) == ("llm:a/b", {"repeats": 2}, [KEY], [])
    record = found.by_turn[KEY]
    assert (record.payload.value, record.payload.unscored) == (GRADED, 1)
    assert record.usage == {"replies": 2, "cost": 0.5}


def test_every_judge_and_setting_has_a_file_of_its_own_and_those_asked_last_count(tree: Tree, tmp_path: Path):
    assert read_judgements(tmp_path) == ({}, [])
    files = [keep(tmp_path, tree, repeats=1), keep(tmp_path, tree, repeats=2), keep(tmp_path, tree, judge="local")]
    assert len(set(files)) == 3
    for repeats in (1, 2, 1):
        for file in files:
            os.utime(file, (0, 0))
        JudgementFile(tmp_path, "llm:a/b", {"repeats": repeats}).close()
        judges = read_judgements(tmp_path).judges
        assert (sorted(judges), judges["llm:a/b"].config) == (["llm:a/b", "local"], {"repeats": repeats})
    assert keep(tmp_path, tree, repeats=1) == files[0]


def test_only_a_whole_judgement_of_this_text_about_this_task_is_held(tree: Tree, tmp_path: Path):
    with JudgementFile(tmp_path, "local", {}) as kept:
        kept.add(KEY, tree, SAID, RULING)
        assert not kept.holds(KEY, tree, SAID), "an item is unscored"
        kept.add(KEY, tree, SAID, FULL)
        assert kept.holds(KEY, tree, SAID)
        assert not kept.holds(KEY, tree, SAID + " More.")
        assert not kept.holds(KEY, load_tree("paper8"), SAID)
        assert not kept.holds(("one.jsonl", 2), tree, SAID)
    found = read_judgements(tmp_path).judges["local"]
    assert found.of(KEY, tree, SAID).value == FULL.payload, "the last one counts"
    assert found.of(KEY, tree, "1. It fell.") is found.of(("two.jsonl", 3), tree, SAID) is None
    assert found.of(KEY, load_tree("paper8"), SAID) is None


def test_a_line_torn_at_the_end_is_dropped(tree: Tree, tmp_path: Path):
    file = keep(tmp_path, tree)
    whole = file.read_bytes()
    file.write_bytes(whole + whole.splitlines()[1][:40])
    assert list(read_judgements(tmp_path).judges["llm:a/b"].by_turn) == [KEY]
    with JudgementFile(tmp_path, "llm:a/b", {}) as kept:
        kept.add(("two.jsonl", 1), tree, SAID, FULL)
    assert list(read_judgements(tmp_path).judges["llm:a/b"].by_turn) == [KEY, ("two.jsonl", 1)]
    # One torn within its first line holds nothing, and is begun anew.
    file.write_bytes(whole[:30])
    assert read_judgements(tmp_path) == ({}, [])
    assert keep(tmp_path, tree) == file
    assert list(read_judgements(tmp_path).judges["llm:a/b"].by_turn) == [KEY]


@pytest.mark.parametrize(
    ("line", "changes", "told"),
    [
        (0, {"judgement_version": 2}, "judgement_version must be 1, got 2"),
        (0, {"config": {"version": "x"}}, "version of a judge must be an integer from 1, got 'x'"),
        (0, {"config": {"version": None}}, "must be an integer from 1, got None"),
        (0, {"task_kind": "dance"}, "no kind of environment is called 'dance'"),
        (0, {"kind": "judgement"}, "Input should be 'judge'"),
        (0, {"smell": 1}, "smell is an unknown field, which a later version may have written; read it with"),
        (1, {"smell": 1}, "smell is an unknown field, which a later version may have written; read it with"),
        (1, {"score": 99.0}, "less than or equal to 1"),
        (1, {"score": -1e308}, "greater than or equal to 0"),
        (1, {"score": float("nan")}, "a finite number"),
        (1, {"item": "c2"}, "an item has two verdicts"),
        (1, {"turn": 0}, "greater than or equal to 1"),
        (1, {"payload": {}}, "Field required at payload.verdicts"),
    ],
)
def test_a_damaged_file_or_line_is_named_and_left_out(
    line: int, changes: dict[str, Any], told: str, tree: Tree, tmp_path: Path
):
    keep(tmp_path, tree, judge="other")
    file = keep(tmp_path, tree)
    with JudgementFile(tmp_path, "llm:a/b", {}) as kept:
        kept.add(("two.jsonl", 1), tree, SAID, FULL)
    change(file, line, **changes)
    judges, (fault,) = read_judgements(tmp_path)
    assert f"{file.name}', line {line + 1}: " in fault
    assert told in fault
    left = {name: list(judge.by_turn) for name, judge in judges.items()}
    assert left == {"other": [KEY]} | ({"llm:a/b": [("two.jsonl", 1)]} if line else {})
    if line:
        with JudgementFile(tmp_path, "llm:a/b", {}) as kept:
            assert (kept.holds(KEY, tree, SAID), len(kept.faults)) == (False, 1)
    else:
        with pytest.raises((JudgeError, LogError), match="line 1"):
            JudgementFile(tmp_path, "llm:a/b", {})


def test_a_line_that_is_no_json_is_named(tree: Tree, tmp_path: Path):
    file = keep(tmp_path, tree)
    file.write_bytes(file.read_bytes() + b"not json\n")
    judges, (fault,) = read_judgements(tmp_path)
    assert list(judges["llm:a/b"].by_turn) == [KEY]
    assert "line 3: not JSON" in fault
    assert "remove the line and judge the run again" in fault


def test_a_judgement_of_other_items_is_named_when_it_is_used(tree: Tree, tmp_path: Path):
    change(keep(tmp_path, tree, FULL), 1, item="c9")
    found = read_judgements(tmp_path).judges["llm:a/b"]
    with pytest.raises(
        JudgeError, match=r"turn 3 of one\.jsonl is damaged: its items must be c1, c2, c3, got c9, c2, c3"
    ):
        found.of(KEY, tree, SAID)
    with JudgementFile(tmp_path, "llm:a/b", {}) as kept:
        assert not kept.holds(KEY, tree, SAID)


@pytest.mark.parametrize("graded", [(Verdict(1.0, ""),) * 2, (Verdict(2.0, ""),) * 3, (Verdict(float("nan"), ""),) * 3])
def test_what_does_not_fit_the_task_is_not_kept(graded: tuple[Verdict, ...], tree: Tree, tmp_path: Path):
    with JudgementFile(tmp_path, "own", {}) as kept, pytest.raises(JudgeError, match="a judgement of made"):
        kept.add(KEY, tree, SAID, Judgement(graded))
    assert read_judgements(tmp_path).judges["own"].by_turn == {}


def test_judgements_of_another_kind_are_left_in_peace(tree: Tree, tmp_path: Path):
    keep(tmp_path, tree)
    assert read_judgements(tmp_path, "projection") == ({}, [])
    with JudgementFile(tmp_path, "llm:a/b", {}, "projection") as kept:
        assert kept.by_turn == {}
    assert [len(read_judgements(tmp_path, kind).judges) for kind in ("inquiry", "projection")] == [1, 1]


def test_two_processes_do_not_write_one_file(tree: Tree, tmp_path: Path):
    with JudgementFile(tmp_path, "local", {}), pytest.raises(LogError, match="another process is writing"):
        JudgementFile(tmp_path, "local", {})


def test_a_file_name_holds_no_path(tree: Tree, tmp_path: Path):
    file = keep(tmp_path, tree, judge="nli:../../etc/Modell ß" + "x" * 300)
    assert file.parent == tmp_path / "judgements"
    assert file.name.startswith("nli-..-..-etc-Modell-x")
    assert len(file.name) < 120
    assert json.loads(file.read_text().splitlines()[0])["judge"].startswith("nli:../../etc")
