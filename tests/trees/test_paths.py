"""Trees are found in the package and in the folders that the user names; a bad file never breaks the import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from inquitree_gym.errors import TreeError, UnknownTreeError
from inquitree_gym.trees import builtin_ids, dump_tree, load_tree, user_files
from inquitree_gym.trees.catalogue import TREES_VARIABLE, missing_folders
from tests.strategies import make_tree


def put(folder: Path, name: str, tree_id: str | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    file.write_text(dump_tree(make_tree([[]], [1], tree_id=tree_id or name)))
    return file


def name_folders(monkeypatch: pytest.MonkeyPatch, *folders: object) -> None:
    monkeypatch.setenv(TREES_VARIABLE, os.pathsep.join(map(str, folders)))


def test_trees_of_named_folders_answer_to_their_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one, two = put(tmp_path / "one", "mine"), put(tmp_path / "two", "yours")
    (tmp_path / "one" / "notes.txt").write_text("no tree")
    name_folders(monkeypatch, tmp_path / "one", "", tmp_path / "two")
    assert user_files() == {"mine": one, "yours": two}
    assert load_tree("mine").id == "mine"
    assert load_tree("yours").id == "yours"


def test_the_first_folder_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first = put(tmp_path / "one", "mine")
    put(tmp_path / "two", "mine")
    name_folders(monkeypatch, tmp_path / "one", tmp_path / "two")
    assert user_files() == {"mine": first}


def test_a_user_file_does_not_take_the_place_of_a_shipped_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    put(tmp_path, "paper12")
    name_folders(monkeypatch, tmp_path)
    assert load_tree("paper12").topic != "What decides the questions?"


def test_a_bad_user_tree_says_which_file_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "broken.json").write_text('{"topic": ')
    name_folders(monkeypatch, tmp_path)
    with pytest.raises(TreeError, match=r"broken\.json: 1 fault\n  - is not JSON at line 1"):
        load_tree("broken")


def test_file_name_and_id_have_to_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = put(tmp_path, "renamed", tree_id="original")
    name_folders(monkeypatch, tmp_path)
    with pytest.raises(TreeError, match=r"'renamed\.json' holds the id 'original'; file name and id have to agree"):
        load_tree("renamed")
    with pytest.raises(UnknownTreeError, match="no tree has the id 'original'"):
        load_tree("original")
    assert load_tree(file).id == "original", "a path needs no agreement"


def test_only_entries_that_are_no_folders_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = put(tmp_path, "mine")
    name_folders(monkeypatch, tmp_path, "", tmp_path / "nosuch", file)
    assert missing_folders() == [str(tmp_path / "nosuch"), str(file)]
    monkeypatch.delenv(TREES_VARIABLE)
    assert missing_folders() == []


@pytest.mark.parametrize("folder", ["nosuch", "~nosuchuser/trees", "x" * 5_000, "mine.json", "[a-z]*"])
def test_a_folder_that_cannot_be_read_holds_no_trees(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    put(tmp_path, "mine")
    monkeypatch.chdir(tmp_path)
    name_folders(monkeypatch, folder)
    assert user_files() == {}


def test_a_folder_may_have_marks_of_a_pattern_in_its_name_or_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mine, yours = put(tmp_path / "[trees]*", "mine"), put(tmp_path / "home", "yours")
    monkeypatch.setenv("HOME", str(tmp_path))
    name_folders(monkeypatch, tmp_path / "[trees]*", "~/home")
    assert user_files() == {"mine": mine, "yours": yours}


REGISTERED = """
import json, warnings
import gymnasium
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import inquitree_gym
from inquitree_gym.trees.catalogue import WITHHELD_ENTRY_POINT
ids = [
    name for name, spec in gymnasium.registry.items()
    if name.startswith("InquiTree-") and spec.entry_point != WITHHELD_ENTRY_POINT
]
env = gymnasium.make("InquiTree-mine-v0", disable_env_checker=True)
print(json.dumps([ids, [str(each.message) for each in caught], env.unwrapped.trees[0].id]))
"""


@pytest.mark.e2e
def test_the_import_registers_good_user_trees_and_only_warns_of_bad_ones(tmp_path: Path):
    mine = put(tmp_path, "mine")
    put(tmp_path, "renamed", tree_id="other")
    put(tmp_path, "paper8")
    bad = {
        "torn": mine.read_text()[:400],
        "deep": "[" * 100_000,
        "digits": mine.read_text().replace('"version": 1', '"version": ' + "9" * 5_000),
        "binary": "\0" * 64,
        "empty": "",
        "with space": mine.read_text(),
    }
    for name, text in bad.items():
        (tmp_path / f"{name}.json").write_text(text)
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "dangling.json").symlink_to(tmp_path / "nosuch")
    environment = os.environ | {TREES_VARIABLE: os.pathsep.join([str(tmp_path), "~nosuchuser/x", "x" * 5_000])}
    run = subprocess.run(
        [sys.executable, "-c", REGISTERED], env=environment, capture_output=True, text=True, check=True
    )
    ids, warned, loaded = json.loads(run.stdout)
    trees = ["InquiTree", "InquiTree-mine", *(f"InquiTree-{name}" for name in builtin_ids())]
    assert set(ids) - {"InquiTree-synthetic-v0", "InquiTree-synthetic-menu-v0"} == {
        f"{name}{view}-v0" for name in trees for view in ("", "-menu")
    }
    assert loaded == "mine"
    missing = [message for message in warned if "which is not a folder" in message]
    assert len(missing) == 2
    assert "INQUITREE_TREES names '~nosuchuser/x', which is not a folder" in missing
    left_out = {*bad, "renamed", "paper8", "folder", "dangling"}
    assert len(warned) == len(left_out) + len(missing)
    for name in left_out:
        assert sum(f"{name}.json" in message for message in warned) == 1
