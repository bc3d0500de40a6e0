"""Runs that take in more: seeds, papers, levels, agents and models; and changed trees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.kinds import kind
from inquitree_gym.log import read_episode
from inquitree_gym.results.load import load_run
from inquitree_gym.results.viewer import view_run
from inquitree_gym.runner import RunOptions, RunSummary, run_study
from inquitree_gym.runs import folder as folder_module
from inquitree_gym.runs.folder import kept_task, load_manifest
from inquitree_gym.trees import Tree, dump_tree, load_tree, parse_tree
from tests.runner.played import logs, run_trees
from tests.runner.played import small_study as study
from tests.strategies import make_tree

GROWN = {
    "seeds": ({"seeds": 3}, "2 episodes; seeds 1, 2"),
    "first seed": ({"seeds": 2, "first_seed": 7}, "2 episodes; seeds 7, 8"),
    "papers": ({"trees": ("2", "8")}, "1 episode; trees paper8"),
    "levels": ({"fake_level": (0, 6)}, "1 episode; fake levels 6"),
    "agents": ({"agents": ("random",)}, "1 episode; agents random"),
}


@pytest.mark.parametrize("name", GROWN)
def test_a_run_takes_in_more_and_says_what(tmp_path: Path, name: str):
    change, told = GROWN[name]
    run_study(study(), tmp_path)
    before = logs(tmp_path)
    more = study(**change)
    summary = run_study(more, tmp_path)
    assert (summary.added, summary.is_complete) == (told, True)
    after = logs(tmp_path)
    assert {name: after[name] for name in before} == before
    assert set(after) == {spec.file_name for each in (study(), more) for spec in each.specs()}
    assert load_manifest(tmp_path).studies == (study(), more)
    for same in (
        more,
        study(),
        study(rules={"redo_turn": False}),
        study(threshold=load_embedder(DEFAULT_EMBEDDER).threshold),
    ):
        assert run_study(same, tmp_path) == RunSummary(played=0, found=sum(1 for _ in same.specs()))
    assert logs(tmp_path) == after


def test_a_run_that_was_not_asked_for_everything_misses_nothing(tmp_path: Path):
    """Two agents on two papers, each on its own: the union is no product."""
    run_study(study("oracle", trees=("2",)), tmp_path)
    run_study(study("random", trees=("8",), seeds=2), tmp_path)
    names = [spec.file_name for spec in load_manifest(tmp_path).specs]
    assert names == ["paper2_oracle_f0_s0.jsonl", "paper8_random_f0_s0.jsonl", "paper8_random_f0_s1.jsonl"]
    assert not load_run(tmp_path).missing
    run_study(study("oracle", "random", trees=("2", "8"), seeds=2), tmp_path)
    found = [spec.file_name for spec in load_manifest(tmp_path).specs]
    assert found[:3] == names
    assert len(found) == len(set(found)) == 8


def test_a_union_that_is_too_large_or_ambiguous_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run_study(study("oracle"), tmp_path)
    monkeypatch.setattr(folder_module, "MAX_EPISODES", 4)
    assert run_study(study("oracle", seeds=4), tmp_path).is_complete, "the same episode counts once"
    before = (tmp_path / "run.json").read_bytes()
    with pytest.raises(OptionError, match="6 episodes are more than the 1,000,000 of a study"):
        run_study(study("random", seeds=2), tmp_path)
    file = tmp_path / "own" / "paper2_llm.json"
    file.parent.mkdir()
    file.write_text(dump_tree(make_tree([[]], [1], tree_id="mine")))
    run_study(study("random", trees=(str(file),)), tmp_path / "other")
    with pytest.raises(OptionError, match=r"random on 'paper2_llm' and llm random on 'paper2' would share their logs"):
        run_study(study("llm", models=[{"model": "random", "base_url": "http://localhost:9/v1"}]), tmp_path / "other")
    assert (tmp_path / "run.json").read_bytes() == before


MANIFEST_FAULTS = {
    "a version of this package that never was": (
        {"format": "inquitree-run/9"},
        r"run\.json' has the format 'inquitree-run/9', and this release reads 'inquitree-run/2'; read the run with the",
    ),
    "no studies": ({"studies": []}, "studies: needs at least one entry"),
    "a tree without its version": ({"tasks": {}}, "tasks: the version of paper2 is missing"),
    "two kinds": (
        {"studies": [{"agents": ["oracle"]}, {"env": "projection", "agents": ["oracle"]}]},
        "studies: their kinds of environment differ",
    ),
}


@pytest.mark.parametrize("fault", MANIFEST_FAULTS)
def test_a_manifest_at_fault_is_told_in_one_line(tmp_path: Path, fault: str):
    change, told = MANIFEST_FAULTS[fault]
    run_study(study(), tmp_path)
    file = tmp_path / "run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(LogError, match=told) as caught:
        load_manifest(tmp_path)
    assert "\n" not in str(caught.value)
    with pytest.raises(LogError, match=told):
        run_study(study(seeds=2), tmp_path)


# Trees


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "own" / "mine.json"
    file.parent.mkdir()
    file.write_text(dump_tree(make_tree([[], [0]], [1, 1], tree_id="mine")))
    return file


def edit(file: Path) -> Tree:
    tree = load_tree(file)
    changed = tree.model_copy(update={"topic": f"{tree.topic} And since when?"})
    file.write_text(dump_tree(parse_tree(changed.model_dump_json().encode())))
    return load_tree(file)


def test_a_run_keeps_its_trees_and_is_read_without_them(tmp_path: Path, mine: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "run"
    monkeypatch.chdir(mine.parent)
    run_study(study(trees=("mine.json", "2")), folder)
    tree = load_tree(mine)
    expected = load_run(folder).scores
    mine.unlink()
    monkeypatch.chdir(tmp_path)
    moved = folder.rename(tmp_path / "elsewhere")
    assert [score.values for score in load_run(moved).scores] == [score.values for score in expected]
    assert run_trees(moved) == {"mine": tree, "paper2": load_tree("paper2")}
    assert kept_task(kind("inquiry"), moved, "mine", tree.digest) == tree
    assert kept_task(kind("inquiry"), moved, "mine", "0" * 64) is None
    assert kept_task(kind("inquiry"), moved, "../run", tree.digest) is None
    assert sorted(file.name for file in (moved / "tasks").iterdir()) == [
        f"{each.id}@{each.digest[:12]}.json" for each in (tree, load_tree("paper2"))
    ]
    assert view_run(moved).is_file()


def test_a_changed_tree_is_refused_unless_it_is_played_beside_the_former_one_or_nothing_of_it_is_left(
    tmp_path: Path, mine: Path
):
    folder = tmp_path / "run"
    run_study(study(trees=(str(mine),)), folder)
    first, before = load_tree(mine), logs(folder)
    second = edit(mine)
    told = (
        rf"cannot add to .*: mine has the digest {first.digest[:12]} there and {second.digest[:12]} here; .*"
        r"with --as-new-version, or choose another folder with --out"
    )
    with pytest.raises(LogError, match=told):
        run_study(study(trees=(str(mine), "2"), seeds=2), folder)
    assert logs(folder) == before
    summary = run_study(study(trees=(str(mine),)), folder, RunOptions(as_new_version=True))
    name = f"mine@{second.digest[:12]}"
    assert summary.added == f"1 episode; trees {name}"
    assert set(logs(folder)) == {"mine_oracle_f0_s0.jsonl", f"{name}_oracle_f0_s0.jsonl"}
    assert read_episode(folder / "episodes" / f"{name}_oracle_f0_s0.jsonl").header.task.digest == second.digest
    assert {score.task for score in load_run(folder).scores} == {"mine", name}
    assert run_study(study(trees=(str(mine),), seeds=2), folder).added == "1 episode; seeds 1", "known by now"
    mine.write_text(dump_tree(first))
    assert run_study(study(trees=(str(mine),)), folder) == RunSummary(played=0, found=1)
    alone = tmp_path / "alone"
    run_study(study(trees=(str(mine),)), alone)
    (alone / "episodes" / "mine_oracle_f0_s0.jsonl").unlink()
    changed = edit(mine)
    assert run_study(study(trees=(str(mine),)), alone).played == 1
    assert run_trees(alone)["mine"] == changed


def test_a_changed_or_lost_copy_is_told(tmp_path: Path, mine: Path):
    folder = tmp_path / "run"
    run_study(study(trees=(str(mine),)), folder)
    (copy,) = (folder / "tasks").iterdir()
    edit(copy)
    with pytest.raises(LogError, match=r"mine@.*' was changed: its digest is .*; bring the original copy back"):
        load_run(folder)
    copy.unlink()
    with pytest.raises(LogError, match=r"was played on mine with digest \w{12}, which is not at hand"):
        load_run(folder)
    with pytest.raises(LogError, match=r"lacks the copy of mine in tasks/; bring it back"):
        run_trees(folder)


# Templates


def test_templates_of_ones_own_are_kept_and_may_not_change(tmp_path: Path):
    own, folder = tmp_path / "prompts", tmp_path / "run"
    own.mkdir()
    (own / "start.md").write_text("Welcome. {{ topic }}\n\nPropose a subtopic.\n")
    run_study(study(prompts=str(own)), folder)
    (copy,) = (folder / "prompts").glob("*/*.md")
    assert copy.read_text() == (own / "start.md").read_text()
    assert load_manifest(folder).studies[0].prompts == copy.parent.relative_to(folder).as_posix()
    moved = own.rename(tmp_path / "renamed")
    assert run_study(study(prompts=str(moved), seeds=2), folder).added == "1 episode; seeds 1"
    first, second = (read_episode(folder / "episodes" / name) for name in sorted(logs(folder)))
    assert first.turns[0].observation.startswith("Welcome.")
    assert first.header.prompts == second.header.prompts == load_manifest(folder).versions["prompts"]
    (moved / "start.md").write_text("Hello. {{ topic }}")
    with pytest.raises(
        LogError, match=rf"the run has prompts=prompts/{copy.parent.name}, this study prompts=prompts/\w+"
    ):
        run_study(study(prompts=str(moved), seeds=3), folder)
    with pytest.raises(LogError, match=rf"the run has prompts=prompts/{copy.parent.name}, this study prompts=default"):
        run_study(study(seeds=3), folder)
    assert len(load_run(folder).scores) == 2
