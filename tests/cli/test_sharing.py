"""`inquitree merge`: what it writes and says."""

from __future__ import annotations

import json
from pathlib import Path

from inquitree_gym.runner import run_study
from inquitree_gym.runner.study import make_study
from tests.cli import test_cli
from tests.cli.test_cli import Inquitree

inquitree = test_cli.inquitree


def test_merge_says_what_it_did_and_a_copy_is_reported_once(inquitree: Inquitree, tmp_path: Path):
    one, other, both = (tmp_path / name for name in ("one", "other", "both"))
    for folder, seeds in {one: 1, other: 2}.items():
        run_study(make_study(agents=("oracle",), trees=("2",), seeds=seeds), folder)
    done = inquitree("merge", one, other, "--out", both)
    assert (done.status, done.out) == (0, "")
    assert "1 episode held by several runs; each counts once" in done.said
    assert f"written: {both}, 2 episodes" in done.said
    done = inquitree("merge", one, other, "--out", tmp_path / "again", "--json")
    assert json.loads(done.out) == {
        "folder": str(tmp_path / "again"), "episodes": 2, "unfinished": 0, "doubles": 1, "damaged": [],
    }  # fmt: skip
    done = inquitree("report", one, other, "--json")
    assert json.loads(done.out)["rows"][0]["episodes"] == 2
    assert "1 episode given more than once, with equal fingerprints; each counts once" in done.said
    done = inquitree("merge", one, other, "--out", both)
    assert (done.status, done.out) == (2, "")
    assert f"'{both}' exists already; nothing is overwritten" in done.said
