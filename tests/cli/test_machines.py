"""The command line on other machines: pipes of few characters, no locks, marks of byte order, long names."""

from __future__ import annotations

import codecs
import errno
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from inquitree_gym import load_tree
from inquitree_gym.cli import main
from inquitree_gym.errors import LogError
from inquitree_gym.files import MAX_NAME, name_file
from inquitree_gym.log import JsonlWriter, file_stem, jsonl, read_episode
from inquitree_gym.runs.folder import locked
from inquitree_gym.runs.specs import EpisodeSpec
from inquitree_gym.runs.study import read_settings
from inquitree_gym.trees import dump_tree
from inquitree_gym.wrappers.logging import _new_file
from tests.contract.command_line import inquitree
from tests.log.test_files import HEADER

ENCODINGS = ("cp1252", "cp932", "iso-8859-1", "ascii")
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, 524)
STRANGE = "Δ 標本 — naïve 🧀"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with a mark of byte order, whose topic holds characters of many scripts."""
    document = json.loads(dump_tree(load_tree("paper12")))
    document |= {"id": "strange", "topic": f"{STRANGE} {document['topic']}"}
    file = tmp_path_factory.mktemp("tree") / "strange.json"
    file.write_bytes(codecs.BOM_UTF8 + json.dumps(document, ensure_ascii=False).encode())
    return file


@pytest.fixture(scope="module")
def run_folder(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "a"
    assert inquitree("run", "--agent", "random", "--papers", tree, "--seeds", 1, "--out", folder).status == 0
    return folder


def said(encoding: str, *arguments: object, stdin: str = "", status: int = 0) -> bytes:
    """The output of the command line on streams of an encoding. It has to end with this status."""
    typed = TextIOWrapper(BytesIO(stdin.encode()), encoding)
    out, err = (TextIOWrapper(BytesIO(), encoding, write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", typed):
        left = 0
        try:
            main([*map(str, arguments)])
        except SystemExit as ended:
            left = int(ended.code or 0)
    assert left == status, err.buffer.getvalue()
    return out.buffer.getvalue()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_verb_that_prints_a_text_ends_well_in_every_encoding(encoding: str, tree: Path, run_folder: Path):
    shown = said(encoding, "show", tree, "--spoil").decode(encoding)
    assert STRANGE.encode(encoding, "replace").decode(encoding)[:8] in shown
    assert json.loads(said(encoding, "show", tree, "--json"))["topic"].startswith(STRANGE)
    assert json.loads(said(encoding, "schema"))["title"] == "Tree"
    said(encoding, "report", run_folder)
    said(encoding, "match", tree, STRANGE)
    played = said(encoding, "play", tree, stdin=f"{STRANGE}\n\n", status=2)  # left at the end of the input
    assert "Left before the end." in played.decode(encoding)
    assert STRANGE.encode(encoding, "replace").decode(encoding)[:8] in played.decode(encoding)


@pytest.mark.e2e
def test_a_pipe_of_few_characters_is_written_to(tree: Path):
    done = subprocess.run(
        [sys.executable, "-c", "from inquitree_gym.cli import main; main()", "show", tree, "--spoil"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert STRANGE.encode("ascii", "replace")[:8] in done.stdout


# Files without locks


@pytest.fixture(params=NO_LOCKS, ids=lambda number: errno.errorcode.get(number, str(number)))
def no_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A file system that answers every lock with an error."""
    _without_locks(monkeypatch, request.param)
    jsonl._warn_unlocked.cache_clear()
    yield request.param
    jsonl._warn_unlocked.cache_clear()


def _without_locks(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def flock(*given: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(jsonl.fcntl, "flock", flock)


def test_without_locks_a_study_runs_and_one_warning_is_given(
    no_locks: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.WARNING):
        done = inquitree("run", "--agent", "random", "--papers", "paper12", "--seeds", 2, "--out", tmp_path / "run")
        with JsonlWriter(tmp_path / "a.jsonl", header=HEADER), locked(tmp_path / "other"):
            pass
    assert done.status == 0, done.err
    assert {read_episode(file).status for file in (tmp_path / "run").rglob("*.jsonl")} <= {"concluded", "truncated"}
    warned = [record.getMessage() for record in caplog.records if "locked" in record.getMessage()]
    assert warned == [
        f"files cannot be locked (the file system answers: {os.strerror(no_locks)}); let no two processes write to one "
        "folder"
    ]


def test_another_error_of_a_lock_leaves_no_file_and_no_wrong_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _without_locks(monkeypatch, errno.EIO)
    with pytest.raises(LogError, match=r"cannot write .*Input/output error; .* are safe\. Choose another folder"):
        JsonlWriter(tmp_path / "a.jsonl", header=HEADER)
    assert list(tmp_path.iterdir()) == []
    kept = tmp_path / "b.jsonl"
    kept.write_bytes(b"1\n")
    with pytest.raises(LogError, match="Choose another folder"):
        JsonlWriter(kept, resume=True)
    assert kept.read_bytes() == b"1\n"


def test_a_system_without_locks_warns_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any):
    monkeypatch.setattr(jsonl, "fcntl", None)
    jsonl._warn_unlocked.cache_clear()
    for name in "ab":
        JsonlWriter(tmp_path / name).close()
    assert [record.getMessage()[:40] for record in caplog.records] == ["files cannot be locked (this system has "]


# Marks of byte order, and long names


def test_a_mark_of_byte_order_is_read_over(tree: Path, tmp_path: Path):
    assert load_tree(tree).topic.startswith(STRANGE)
    study = tmp_path / "study.toml"
    settings = {"agents": ["random"], "trees": [str(tree)], "seeds": 1}
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in settings.items())
    study.write_bytes(codecs.BOM_UTF8 + lines.encode())
    assert read_settings(study) == settings
    assert inquitree("run", "--study", study, "--out", tmp_path / "run").status == 0


@pytest.mark.parametrize("letter", ["a", "é", "標", "🧀"])
def test_names_are_cut_to_what_file_systems_take_and_stay_unique(letter: str, tmp_path: Path):
    names = {name_file(letter * 300 + end, ".jsonl") for end in ("", "x", "y")}
    assert len(names) == 3
    for name in names:
        assert MAX_NAME - 4 <= len(name.encode()) <= MAX_NAME
        assert name.endswith(".jsonl")
        (tmp_path / name).touch()
    short = letter * (200 // len(letter.encode()))
    assert name_file(short, ".jsonl") == f"{short}.jsonl"
    assert len({file_stem(letter * 300), file_stem(letter * 301), file_stem(letter * 300 + "x")}) == 3
    assert len(file_stem(letter * 300)) <= 80


def test_an_episode_of_a_long_name_is_logged(tmp_path: Path):
    task = str(tmp_path / f"{'標本' * 40}.json")
    specs = [EpisodeSpec("random", task, (), seed, "模型" * 30) for seed in range(2)]
    names = {spec.file_name for spec in specs}
    assert len(names) == 2
    assert all(len(name.encode()) <= MAX_NAME for name in names)
    for name in names:
        JsonlWriter(tmp_path / name, header=HEADER).close()
    files = [_new_file(tmp_path, "標" * 200, HEADER) for _ in range(2)]
    for file in files:
        file.close()
    assert len({file.path for file in files}) == 2
