"""Tasks: their keys, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from inquitree_gym.errors import OptionError, TreeError
from inquitree_gym.integrations.tasks import EpisodeTask, make_tasks
from inquitree_gym.trees import builtin_ids, dump_tree, load_tree
from tests.strategies import make_tree

P2, P8, P12 = (f"{tree}@{load_tree(tree).version}" for tree in ("paper2", "paper8", "paper12"))


def test_tasks_are_papers_by_cells_by_seeds_with_a_key_each():
    tasks = make_tasks(["paper12", "8"], seeds=2, fake_level=[0, 3])
    assert [task.key for task in tasks] == [
        f"{paper}/fake_level={level}/s{seed}" for paper in (P12, P8) for level in (0, 3) for seed in (0, 1)
    ]
    version = tasks[3].load().version
    assert tasks[3] == EpisodeTask("inquiry", "paper12", version, 1, {"fake_level": 3}, {})
    assert tasks[3].options == {"fake_level": 3, "max_turns": "3n"}


def test_other_settings_are_in_options_and_key():
    rules = {"redo_turn": True, "feedback": "hint"}
    (task,) = make_tasks("paper8", seeds=[4], fake_level=2, max_turns="5n", rules=rules)
    assert task.options == {"fake_level": 2, "max_turns": "5n", "redo_turn": True, "feedback": "hint"}
    assert task.key == f"{P8}/fake_level=2/s4/max_turns=5n/rules.feedback=hint/rules.redo_turn=True"
    (task,) = make_tasks("8", env="projection", seeds=1, levels="null,question")
    assert (task.key, task.cell) == (f"{P8}/s0/levels=null,question", {})


def test_a_preset_of_rules_is_in_the_key_and_brings_its_prompts():
    (task,) = make_tasks("paper8", seeds=1, rules="paper")
    assert (task.key, task.parsed.prompts) == (f"{P8}/fake_level=0/s0/rules.preset=paper", "paper")
    assert make_tasks("paper8", seeds=1, rules="default") == make_tasks("paper8", seeds=1)


def test_the_world_is_in_the_key_and_hidden_from_clients():
    (task,) = make_tasks("paper2", seeds=1, world="01101", rules={"feedback": "hint"})
    assert task == make_tasks("paper2", seeds=1, rules={"feedback": "hint", "world": "01101"})[0]
    assert task.key == f"{P2}/fake_level=0/s0/rules.feedback=hint/rules.world=01101"
    assert (task.options["world"], task.options["feedback"]) == ("01101", "hint")
    assert task.shown.key == f"{P2}/fake_level=0/s0/rules.feedback=hint"
    (task,) = make_tasks("paper2", seeds=1, world="any", rules="paper")
    assert (task.options["world"], task.shown) == ("any", make_tasks("paper2", seeds=1, rules="paper")[0])


def test_papers_values_and_seeds_may_be_named_in_any_form():
    assert [task.task for task in make_tasks(seeds=[7])] == list(builtin_ids())
    assert make_tasks("paper12, 8", seeds=1) == make_tasks(("12", "paper8", "12"), seeds=[0, 0])
    assert make_tasks("8", fake_level="0, 3") == make_tasks("8", fake_level=[0, 3, 0])
    assert make_tasks("8", seeds=1, max_turns="none")[0].options["max_turns"] is None


def test_a_tree_of_ones_own_is_named_by_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine.json").write_text(dump_tree(make_tree([[]], [1], tree_id="mine")), encoding="utf-8")
    monkeypatch.setenv("INQUITREE_TREES", str(tmp_path))
    (task,) = make_tasks("mine", seeds=1)
    assert (task.key, task.load().id) == ("mine@1/fake_level=0/s0", "mine")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"papers": "/etc/shadow"}, "a task is named by its id"),
        ({"papers": ["../../secret.json"]}, "a task is named by its id"),
        ({"papers": [Path("paper12")]}, "a task is named by its id"),
        ({"papers": []}, "at least one tree"),
        ({"papers": "paper6"}, "may not be distributed"),
        ({"papers": "paper99"}, "no tree has the id"),
        ({"env": "bread"}, "no kind of environment is called 'bread'"),
        ({"fake_level": []}, "fake_level: needs at least one entry"),
        ({"fake_level": "3,x"}, "fake_level.1: needs a whole number"),
        ({"seeds": 0}, "seeds must be a number of seeds"),
        ({"seeds": [True]}, "seeds must be a number of seeds"),
        ({"seeds": 1_000_001}, "1,000,001 tasks are more than 1,000,000"),
        ({"rules": {"privileged": True}}, "privileged"),
        ({"papers": "paper2", "world": "011"}, "world '011' must have one digit for each axis"),
        ({"papers": "paper2", "env": "projection", "world": "any"}, "world: is an unknown setting"),
    ],
)
def test_bad_settings_are_refused(settings: dict, message: str):
    with pytest.raises((OptionError, TreeError), match=message):
        make_tasks(**{"papers": "paper12", **settings})


def test_a_task_for_another_version_of_a_tree_is_refused():
    with pytest.raises(OptionError, match=r"for version 99 of paper12, but version \d+ is installed"):
        EpisodeTask("inquiry", "paper12", 99, 0).load()
