"""The verb export."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from datasets import load_dataset

from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.run import run_study
from inquitree_gym.trees import dump_tree
from tests.contract.command_line import inquitree
from tests.strategies import make_tree

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four episodes on a tree of the benchmark, one of them torn."""
    folder = tmp_path_factory.mktemp("run")
    run_study(make_study(agents=("oracle",), trees=("paper2",), fake_level=(0, 4), seeds=2), folder)
    torn = folder / "episodes" / "paper2_oracle_f0_s1.jsonl"
    torn.write_bytes(torn.read_bytes()[:-10])
    return folder


def rows(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_export_writes_a_row_for_each_concluded_episode(played: Path):
    done = inquitree("export", played, "--to", "messages", "--benchmark")
    assert (done.status, done.out) == (0, "")
    assert f"written: {played / 'messages.jsonl'}" in done.said
    assert "do not evaluate it on these trees" in done.said
    found = rows(played / "messages.jsonl")
    assert [(row["fake_level"], row["seed"]) for row in found] == [(0, 0), (4, 0), (4, 1)]
    assert {row["messages"][-1]["role"] for row in found} == {"assistant"}


def test_export_of_the_benchmark_needs_leave(played: Path, tmp_path: Path):
    done = inquitree("export", played, "--out", tmp_path / "m.jsonl")
    assert (done.status, done.out) == (2, "")
    assert "paper2: a model trained on messages about trees of the benchmark" in done.said
    assert not (tmp_path / "m.jsonl").exists()


def test_export_of_a_tree_of_ones_own(tmp_path: Path):
    tree = make_tree([[], []], [1, 1], tree_id="own")
    (tmp_path / "own.json").write_text(dump_tree(tree), encoding="utf-8")
    run_study(make_study(agents=("random",), trees=(str(tmp_path / "own.json"),), seeds=2), tmp_path / "run")
    done = inquitree("export", tmp_path / "run", "--out", tmp_path / "m.jsonl")
    assert (done.status, done.said) == (0, f"written: {tmp_path / 'm.jsonl'}")
    assert [row["task"] for row in rows(tmp_path / "m.jsonl")] == ["own", "own"]
    assert "leave it out" in inquitree("export", tmp_path / "run", "--benchmark").said


def test_export_of_nothing_says_so(played: Path, tmp_path: Path):
    assert "holds no finished episode" in inquitree("export", tmp_path).said
    (tmp_path / "run.json").write_bytes((played / "run.json").read_bytes())
    done = inquitree("export", tmp_path, "--benchmark")
    assert (done.status, "holds no finished episode that can be scored" in done.said) == (2, True)


def test_logs_of_inspect_need_their_extra(played: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    done = inquitree("export", played, "--to", "inspect")
    assert (done.status, "pip install -c constraints-inspect.txt '.[inspect,offline]'" in done.said) == (2, True)


def test_the_rows_load_in_datasets(played: Path, tmp_path: Path):
    assert inquitree("export", played, "--benchmark", "--out", tmp_path / "m.jsonl").status == 0
    found = load_dataset("json", data_files=str(tmp_path / "m.jsonl"), split="train", cache_dir=str(tmp_path / "cache"))
    assert found.num_rows == 3
    assert found[0]["messages"] == rows(tmp_path / "m.jsonl")[0]["messages"]
