"""`inquitree merge`, `pack` and `unpack`: what they write and say."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest

from inquitree_gym.report.pack import ROWS
from inquitree_gym.runner import run_study
from inquitree_gym.runner.archive import write_archive
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


def test_pack_and_unpack_say_what_they_did(inquitree: Inquitree, tmp_path: Path):
    run = tmp_path / "run"
    run_study(make_study(agents=("oracle",), trees=("2",), seeds=3), run)
    (run / "episodes" / "paper2_oracle_f0_s2.jsonl").unlink()
    done = inquitree("pack", run)
    assert (done.status, done.out) == (0, "")
    assert "without a row in the table: paper2_oracle_f0_s2.jsonl" in done.said
    assert f"written: {tmp_path / 'run.zip'}, 2 episodes, 6 files" in done.said
    found = json.loads(inquitree("pack", run, "--out", tmp_path / "o.zip", "--licence", "cc0-1.0", "--json").out)
    assert (found["file"], found["episodes"]) == (str(tmp_path / "o.zip"), 2)
    assert found["unscored"] == ["paper2_oracle_f0_s2.jsonl"]
    assert found["files"]["run.json"]["size"] > 0
    done = inquitree("unpack", tmp_path / "run.zip", "--out", tmp_path / "a", "--check")
    assert (done.status, done.out) == (0, "")
    assert "checked: 6 files as manifest.json lists them" in done.said
    assert "checked: the episodes have the scores of the table" in done.said
    assert f"written: {tmp_path / 'a'}" in done.said
    assert inquitree("report", tmp_path / "a").status == 0
    done = inquitree("unpack", tmp_path / "run.zip", "--out", tmp_path / "b")
    assert "the scores of the table" not in done.said
    assert (tmp_path / "b" / "README.md").is_file()


def test_unpack_checks_alone_and_refuses_what_is_changed(inquitree: Inquitree, tmp_path: Path):
    run = tmp_path / "run"
    run_study(make_study(agents=("oracle",), trees=("2",), seeds=1), run)
    inquitree("pack", run, "--judge", "local")
    before = sorted(tmp_path.iterdir())
    done = inquitree("unpack", tmp_path / "run.zip", "--check")
    assert (done.status, done.out) == (0, "")
    assert sorted(tmp_path.iterdir()) == before
    done = inquitree("unpack", tmp_path / "run.zip")
    assert (done.status, "unpack takes --out with a new folder, --check" in done.said) == (2, True)
    file = tmp_path / "run.zip"
    with zipfile.ZipFile(file) as archive:
        contents = {name: archive.read(name) for name in archive.namelist() if name != "manifest.json"}
    contents[ROWS] = contents[ROWS].replace(b'"seed": 0', b'"seed": 1')
    write_archive(tmp_path / "other.zip", contents.items())
    done = inquitree("unpack", tmp_path / "other.zip", "--check")
    assert done.status == 2
    assert "the episodes have other scores than the table: paper2_oracle_f0_s0: seed was 1, now 0" in done.said
    whole = file.read_bytes()
    at = whole.index(b"paper2_oracle") + 100
    file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    done = inquitree("unpack", file, "--out", tmp_path / "out")
    assert done.status == 2
    assert len(done.err.splitlines()) == 1
    assert "is no whole archive of inquitree pack" in done.said
    assert not (tmp_path / "out").exists()


@pytest.mark.e2e
def test_the_commands_of_the_page_work_in_their_order(
    inquitree: Inquitree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    page = (Path(__file__).parents[2] / "docs" / "runs.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ inquitree (.+)$", page, flags=re.MULTILINE)
    assert len(commands) >= 10
    monkeypatch.chdir(tmp_path)
    said = {}
    for command in commands:
        done = inquitree(*command.split())
        assert done.status == 0, done.err
        said[command] = done.said
    assert "added to the run: 4 episodes; seeds 3, 4" in said[commands[1]]
    for told in re.findall(r"`(added to the run: .+?)`", page):
        assert any(told in each for each in said.values())
    refused = inquitree("run", "--agent", "random", "--papers", "8", "--max-turns", "3n", "--out", "runs/mine")
    assert refused.said in page
