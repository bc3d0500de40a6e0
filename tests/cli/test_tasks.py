"""The verbs about trees tell the same of a user's file as the import does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from inquitree_gym.trees import dump_tree, load_tree
from inquitree_gym.trees.catalogue import builtin_file
from tests.contract.command_line import inquitree
from tests.strategies import make_tree
from tests.tasks import TASK
from tests.worlds import clean_document

RENAMED = "'renamed.json' holds the id 'original'; file name and id have to agree"


@pytest.fixture
def renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in a folder of user trees, with the name of another tree."""
    file = tmp_path / "renamed.json"
    file.write_text(dump_tree(make_tree([[]], [1], tree_id="original")))
    monkeypatch.setenv("INQUITREE_TREES", str(tmp_path))
    return file


def test_a_file_named_unlike_its_id_is_no_tree_for_any_verb(renamed: Path):
    shown = inquitree("show", "renamed")
    assert (shown.status, shown.out) == (2, "")
    assert RENAMED in shown.said
    (listed,) = (each for each in json.loads(inquitree("list", "--json").out) if each["id"] == "renamed")
    assert not listed["playable"]
    assert f"1 fault; see inquitree check {renamed}" in listed["title"]
    for name in ("renamed", renamed):
        checked = inquitree("check", name, "--embedder", "none", "--json")
        assert checked.status == 1
        named = [fault for fault in json.loads(checked.out)[str(name)] if fault["code"] == "T103"]
        assert [(fault["node"], fault["path"], fault["message"]) for fault in named] == [("id", "id", RENAMED)]


def test_check_refuses_the_id_of_a_shipped_tree(tmp_path: Path):
    file = tmp_path / "paper28.json"
    file.write_text(dump_tree(load_tree("paper28")))
    done = inquitree("check", file, "--embedder", "none")
    assert done.status == 1
    told = "error T103 id: 'paper28.json' has the id of a shipped tree; rename the file and its id"
    assert told in done.out.splitlines()[1]
    assert done.out.startswith(f"{file}: 1 error")


def test_a_shipped_file_may_be_checked_by_its_path():
    assert inquitree("check", builtin_file("paper28"), "--embedder", "none").status == 0


def test_an_own_tree_of_a_restricted_paper_is_clean_of_that_fault(tmp_path: Path):
    file = tmp_path / "paper6.json"
    file.write_text(dump_tree(make_tree([[]], [1], tree_id="paper6")))
    done = inquitree("check", file, "--embedder", "none", "--json")
    assert not [fault for fault in json.loads(done.out)[str(file)] if fault["node"] == "id"]


def test_the_author_of_one_tree_with_worlds_is_shown_tables(tmp_path: Path):
    file, other = tmp_path / "made.json", tmp_path / "other.json"
    file.write_text(json.dumps(clean_document()))
    other.write_text(json.dumps(clean_document() | {"id": "other", "axes": [{}]}))
    done = inquitree("check", file, "--embedder", "none")
    assert (done.status, done.out.splitlines()[0]) == (0, f"{file}: clean")
    for row in (
        r"complement │ 2 ",
        r"s2d +│ ● +│ +│ +│ ● +│ +│ sheet",
        r"3 +│ 4 +│ 2.21",
        r"s4d +│ 3 +│ 0\.\d+ +│ 0\.\d+ +│",
    ):
        assert re.search(row, done.out), row
    assert json.loads(inquitree("check", file, "--embedder", "none", "--json").out) == {str(file): []}
    both = inquitree("check", file, other, "--embedder", "none")
    assert (both.status, "complement" in both.out) == (1, False)
    assert "T102 axes › 0 › question: is missing" in both.out


def test_a_task_file_of_the_user_is_listed_and_checked_by_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "bread.json").write_text(json.dumps(TASK))
    monkeypatch.setenv("INQUITREE_TREES", str(tmp_path))
    assert "bread" not in {each["id"] for each in json.loads(inquitree("list", "--json").out)}
    entries = json.loads(inquitree("list", "--env", "projection", "--json").out)
    (listed,) = (each for each in entries if each["id"] == "bread")
    assert (listed["playable"], listed["title"]) == (True, TASK["paper"]["title"])
    assert inquitree("check", "bread", "--embedder", "none").status == 0
    (tmp_path / "bread.json").write_text(json.dumps(TASK | {"version": 0}))
    checked = inquitree("check", "bread", "--embedder", "none", "--json")
    assert [fault["path"] for fault in json.loads(checked.out)["bread"]] == ["version"]
