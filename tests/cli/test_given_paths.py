"""Errors show a path as it was given, from the folder where the command was typed."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import pytest

from inquitree_gym import InquiTreeError, load_tree, make_agent
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.run import run_study
from tests.contract.command_line import inquitree
from tests.inquiry.test_batch import LETTERS


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which is a link to another one."""
    (tmp_path / "real").mkdir()
    (tmp_path / "here").symlink_to("real")
    monkeypatch.setenv("HOME", str(tmp_path / "here"))
    monkeypatch.chdir(tmp_path / "here")
    for name in ("empty", "logs"):
        Path(name).mkdir()
    Path("logs/torn.jsonl").write_text("{")
    Path("torn.json").write_text("{")
    Path("model.zip").write_text("no archive")
    return tmp_path


@pytest.mark.parametrize("verb", ["score", "report", "judge --judge nli:m", "export"])
@pytest.mark.parametrize("given", ["empty", "logs", "./logs/../empty"])
def test_logs_are_named_as_given(verb: str, given: str, here: Path):
    done = inquitree(*verb.split(), given)
    assert done.status == 2
    assert f"{Path(given)}'" in done.said
    assert str(here) not in done.err


@pytest.mark.parametrize("given", ["nosuch.json", "torn.json", "./torn.json", "~/nosuch.json", "~/torn.json"])
def test_trees_are_named_as_given(given: str, here: Path):
    with pytest.raises(InquiTreeError) as caught:
        load_tree(given)
    assert given in str(caught.value)
    assert str(here) not in str(caught.value)


def test_saved_models_are_named_as_given(here: Path):
    env = gym.make("InquiTree-paper2-v0", embedder=LETTERS)
    with pytest.raises(InquiTreeError, match=r"'policy:model\.zip': 'model\.zip' is no saved model"):
        make_agent("policy:model.zip", env)


@pytest.mark.e2e
def test_pages_name_a_run_that_is_given_as_a_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run_study(make_study(agents=("random",), trees=("paper2",), seeds=2), tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    assert inquitree("report", ".", "--out", tmp_path / "page.html").status == 0
    assert "mine" in (tmp_path / "page.html").read_text("utf-8")
    assert inquitree("view", ".").status == 0
    assert "Episodes of mine" in Path("view/index.html").read_text("utf-8")
