"""Tasks: their keys, and what is refused."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from inquitree_gym.errors import OptionError, TreeError
from inquitree_gym.integrations.tasks import InquiryTask, make_tasks
from inquitree_gym.trees import builtin_ids, dump_tree, load_tree
from tests.strategies import make_tree

P8, P12 = (f"{tree}@{load_tree(tree).version}" for tree in ("paper8", "paper12"))


def test_tasks_are_trees_by_levels_by_seeds_with_a_key_each():
    tasks = make_tasks(["paper12", "8"], seeds=2, fake_level=[0, 3])
    assert [task.key for task in tasks] == [
        f"{P12}/f0/s0", f"{P12}/f0/s1", f"{P12}/f3/s0", f"{P12}/f3/s1",
        f"{P8}/f0/s0", f"{P8}/f0/s1", f"{P8}/f3/s0", f"{P8}/f3/s1",
    ]  # fmt: skip
    assert tasks[3] == InquiryTask("paper12", tasks[0].load().version, 1, {"fake_level": 3, "max_turns": "default"})


def test_all_trees_are_the_shipped_ones():
    assert [task.tree for task in make_tasks(seeds=[7])] == list(builtin_ids())


def test_other_rules_are_in_options_and_key():
    (task,) = make_tasks("paper8", seeds=[4], fake_level=2, max_turns="3n", rules={"study_turn": True, "on_tie": "ask"})
    assert task.options == {"fake_level": 2, "max_turns": 15, "study_turn": True, "on_tie": "ask"}
    assert task.key == f"{P8}/f2/s4/max_turns=15/on_tie=ask/study_turn=True"


def test_a_preset_of_rules_is_named_in_options_and_key():
    (task,) = make_tasks("paper8", seeds=1, rules="paper")
    assert (task.options["rules"], task.preset, task.key) == ("paper", "paper", f"{P8}/f0/s0/rules=paper")
    assert make_tasks("paper8", seeds=1)[0].preset == "default"
    assert make_tasks("paper8", seeds=1, rules="default") == make_tasks("paper8", seeds=1)


def test_trees_and_seeds_may_be_named_in_any_form():
    assert make_tasks("paper12, 8", seeds=1) == make_tasks(("12", "paper8", "12"), seeds=[0, 0])
    assert make_tasks("8", fake_level="0, 3") == make_tasks("8", fake_level=[0, 3, 0])
    assert make_tasks("8", seeds=1, max_turns="none")[0].options["max_turns"] is None


def test_a_task_survives_json():
    (task,) = make_tasks("paper12", seeds=[3], fake_level=10)
    assert InquiryTask(**json.loads(json.dumps(asdict(task)))) == task


def test_a_tree_of_ones_own_is_named_by_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine.json").write_text(dump_tree(make_tree([[]], [1], tree_id="mine")), encoding="utf-8")
    monkeypatch.setenv("INQUITREE_TREES", str(tmp_path))
    (task,) = make_tasks("mine", seeds=1)
    assert (task.key, task.load().id) == ("mine@1/f0/s0", "mine")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trees": "/etc/shadow"}, "a tree is named by its id"),
        ({"trees": ["../../secret.json"]}, "a tree is named by its id"),
        ({"trees": [Path("paper12")]}, "a tree is named by its id"),
        ({"trees": []}, "at least one tree"),
        ({"fake_level": []}, "at least one tree and one fake level"),
        ({"fake_level": 11}, "fake_level is a whole number from 0 to 10"),
        ({"fake_level": "3,x"}, "fake_level is a whole number from 0 to 10, or several, not '3,x'"),
        ({"fake_level": [0, -1]}, "fake_level is a whole number"),
        ({"seeds": 0}, "seeds is a number of seeds"),
        ({"seeds": [-1]}, "seeds is a number of seeds"),
        ({"seeds": [True]}, "seeds is a number of seeds"),
        ({"seeds": 1_000_001}, "1,000,001 tasks are more than 1,000,000"),
        ({"max_turns": 0}, "max_turns is a whole number from 1"),
        ({"rules": "papier"}, "unknown preset 'papier'"),
        ({"rules": {"privileged": True}}, "unknown option 'privileged'"),
        ({"rules": {"fake_level": 3}}, "fake_level cannot be among the rules"),
    ],
)
def test_bad_settings_are_refused(settings: dict, message: str):
    with pytest.raises(OptionError, match=message):
        make_tasks(**{"trees": "paper12", **settings})


@pytest.mark.parametrize(("tree", "message"), [("paper6", "may not be distributed"), ("paper99", "no tree has the id")])
def test_restricted_and_unknown_trees_are_refused(tree: str, message: str):
    with pytest.raises(TreeError, match=message):
        make_tasks(tree)


def test_a_task_for_another_version_of_a_tree_is_refused():
    with pytest.raises(OptionError, match=r"for version 99 of paper12, but version \d+ is installed"):
        InquiryTask("paper12", 99, 0).load()
