"""The table of numbers that differ between the presets is made of two runs, paired by tree and seed."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from inquitree_gym.log import read_episode
from research.presets import app


@pytest.mark.weights
def test_the_table_has_the_numbers_that_differ_and_no_others(tmp_path: Path):
    given = ("--papers", "2", "--agent", "oracle,worst-case", "--fake-level", "6", "--seeds", "1")
    done = CliRunner().invoke(app, ["--out", str(tmp_path), *given])
    assert done.exit_code == 0, done.output
    heading, _, *rows = [[cell.strip() for cell in line.strip("|\n").split(" | ")] for line in done.stdout.splitlines()]
    assert heading[3:] == ["`default`", "`paper`", "`paper` − `default`"]
    assert {row[0] for row in rows} == {"`oracle`"}, "the worst case plays alike"
    lengths = {
        preset: len(read_episode(tmp_path / preset / "episodes" / "paper2_oracle_f6_s0.jsonl").turns) - ending
        for preset, ending in (("default", 2), ("paper", 1))
    }
    (turns,) = (row for row in rows if row[2] == "turns")
    assert float(turns[3]) == lengths["default"] < lengths["paper"] == float(turns[4])
    assert float(turns[5]) == lengths["paper"] - lengths["default"]
