"""Running a study into a folder, and going on where it stopped."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.errors import EmbedderError, LogError
from inquitree_gym.llm import Budget, SystemClock
from inquitree_gym.runner import Outcome, RunOptions, RunSummary, StudyConfig, run_study
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.services import StopConditions
from inquitree_gym.runs.folder import load_manifest, log_file
from tests.runner.played import episodes, logs

DIFFERS = r"cannot add to .*: {}; a run has one setting of each, so choose another folder with --out"


def changed(study: StudyConfig, **settings: Any) -> StudyConfig:
    """The study with other settings, of its own or of its kind."""
    own = {name: settings.pop(name) for name in [*settings] if name in StudyConfig.model_fields}
    return study.model_copy(update={**own, "settings": study.settings.model_copy(update=settings)})


@pytest.fixture(scope="module")
def study() -> StudyConfig:
    return make_study(agents=("random", "oracle"), trees=("paper2", "paper8"), fake_level=(0, 6), seeds=1)


@pytest.fixture(scope="module")
def played(study: StudyConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is not to be changed."""
    folder = tmp_path_factory.mktemp("runs") / "mine"
    assert run_study(study, folder) == RunSummary(played=8, found=0)
    return folder


@pytest.fixture
def run(played: Path, tmp_path: Path) -> Path:
    return shutil.copytree(played, tmp_path / "mine")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"max_turns": "5n"}, "the run has max_turns=3n, this study max_turns=5n"),
        ({"threshold": 0.4, "seeds": 3}, r"the run has threshold=0\.\d+, this study threshold=0\.4"),
        (
            {"embedder": "all-MiniLM-L6-v2"},
            "the run has embedder=inquitree-reader-2, this study embedder=all-MiniLM-L6-v2"
            r"(; the run has threshold=0\.\d+, this study threshold=0\.\d+)?",  # hashed words have one threshold
        ),
        ({"rules": {"feedback": "hint"}}, "the run has rules feedback=reason, this study rules feedback=hint"),
    ],
)
def test_another_study_in_the_folder_is_refused(study: StudyConfig, tmp_path: Path, change: dict, told: str):
    small = changed(study, trees=("paper8",), fake_level=(0,), seeds=1)
    run_study(small, tmp_path)
    before = logs(tmp_path)
    with pytest.raises(LogError, match=DIFFERS.format(told)) as caught:
        run_study(changed(small, **change), tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert logs(tmp_path) == before


def test_a_folder_in_which_nothing_was_begun_takes_another_study(study: StudyConfig, tmp_path: Path):
    small = changed(study, trees=("paper8",), fake_level=(0,), seeds=1)
    stop = StopConditions()
    stop.stop("not yet")
    assert run_study(small, tmp_path, stop=stop).left == 2
    other = small.model_copy(update={"trees": ("paper12",)})
    assert run_study(other, tmp_path).played == 2
    assert load_manifest(tmp_path).studies == (other,)


def test_a_folder_that_cannot_be_written_is_told(study: StudyConfig, tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(LogError, match=rf"cannot write to '{folder}': .*; choose another folder with --out"):
            run_study(study, folder)
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize(
    "manifest",
    [
        None, "", "{", "[]", "{}", '{"studies": []}', '{"studies": [{"agents": ["nobody"]}]}', "\xff", "[" * 100_000,
        '{"studies": [{"agents": ["random"], "seeds": 1000000000}]}',
    ],
)  # fmt: skip
def test_a_folder_without_a_readable_manifest_is_no_run(tmp_path: Path, manifest: str | None):
    if manifest is not None:
        (tmp_path / "run.json").write_text(manifest, encoding="latin-1")
    with pytest.raises(LogError, match=r"is no run folder: cannot read .*run\.json"):
        load_manifest(tmp_path)


def test_logs_that_are_damaged_or_were_begun_otherwise_are_named_and_left_and_the_others_go_on(
    study: StudyConfig, run: Path
):
    damaged, other = (run / "episodes" / f"paper8_{agent}_f0_s0.jsonl" for agent in ("random", "oracle"))
    lines = damaged.read_bytes().split(b"\n")
    lines[2] = b"noise"
    damaged.write_bytes(b"\n".join(lines))
    begun = other.read_text().splitlines(keepends=True)
    other.write_text("".join([re.sub('"threshold":0.[0-9]+', '"threshold":0.3', begun[0]), *begun[1:3]]))
    (run / "episodes" / "paper2_oracle_f6_s0.jsonl").unlink()
    summary = run_study(study, run)
    assert (summary.played, summary.found, summary.left, summary.is_complete) == (1, 5, 0, False)
    told = {failed.spec.file_name: failed.error for failed in summary.failures}
    assert told.keys() == {damaged.name, other.name}
    assert "paper8_random_f0_s0.jsonl', line 3" in told[damaged.name]
    assert "recorded settings differ" in told[other.name]
    assert damaged.read_bytes() == b"\n".join(lines)


def test_torn_episodes_are_finished_before_missing_ones_begin(study: StudyConfig, run: Path):
    first, *_, last = study.specs()
    log_file(run, first).unlink()
    torn = log_file(run, last)
    torn.write_bytes(b"".join(torn.read_bytes().splitlines(keepends=True)[:-1]))
    played: list[object] = []
    run_study(study, run, on_outcome=lambda it: played.append(it.spec) if it.status == "played" else None)
    assert played == [last, first]


def test_a_run_can_be_ended_and_goes_on(study: StudyConfig, tmp_path: Path):
    reasons: list[str] = []
    stop, told = StopConditions(on_stop=reasons.append), []

    def tell(outcome: Outcome) -> None:
        told.append(outcome)
        if len(told) == 3:
            stop.stop("enough for today")
            stop.stop("and again")

    summary = run_study(study, tmp_path, on_outcome=tell, stop=stop)
    assert summary == RunSummary(played=3, found=0, left=5, ended="enough for today")
    assert (reasons, len(logs(tmp_path)), len(told)) == (["enough for today"], 3, 3)
    assert run_study(study, tmp_path) == RunSummary(played=5, found=3)


def test_a_cap_on_time_holds_for_agents_without_a_model_too(study: StudyConfig, tmp_path: Path):
    class Hours(SystemClock):
        passed = 0.0

        def now(self) -> float:
            Hours.passed += 1800
            return Hours.passed

    summary = run_study(study, tmp_path, RunOptions(budget=Budget(max_seconds=7200, clock=Hours())))
    assert 1 <= summary.played == 8 - summary.left < 8
    assert "the cap of 7200 seconds is reached" in summary.ended
    assert len(logs(tmp_path)) == summary.played


def test_a_run_works_where_an_event_loop_runs_already(study: StudyConfig, tmp_path: Path):
    async def as_in_a_notebook() -> RunSummary:
        return run_study(study.model_copy(update={"trees": ("paper8",)}), tmp_path)

    assert asyncio.run(as_in_a_notebook()).played == 4


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user who cannot write everywhere")
def test_a_run_whose_folder_cannot_be_written_any_more_says_so(study: StudyConfig, run: Path):
    (run / "episodes" / "paper2_oracle_f6_s0.jsonl").unlink()
    (run / "episodes").chmod(0o500)
    try:
        assert "cannot write" in run_study(study, run).failures[0].error
    finally:
        (run / "episodes").chmod(0o700)
    assert run_study(study, run).played == 1


def test_the_device_is_no_part_of_the_study(tmp_path: Path):
    study = make_study(agents=("retrieval",), trees=("paper2",), seeds=1)
    run_study(study, tmp_path / "cpu", RunOptions(device="cpu"))
    run_study(study, tmp_path / "auto", RunOptions(device="auto"))
    one, other = (episodes(tmp_path / name)["paper2_retrieval_f0_s0.jsonl"] for name in ("cpu", "auto"))
    assert one.fingerprint == other.fingerprint
    assert one.header.setup.embedder == other.header.setup.embedder
    assert run_study(study, tmp_path / "cpu", RunOptions(device="auto")).found == 1


def test_a_device_that_the_embedder_cannot_take_is_refused_before_anything_is_written(tmp_path: Path):
    study = make_study(agents=("oracle",), trees=("paper2",), embedder="litellm:some-model", threshold=0.4)
    with pytest.raises(EmbedderError, match="'litellm:some-model' does not run on a CUDA device"):
        run_study(study, tmp_path / "run", RunOptions(device="cuda"))
    assert not (tmp_path / "run").exists()
