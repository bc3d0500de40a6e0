"""The examples run as their first lines say, only shorter."""

from __future__ import annotations

import importlib
import json
import runpy
import sys
from pathlib import Path

import pytest
import torch

from inquitree_gym import read_episode
from inquitree_gym.results.statistics import Estimate
from inquitree_gym.trees import builtin_ids

pytestmark = [pytest.mark.weights, pytest.mark.e2e]

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def run(monkeypatch, tmp_path, reader):
    """Run an example with flags, in an empty folder."""

    def running(name: str, *flags: str) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [name, *flags])
        monkeypatch.syspath_prepend(str(EXAMPLES))
        threads = torch.get_num_threads()
        try:
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        finally:
            torch.set_num_threads(threads)

    return running


@pytest.mark.parametrize("flags", [(), ("--unmasked", "--fake-level", "3")], ids=["masked", "unmasked"])
def test_ppo_trains_and_keeps_its_curve(run, flags, tmp_path, capsys):
    run("ppo.py", "--tree", "paper8", "--turns", "18", "--steps", "12288", "--seed", "2", "--out", "kept", *flags)
    kept = json.loads((tmp_path / "kept" / "curve.json").read_text())
    assert [steps for steps, _ in kept["curve"]] == [4096, 8192, 12288]
    assert kept["settings"]["masked"] is not bool(flags)
    assert torch.load(tmp_path / "kept" / "policy.pt")["mean"].shape == (412,)
    assert "12,288 steps" in capsys.readouterr().out


def test_masked_ppo_gets_better(run, tmp_path):
    run("ppo.py", "--tree", "paper8", "--turns", "18", "--steps", "40960", "--out", "kept")
    returns = [value for _, value in json.loads((tmp_path / "kept" / "curve.json").read_text())["curve"]]
    assert returns[-1] > returns[0] + 0.1


@pytest.mark.parametrize("masked", [True, False], ids=["MaskablePPO", "PPO"])
def test_stable_baselines_trains_and_its_policy_plays_logged_episodes(run, masked, tmp_path):
    flags = ("--masked",) if masked else ()
    run("sb3_ppo.py", "--tree", "paper8", "--turns", "6", "--steps", "4096", "--episodes", "2", "--out", "kept", *flags)
    assert (tmp_path / "kept" / "model.zip").is_file()
    episodes = [read_episode(file) for file in sorted((tmp_path / "kept").glob("*.jsonl"))]
    assert [episode.status for episode in episodes] == ["concluded"] * 2
    assert {episode.header.agent["name"] for episode in episodes} == {"sb3"}


def test_a_table_of_values_beats_chance(run, capsys):
    run("q_table.py", "--tree", "paper2", "--turns", "15", "--steps", "1000000", "--seed", "3")
    returns = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert len(returns) == 20
    assert sum(returns[-10:]) / 10 > 0.02, "chance earns 0"


def test_the_learning_study_has_table_numbers_and_picture(monkeypatch, tmp_path, reader):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    learning = importlib.import_module("learning_study")
    monkeypatch.setattr(learning, "EPISODES", 16)
    monkeypatch.setattr(learning, "LOGGED", 2)
    rules = {"tree": "paper8", "turns": 18, "steps": 4096}
    found = [
        learning.study("masked", 2, tmp_path, **rules),
        learning.study("unmasked", 1, tmp_path, masked=False, fake_level=3, **rules),
    ]
    for study in found:
        assert study["oracle"] > study["chance"]["random masked"] > study["chance"]["random"]
    assert Estimate(*found[0]["estimates"]["return"]).episodes == 2, "values, one for each seed"
    assert learning.as_markdown(found).count("\n") == 4
    learning.draw(found, tmp_path / "learning.svg")
    assert (tmp_path / "learning.svg").read_text().lstrip().startswith("<?xml")
    assert len(list((tmp_path / "episodes").glob("*.jsonl"))) == 3 * 2


def test_the_curriculum_compares_with_chance_on_unseen_trees_and_papers(run, tmp_path):
    # Of any embedder, that which costs nothing: no vectors of synthetic trees ship.
    flags = ("--stages", "2", "--trees", "1", "--papers", "1", "--embedder", "hashed-words")
    run("curriculum.py", "--seeds", "2", "--steps", "2048", "--out", "kept", *flags)
    synthetic, papers = json.loads((tmp_path / "kept" / "curriculum.json").read_text())
    for _, chance, learned in (synthetic, papers):
        assert set(chance) == set(learned)
        assert all(-1 < value < 1 for value in chance.values())
        assert [len(values) for values in learned.values()] == [2]
    assert synthetic[0] == "unseen synthetic, n = 2"
    assert all(name.startswith("synthetic") for name in synthetic[1])
    assert set(papers[1]) <= set(builtin_ids())
    assert (tmp_path / "kept" / "curriculum.md").read_text().count("\n") == 4
    assert (tmp_path / "kept" / "curriculum.svg").is_file()


def test_ppo_solves_projections_at_the_procedure_and_stays_at_chance_before(run, tmp_path, capsys):
    run("projection_ppo.py", "--deducible", "1", "--steps", "150000", "--out", "kept")
    question, null, procedure = json.loads((tmp_path / "kept" / "learned.json").read_text())["1"]
    assert question == pytest.approx(0, abs=0.1)
    assert null == pytest.approx(0, abs=0.1)
    assert procedure >= 0.9
    assert "| PPO, deducible 1 | " in capsys.readouterr().out
    assert (tmp_path / "kept" / "learned.svg").read_text().lstrip().startswith("<?xml")


def test_ppo_learns_nothing_where_no_sign_can_be_known(run, tmp_path):
    run("projection_ppo.py", "--deducible", "0", "--claims", "3", "--seed", "2", "--steps", "30000", "--out", "kept")
    found = json.loads((tmp_path / "kept" / "learned.json").read_text())["0"]
    assert max(map(abs, found)) <= 0.1, "never above chance"
    assert "best possible, deducible 0" in (tmp_path / "kept" / "learned.md").read_text()
