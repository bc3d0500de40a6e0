"""Running a study into a folder, and going on where it stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inquitree_gym.embeddings import MiniLMEmbedder
from inquitree_gym.errors import LogError
from inquitree_gym.experiments import RunSummary, Study, run_study
from inquitree_gym.experiments.runner import read_manifest
from inquitree_gym.experiments.study import make_study
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.trees import dump_tree
from tests.strategies import make_tree


def logs(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (folder / "episodes").iterdir()}


def episodes(folder: Path) -> dict[str, Episode]:
    return {file.name: read_episode(file) for file in (folder / "episodes").iterdir()}


@pytest.fixture(scope="module")
def study() -> Study:
    return make_study(agents=("random", "oracle"), trees=("paper8", "paper12"), fake_levels=(0, 6), seeds=2)


@pytest.fixture
def run(study: Study, tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "mine"
    assert run_study(study, folder) == RunSummary(played=16, found=0)
    return folder


def test_every_episode_is_logged_as_the_study_says(study: Study, run: Path):
    found = episodes(run)
    assert sorted(found) == sorted(cell.file_name for cell in study.cells())
    for cell in study.cells():
        header = found[cell.file_name].header
        assert (header.agent["name"], header.tree.id, header.seed) == (cell.agent, cell.tree, cell.seed)
        assert header.rules["fake_level"] == cell.fake_level
        assert found[cell.file_name].status == "concluded"
    assert read_manifest(run) == study


def test_the_same_command_again_plays_nothing(study: Study, run: Path):
    before = logs(run), (run / "run.json").read_bytes()
    assert run_study(study, str(run)) == RunSummary(played=0, found=16)
    assert (logs(run), (run / "run.json").read_bytes()) == before


def test_missing_and_torn_episodes_are_finished(study: Study, run: Path):
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
    assert run_study(study, run, lambda cell, played: told.append((cell.file_name, played))) == RunSummary(5, 11)
    assert dict(told) == {name: name in names[:5] for name in names}
    assert len(told) == 16
    after = episodes(run)
    assert {name: episode.fingerprint for name, episode in after.items()} == {
        name: episode.fingerprint for name, episode in whole.items()
    }
    assert (place / names[4]).read_bytes().startswith(b"".join(lines[:4])), "logged turns were written anew"


def test_a_lost_episodes_folder_is_made_again(study: Study, run: Path):
    for file in (run / "episodes").iterdir():
        file.unlink()
    (run / "episodes").rmdir()
    assert run_study(study, run).played == 16


@pytest.mark.parametrize("change", [{"seeds": 3}, {"agents": ("random",)}, {"max_turns": "3n"}, {"threshold": 0.4}])
def test_another_study_in_the_folder_is_refused(study: Study, tmp_path: Path, change: dict):
    small = study.model_copy(update={"trees": ("paper8",), "fake_levels": (0,), "seeds": 1})
    run_study(small, tmp_path)
    before = logs(tmp_path)
    with pytest.raises(LogError, match="holds the run of another study; choose another folder with --out") as caught:
        run_study(small.model_copy(update=change), tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert logs(tmp_path) == before


def test_a_folder_that_cannot_be_written_is_told(study: Study, tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(LogError, match=rf"cannot write to '{folder}': .*; choose another folder with --out"):
            run_study(study, folder)
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize(
    "manifest", [None, "", "{", "[]", "{}", '{"study": {}}', '{"study": {"agents": ["nobody"]}}', "\xff"]
)
def test_a_folder_without_a_readable_manifest_is_no_run(tmp_path: Path, manifest: str | None):
    if manifest is not None:
        (tmp_path / "run.json").write_text(manifest, encoding="latin-1")
    with pytest.raises(LogError, match=r"is no run folder: cannot read run\.json"):
        read_manifest(tmp_path)


def test_a_damaged_log_is_named_and_left_as_it_is(study: Study, run: Path):
    file = run / "episodes" / "paper8_random_f0_s0.jsonl"
    lines = file.read_bytes().split(b"\n")
    lines[2] = b"noise"
    file.write_bytes(b"\n".join(lines))
    with pytest.raises(LogError, match=r"paper8_random_f0_s0\.jsonl', line 3"):
        run_study(study, run)
    assert file.read_bytes() == b"\n".join(lines)


def test_options_reach_every_episode(minilm: MiniLMEmbedder, tmp_path: Path):
    study = make_study(
        agents=("worst-case", "retrieval"), trees=("paper8",), fake_levels=(9,), seeds=1, max_turns="3n", threshold=0.3
    )
    run_study(study, tmp_path)
    for episode in episodes(tmp_path).values():
        assert episode.header.rules["max_turns"] == 15
        assert episode.header.rules["threshold"] == 0.3
        assert episode.header.embedder.name == minilm.name
        assert len(episode.turns) <= 16


def test_a_run_over_a_tree_of_ones_own(minilm: MiniLMEmbedder, tmp_path: Path):
    file = tmp_path / "mine.json"
    file.write_text(dump_tree(make_tree([[], [0]], [1, 2], tree_id="mine")))
    study = make_study(agents=("oracle",), trees=(str(file),), seeds=2, max_turns=None)
    assert run_study(study, tmp_path / "run").played == 2
    found = episodes(tmp_path / "run")
    assert set(found) == {"mine_oracle_f0_s0.jsonl", "mine_oracle_f0_s1.jsonl"}
    assert all(episode.footer.turns == 7 for episode in found.values())
    assert json.loads((tmp_path / "run" / "run.json").read_text())["study"]["max_turns"] is None


def test_one_episode_can_be_played_by_itself(study: Study, run: Path, tmp_path: Path):
    """An episode depends on its cell alone, and on nothing that was played before it."""
    one = study.model_copy(update={"trees": ("paper12",), "agents": ("random",), "fake_levels": (6,)})
    run_study(one, tmp_path / "one")
    whole = episodes(run)
    for name, episode in episodes(tmp_path / "one").items():
        assert episode.fingerprint == whole[name].fingerprint
