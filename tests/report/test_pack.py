"""Packed runs: what is in them, and that they are worth the same elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from inquitree_gym.analysis import load_run, summarise
from inquitree_gym.errors import LogError, OptionError, PackError
from inquitree_gym.judges import Judgement, JudgementFile, Verdict
from inquitree_gym.log import read_episode
from inquitree_gym.report.pack import CARD, ROWS, check_rows, pack_run
from inquitree_gym.runner import StudyConfig, run_study
from inquitree_gym.runner.archive import PACK_MANIFEST, unpack
from inquitree_gym.runner.study import make_study
from inquitree_gym.scoring.trajectory import read_trajectory
from inquitree_gym.trees import dump_tree, load_tree
from inquitree_gym.trees.fields import CANARY
from tests.strategies import make_tree

SECRET = "correct-horse-battery-staple"


@pytest.fixture
def study(tmp_path: Path) -> StudyConfig:
    file = tmp_path / "own" / "mine.json"
    file.parent.mkdir()
    file.write_text(dump_tree(make_tree([[], [0]], [1, 1], tree_id="mine")))
    return make_study(agents=("oracle", "random"), trees=(str(file), "2"), fake_levels=(0, 6), seeds=2)


@pytest.fixture
def run(study: StudyConfig, tmp_path: Path) -> Path:
    run_study(study, tmp_path / "run")
    return tmp_path / "run"


def rows_of(file: Path) -> list[dict[str, object]]:
    with zipfile.ZipFile(file) as archive:
        return [json.loads(line) for line in archive.read(ROWS).splitlines()]


def test_an_unpacked_run_is_worth_the_same_without_its_trees(run: Path, tmp_path: Path):
    expected = summarise(load_run(run).scores)
    summary = pack_run(run, tmp_path / "run.zip")
    assert (summary.episodes, summary.unscored, summary.scrubbed) == (16, (), ())
    (tmp_path / "own" / "mine.json").unlink()
    run.rename(tmp_path / "gone")
    out = tmp_path / "elsewhere" / "again"
    unpack(tmp_path / "run.zip", out)
    found = load_run(out)
    assert (summarise(found.scores), found.missing) == (expected, [])
    assert check_rows(out) == []


@pytest.mark.e2e
def test_the_same_numbers_come_out_of_another_process(run: Path, tmp_path: Path):
    """A process in another folder, which knows no tree of the user, reports an unpacked run."""

    def report(folder: Path, cwd: Path) -> dict[str, object]:
        command = [sys.executable, "-c", "from inquitree_gym.cli import main; main()", "report", folder, "--json"]
        env = {name: value for name, value in os.environ.items() if name != "INQUITREE_TREES"}
        done = subprocess.run(command, capture_output=True, check=True, cwd=cwd, env=env, text=True)
        found: dict[str, object] = json.loads(done.stdout)
        return found

    pack_run(run, tmp_path / "run.zip")
    unpack(tmp_path / "run.zip", tmp_path / "other" / "place")
    before = report(run, tmp_path)
    (tmp_path / "own" / "mine.json").unlink()
    assert report(tmp_path / "other" / "place", tmp_path / "other") == before


def test_the_same_run_gives_the_same_bytes(run: Path, tmp_path: Path):
    pack_run(run, tmp_path / "one.zip")
    unpack(tmp_path / "one.zip", tmp_path / "again")
    pack_run(tmp_path / "again", tmp_path / "other.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "other.zip").read_bytes()


def test_the_table_is_flat_and_its_columns_have_one_type(run: Path, tmp_path: Path):
    pack_run(run, tmp_path / "run.zip")
    rows = rows_of(tmp_path / "run.zip")
    assert [tuple(row) for row in rows] == [tuple(rows[0])] * 16
    for name in rows[0]:
        assert len({type(row[name]) for row in rows} - {type(None)}) <= 1, name
        assert not {type(row[name]) for row in rows} & {dict, list}, name
    scores = {each.file.stem: each.score for each in load_run(run).episodes}
    for row in rows:
        score = scores[row["key"]]
        assert (row["tree"], row["agent"], row["seed"], row["fake_level"]) == (
            score.tree, score.agent, score.seed, score.fake_level,
        )  # fmt: skip
        assert (row["quality_share"], row["hits"]) == (score.quality_share, score.trajectory.hit_rate)
        log = read_episode(run / "episodes" / f"{row['key']}.jsonl")
        assert (row["fingerprint"], row["tree_digest"]) == (log.fingerprint, log.header.task.digest)
        assert row["canary"] == CANARY


def test_the_card_has_a_header_for_hubs_and_says_what_is_in_it(run: Path, tmp_path: Path):
    pack_run(run, tmp_path / "run.zip", licence="cc-by-4.0")
    with zipfile.ZipFile(tmp_path / "run.zip") as archive:
        card = archive.read(CARD).decode()
        manifest = json.loads(archive.read(PACK_MANIFEST))
        names = archive.namelist()
    header, body = card.removeprefix("---\n").split("\n---\n", 1)
    lines = header.splitlines()
    assert "license: cc-by-4.0" in lines
    assert "- n<1K" in lines
    assert lines[lines.index("- config_name: episodes") + 1] == f"  data_files: {ROWS}"
    digest = load_tree("paper2").digest
    for word in ("oracle", f"paper2 (`{digest[:12]}`)", "local v", "version of inquitree-gym", CANARY, "| random |"):
        assert word in body
    assert set(names) == {*manifest["files"], PACK_MANIFEST}
    assert f"trees/paper2@{digest[:12]}.json" in names
    with pytest.raises(OptionError, match="a licence is written as dataset hubs do"):
        pack_run(run, tmp_path / "other.zip", licence="All rights\nreserved: yes")


def test_no_secret_is_packed(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    key = "sk-proj-a1b2c3d4e5f6g7h8i9"
    log = run / "episodes" / "paper2_random_f0_s0.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"action":"', f'"action":"{SECRET} {key} '.encode(), 1))
    monkeypatch.setenv("MY_SERVICE_TOKEN", SECRET)
    summary = pack_run(run, tmp_path / "run.zip")
    assert summary.scrubbed == (f"episodes/{log.name}",)
    unpack(tmp_path / "run.zip", tmp_path / "out")
    for file in (tmp_path / "out").rglob("*.*"):
        assert not file.is_file() or not {SECRET, key} & set(file.read_text().replace('"', " ").split()), file
    assert "[MY_SERVICE_TOKEN] [key]" in (tmp_path / "out" / "episodes" / log.name).read_text()
    assert SECRET in log.read_text()


def test_unfinished_episodes_travel_and_damaged_ones_are_named(run: Path, tmp_path: Path):
    torn, damaged, missing = sorted((run / "episodes").iterdir())[:3]
    torn.write_bytes(torn.read_bytes()[:-40])
    damaged.write_bytes(damaged.read_bytes().replace(b'"kind":"turn"', b'"kind":"tarn"', 1))
    missing.unlink()
    summary = pack_run(run, tmp_path / "run.zip")
    assert (summary.episodes, sorted(summary.unscored)) == (13, sorted(each.name for each in (torn, damaged, missing)))
    unpack(tmp_path / "run.zip", tmp_path / "out")
    assert (tmp_path / "out" / "episodes" / torn.name).read_bytes() == torn.read_bytes()
    assert not (tmp_path / "out" / "episodes" / damaged.name).exists()


def test_judgements_travel_and_give_the_scores(run: Path, tmp_path: Path):
    with JudgementFile(run, "llm:m", {"version": 1}) as file:
        for log in sorted((run / "episodes").iterdir()):
            episode = read_episode(log)
            tree = load_tree(run / "trees" / f"{episode.header.task.id}@{episode.header.task.digest[:12]}.json")
            said = read_trajectory(episode, tree).conclusion
            file.add(log.name, tree, said, Judgement((Verdict(0.6, "partly"),) * len(tree.conclusions)))
    pack_run(run, tmp_path / "run.zip", judge="llm:m")
    assert {row["judged_by"] for row in rows_of(tmp_path / "run.zip")} == {"llm:m v1"}
    unpack(tmp_path / "run.zip", tmp_path / "out")
    assert check_rows(tmp_path / "out") == []
    expected = load_run(run, judge="llm:m").scores
    assert load_run(tmp_path / "out", judge="llm:m").scores == expected


def test_other_scores_than_those_of_the_episodes_are_found(run: Path, tmp_path: Path):
    pack_run(run, tmp_path / "run.zip")
    unpack(tmp_path / "run.zip", tmp_path / "out")
    rows = rows_of(tmp_path / "run.zip")
    rows[0]["coverage"] = 0.123
    file = tmp_path / "out" / ROWS
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[:-1]))
    told = check_rows(tmp_path / "out")
    assert len(told) == 2
    assert any(each.startswith(f"{rows[0]['key']}: coverage was 0.123, now ") for each in told)
    assert f"{rows[-1]['key']} is scored in one of the two only" in told
    file.write_text(json.dumps(rows[0] | {"judged_by": "local v1"}) + "\n")
    with pytest.raises(PackError, match=r"were judged by local v1, and this release judges by local v"):
        check_rows(tmp_path / "out")
    file.write_text("no table")
    with pytest.raises(PackError, match="cannot read"):
        check_rows(tmp_path / "out")


def test_only_a_run_is_packed(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(LogError, match=r"is no run folder: cannot read run\.json"):
        pack_run(tmp_path / "folder", tmp_path / "run.zip")
    assert not (tmp_path / "run.zip").exists()
