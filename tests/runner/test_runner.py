"""Running a study into a folder, and going on where it stopped."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path

import pytest

from inquitree_gym.embeddings import DEFAULT_EMBEDDER, MiniLMEmbedder
from inquitree_gym.errors import EmbedderError, LogError, OptionError
from inquitree_gym.llm import Budget, SystemClock
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.runner import Outcome, RunOptions, RunSummary, StudyConfig, run_study
from inquitree_gym.runner.folder import read_manifest
from inquitree_gym.runner.models import StopConditions
from inquitree_gym.runner.study import make_study
from inquitree_gym.trees import dump_tree
from tests.strategies import make_tree
from tests.test_independence import written_before

DIFFERS = r"cannot add to .*: {}; a run has one setting of each, so choose another folder with --out"


def logs(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (folder / "episodes").iterdir()}


def episodes(folder: Path) -> dict[str, Episode]:
    return {file.name: read_episode(file) for file in (folder / "episodes").iterdir()}


@pytest.fixture(scope="module")
def study() -> StudyConfig:
    return make_study(agents=("random", "oracle"), trees=("paper8", "paper12"), fake_levels=(0, 6), seeds=2)


@pytest.fixture
def run(study: StudyConfig, tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "mine"
    assert run_study(study, folder) == RunSummary(played=16, found=0)
    return folder


def test_every_episode_is_logged_as_the_study_says(study: StudyConfig, run: Path):
    found = episodes(run)
    assert sorted(found) == sorted(cell.file_name for cell in study.specs())
    for cell in study.specs():
        header = found[cell.file_name].header
        assert (header.agent["name"], header.task.id, header.seed) == (cell.agent, cell.tree, cell.seed)
        assert header.rules["fake_level"] == cell.fake_level
        assert found[cell.file_name].status == "concluded"
    assert read_manifest(run) == study


def test_the_same_command_again_plays_nothing(study: StudyConfig, run: Path):
    before = logs(run), (run / "run.json").read_bytes()
    assert run_study(study, str(run)) == RunSummary(played=0, found=16)
    assert (logs(run), (run / "run.json").read_bytes()) == before


def test_missing_and_torn_episodes_are_finished(study: StudyConfig, run: Path):
    whole = episodes(run)
    names = sorted(whole)
    content = logs(run)
    place = run / "episodes"
    (place / names[0]).unlink()
    (place / names[1]).write_bytes(b"")
    (place / names[2]).write_bytes(content[names[2]][:30])
    (place / names[3]).write_bytes(content[names[3]][:-1])
    lines = content[names[4]].splitlines(keepends=True)
    (place / names[4]).write_bytes(b"".join(lines[:4]) + lines[4][:99])
    told = []
    assert run_study(study, run, on_outcome=told.append) == RunSummary(5, 11)
    assert {outcome.spec.file_name: outcome.status for outcome in told} == {
        name: "played" if name in names[:5] else "found" for name in names
    }
    assert len(told) == 16
    after = episodes(run)
    assert {name: episode.fingerprint for name, episode in after.items()} == {
        name: episode.fingerprint for name, episode in whole.items()
    }
    assert (place / names[4]).read_bytes().startswith(b"".join(lines[:4])), "logged turns were written anew"


def test_a_lost_episodes_folder_is_made_again(study: StudyConfig, run: Path):
    for file in (run / "episodes").iterdir():
        file.unlink()
    (run / "episodes").rmdir()
    assert run_study(study, run).played == 16


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"max_turns": "3n"}, "max_turns is default there and 3n here"),
        ({"threshold": 0.4, "seeds": 3}, r"threshold is 0\.\d+ there and 0\.4 here"),
        ({"embedder": "all-MiniLM-L6-v2"}, "embedder is inquitree-reader-1 there and all-MiniLM-L6-v2 here"),
        ({"rules": {"on_tie": "ask"}}, "rules on_tie is nearest there and ask here"),
    ],
)
def test_another_study_in_the_folder_is_refused(study: StudyConfig, tmp_path: Path, change: dict, told: str):
    small = study.model_copy(update={"trees": ("paper8",), "fake_levels": (0,), "seeds": 1})
    run_study(small, tmp_path)
    before = logs(tmp_path)
    with pytest.raises(LogError, match=DIFFERS.format(told)) as caught:
        run_study(small.model_copy(update=change), tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert logs(tmp_path) == before


def test_a_folder_in_which_nothing_was_begun_takes_another_study(study: StudyConfig, tmp_path: Path):
    small = study.model_copy(update={"trees": ("paper8",), "fake_levels": (0,), "seeds": 1})
    stop = StopConditions()
    stop.stop("not yet")
    assert run_study(small, tmp_path, stop=stop).left == 2
    other = small.model_copy(update={"trees": ("paper12",)})
    assert run_study(other, tmp_path).played == 2
    assert read_manifest(tmp_path) == other


def test_a_folder_that_cannot_be_written_is_told(study: StudyConfig, tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(LogError, match=rf"cannot write to '{folder}': .*; choose another folder with --out"):
            run_study(study, folder)
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize(
    "manifest",
    [
        None, "", "{", "[]", "{}", '{"study": {}}', '{"study": {"agents": ["nobody"]}}', "\xff", "[" * 100_000,
        '{"study": {"agents": ["random"], "seeds": 1000000000}}',
    ],
)  # fmt: skip
def test_a_folder_without_a_readable_manifest_is_no_run(tmp_path: Path, manifest: str | None):
    if manifest is not None:
        (tmp_path / "run.json").write_text(manifest, encoding="latin-1")
    with pytest.raises(LogError, match=r"is no run folder: cannot read run\.json"):
        read_manifest(tmp_path)


def test_a_run_of_an_earlier_release_is_read_and_goes_on(study: StudyConfig, run: Path):
    file = run / "run.json"
    manifest = json.loads(file.read_text())
    del manifest["study"]["models"]
    file.write_text(json.dumps(manifest))
    (run / "run.lock").unlink()
    (run / "episodes" / "paper8_random_f0_s0.jsonl").unlink()
    assert read_manifest(run) == study
    assert run_study(study, run) == RunSummary(played=1, found=15)


def test_a_torn_log_of_an_earlier_release_goes_on_under_its_own_rules(study: StudyConfig, tmp_path: Path):
    former = study.model_copy(update={"rules": {"fake_key": 1, "bare_decisions": False}})
    assert run_study(former, tmp_path) == RunSummary(played=16, found=0)
    whole = episodes(tmp_path)
    manifest = json.loads((tmp_path / "run.json").read_text())
    manifest["study"]["rules"] = {}
    (tmp_path / "run.json").write_text(json.dumps(manifest))
    for file in (tmp_path / "episodes").glob("*_f6_s1.jsonl"):
        written_before(file, 5)
    assert run_study(study, tmp_path) == RunSummary(played=4, found=12)
    assert {name: each.actions for name, each in episodes(tmp_path).items()} == {
        name: each.actions for name, each in whole.items()
    }


def test_a_damaged_log_is_named_and_left_as_it_is_and_the_others_go_on(study: StudyConfig, run: Path):
    file = run / "episodes" / "paper8_random_f0_s0.jsonl"
    lines = file.read_bytes().split(b"\n")
    lines[2] = b"noise"
    file.write_bytes(b"\n".join(lines))
    (run / "episodes" / "paper12_oracle_f6_s1.jsonl").unlink()
    summary = run_study(study, run)
    assert (summary.played, summary.found, summary.left, summary.is_complete) == (1, 14, 0, False)
    (failed,) = summary.failures
    assert (failed.spec.file_name, failed.status) == (file.name, "failed")
    assert "paper8_random_f0_s0.jsonl', line 3" in failed.error
    assert file.read_bytes() == b"\n".join(lines)


def test_a_log_that_was_begun_otherwise_fails_alone(study: StudyConfig, run: Path):
    file = run / "episodes" / "paper8_random_f0_s0.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([re.sub('"threshold":0.[0-9]+', '"threshold":0.3', lines[0]), *lines[1:3]]))
    summary = run_study(study, run)
    assert (summary.played, summary.found) == (0, 15)
    assert "recorded settings differ" in summary.failures[0].error


def test_a_run_can_be_ended_and_goes_on(study: StudyConfig, tmp_path: Path):
    reasons: list[str] = []
    stop, told = StopConditions(on_stop=reasons.append), []

    def tell(outcome: Outcome) -> None:
        told.append(outcome)
        if len(told) == 3:
            stop.stop("enough for today")
            stop.stop("and again")

    summary = run_study(study, tmp_path, on_outcome=tell, stop=stop)
    assert summary == RunSummary(played=3, found=0, left=13, ended="enough for today")
    assert (reasons, len(logs(tmp_path)), len(told)) == (["enough for today"], 3, 3)
    assert run_study(study, tmp_path) == RunSummary(played=13, found=3)


def test_a_cap_on_time_holds_for_agents_without_a_model_too(study: StudyConfig, tmp_path: Path):
    class Hours(SystemClock):
        passed = 0.0

        def now(self) -> float:
            Hours.passed += 1800
            return Hours.passed

    summary = run_study(study, tmp_path, RunOptions(budget=Budget(max_seconds=7200, clock=Hours())))
    assert 1 <= summary.played < 16
    assert summary.left == 16 - summary.played
    assert "the cap of 7200 seconds is reached" in summary.ended
    assert len(logs(tmp_path)) == summary.played


def test_a_run_works_where_an_event_loop_runs_already(study: StudyConfig, tmp_path: Path):
    async def as_in_a_notebook() -> RunSummary:
        return run_study(study.model_copy(update={"trees": ("paper8",)}), tmp_path)

    assert asyncio.run(as_in_a_notebook()).played == 8


def test_a_folder_is_one_process_s_at_a_time(study: StudyConfig, run: Path):
    fcntl = pytest.importorskip("fcntl")
    with (run / "run.lock").open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(LogError, match=r"another process is running in .*; wait until it is done, or choose"):
            run_study(study, run)
    assert run_study(study, run).found == 16


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user who cannot write everywhere")
def test_a_run_whose_folder_cannot_be_written_any_more_says_so(study: StudyConfig, run: Path):
    (run / "episodes" / "paper12_oracle_f6_s1.jsonl").unlink()
    (run / "episodes").chmod(0o500)
    try:
        assert "cannot write" in run_study(study, run).failures[0].error
    finally:
        (run / "episodes").chmod(0o700)
    assert run_study(study, run).played == 1


@pytest.mark.parametrize("max_concurrency", [0, -3])
def test_episodes_at_once_are_one_at_least(study: StudyConfig, tmp_path: Path, max_concurrency: int):
    with pytest.raises(OptionError, match=f"max_concurrency is a whole number from 1, not {max_concurrency}"):
        run_study(study, tmp_path / "run", RunOptions(max_concurrency=max_concurrency))
    assert not (tmp_path / "run").exists()


def test_options_reach_every_episode(tmp_path: Path):
    study = make_study(
        agents=("worst-case", "retrieval"), trees=("paper8",), fake_levels=(9,), seeds=1, max_turns="3n", threshold=0.3
    )
    run_study(study, tmp_path)
    for episode in episodes(tmp_path).values():
        assert episode.header.rules["max_turns"] == 15
        assert episode.header.rules["threshold"] == 0.3
        assert episode.header.embedder.name == DEFAULT_EMBEDDER
        assert len(episode.turns) <= 16


def test_the_device_is_no_part_of_the_study(tmp_path: Path):
    study = make_study(agents=("retrieval",), trees=("paper2",), seeds=1)
    run_study(study, tmp_path / "cpu", RunOptions(device="cpu"))
    run_study(study, tmp_path / "auto", RunOptions(device="auto"))
    one, other = (episodes(tmp_path / name)["paper2_retrieval_f0_s0.jsonl"] for name in ("cpu", "auto"))
    assert one.fingerprint == other.fingerprint
    assert one.header.embedder == other.header.embedder
    assert run_study(study, tmp_path / "cpu", RunOptions(device="auto")).found == 1


@pytest.mark.weights
def test_a_run_on_cuda_without_a_device_ends_with_the_reason_and_goes_on_elsewhere(tmp_path: Path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    study = make_study(agents=("retrieval",), trees=("paper2",), seeds=1)
    with pytest.raises(EmbedderError, match="device='cuda' needs a CUDA device"):
        run_study(study, tmp_path, RunOptions(device="cuda"))
    assert run_study(study, tmp_path).played == 1


def test_a_device_that_the_embedder_cannot_take_is_refused_before_anything_is_written(tmp_path: Path):
    study = make_study(agents=("oracle",), trees=("paper2",), embedder="litellm:some-model", threshold=0.4)
    with pytest.raises(EmbedderError, match="'litellm:some-model' does not run on a CUDA device"):
        run_study(study, tmp_path / "run", RunOptions(device="cuda"))
    assert not (tmp_path / "run").exists()


@pytest.mark.weights
def test_a_run_over_a_tree_of_ones_own(minilm: MiniLMEmbedder, tmp_path: Path):
    file = tmp_path / "mine.json"
    file.write_text(dump_tree(make_tree([[], [0]], [1, 2], tree_id="mine")))
    study = make_study(agents=("oracle",), trees=(str(file),), seeds=2, max_turns=None)
    assert run_study(study, tmp_path / "run").played == 2
    found = episodes(tmp_path / "run")
    assert set(found) == {"mine_oracle_f0_s0.jsonl", "mine_oracle_f0_s1.jsonl"}
    assert all(episode.footer.turns == 7 for episode in found.values())
    assert json.loads((tmp_path / "run" / "run.json").read_text())["study"]["max_turns"] is None


def test_one_episode_can_be_played_by_itself(study: StudyConfig, run: Path, tmp_path: Path):
    """An episode depends on its cell alone, and on nothing that was played before it."""
    one = study.model_copy(update={"trees": ("paper12",), "agents": ("random",), "fake_levels": (6,)})
    run_study(one, tmp_path / "one")
    whole = episodes(run)
    for name, episode in episodes(tmp_path / "one").items():
        assert episode.fingerprint == whole[name].fingerprint
