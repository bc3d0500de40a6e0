"""The command that draws the frozen tasks of SciExplore."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.frozen import FOLDER, app
from tests.contract.command_line import run_tool


def test_the_command_writes_the_files_that_ship(tmp_path: Path) -> None:
    pytest.importorskip("bm25s")
    done = run_tool(app, "--folder", tmp_path)
    assert done.out.split("\n")[0] == "t1: 39 tasks"
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["t1.jsonl", "t2.jsonl", "t3.jsonl", "t4.jsonl"]
    assert all(file.read_bytes() == (FOLDER / file.name).read_bytes() for file in files)
