"""Runs that take in more: seeds, papers, levels, agents and models; and changed trees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.analysis import load_run
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.log import read_episode
from inquitree_gym.report import view_run
from inquitree_gym.runner import RunOptions, RunSummary, run_study
from inquitree_gym.runner.environment_kinds import INQUIRIES
from inquitree_gym.runner.folder import load_manifest, read_manifest
from inquitree_gym.runner.grids import Grid, joined
from inquitree_gym.runner.growth import united
from inquitree_gym.runner.trees import kept_task
from inquitree_gym.trees import Tree, dump_tree, load_tree
from tests.runner.played import logs, run_trees
from tests.runner.played import small_study as study
from tests.strategies import make_tree

GROWN = {
    "seeds": ({"seeds": 3}, "2 episodes; seeds 1, 2"),
    "first seed": ({"seeds": 2, "first_seed": 7}, "2 episodes; seeds 7, 8"),
    "papers": ({"trees": ("2", "8")}, "1 episode; trees paper8"),
    "levels": ({"fake_levels": (0, 6)}, "1 episode; fake levels 6"),
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
    assert sorted(spec.file_name for spec in read_manifest(tmp_path).specs()) == sorted(after)
    assert len(load_run(tmp_path).episodes) == len(after)
    assert run_study(more, tmp_path) == RunSummary(played=0, found=sum(1 for _ in more.specs()))


def test_fewer_seeds_remove_nothing(tmp_path: Path):
    run_study(study(seeds=3), tmp_path)
    before = logs(tmp_path), (tmp_path / "run.json").read_bytes()
    assert run_study(study(seeds=1), tmp_path) == RunSummary(played=0, found=1)
    assert (logs(tmp_path), (tmp_path / "run.json").read_bytes()) == before


def test_a_run_that_was_not_asked_for_everything_misses_nothing(tmp_path: Path):
    """Two agents on two papers, each on its own: the union is no product."""
    run_study(study("oracle", trees=("2",)), tmp_path)
    run_study(study("random", trees=("8",), seeds=2), tmp_path)
    names = [spec.file_name for spec in read_manifest(tmp_path).specs()]
    assert names == ["paper2_oracle_f0_s0.jsonl", "paper8_random_f0_s0.jsonl", "paper8_random_f0_s1.jsonl"]
    assert load_run(tmp_path).missing == []
    run_study(study("oracle", "random", trees=("2", "8"), seeds=2), tmp_path)
    assert read_manifest(tmp_path) == study("oracle", "random", trees=("2", "8"), seeds=2)


def test_the_default_said_aloud_is_no_contradiction(tmp_path: Path):
    run_study(study(), tmp_path)
    assert run_study(study(rules={"on_tie": "nearest"}), tmp_path).found == 1
    assert run_study(study(threshold=load_embedder(DEFAULT_EMBEDDER).threshold), tmp_path).found == 1


def test_a_union_that_is_too_large_or_ambiguous_is_refused(tmp_path: Path):
    with pytest.raises(OptionError, match="are more than the 1,000,000 of a study"):
        united(study(seeds=600_000), study("random", seeds=600_000))
    run_study(study(), tmp_path)
    file = tmp_path / "run.json"
    manifest = json.loads(file.read_text())
    grid = {"players": [["oracle", ""]], "trees": ["paper9"], "fake_levels": [0], "first_seed": 0, "seeds": 1}
    manifest["study"]["grids"] = [grid]
    file.write_text(json.dumps(manifest))
    with pytest.raises(LogError, match="names an agent, model, tree, fake level or seed that the study does not"):
        read_manifest(tmp_path)


GRIDS = st.builds(
    Grid,
    players=st.lists(st.sampled_from([("a", ""), ("b", ""), ("llm", "m")]), min_size=1, unique=True),
    trees=st.lists(st.sampled_from(["t", "u"]), min_size=1, unique=True),
    fake_levels=st.lists(st.integers(0, 2), min_size=1, unique=True),
    first_seed=st.integers(0, 4),
    seeds=st.integers(1, 4),
)


def cells(grid: Grid) -> set[tuple[object, ...]]:
    seeds = range(grid.first_seed, grid.end)
    return {(p, t, f, s) for p in grid.players for t in grid.trees for f in grid.fake_levels for s in seeds}


@given(st.lists(GRIDS, min_size=1, max_size=5))
@settings(max_examples=200)
def test_joining_grids_adds_no_episode_and_loses_none(grids: list[Grid]):
    found = joined(grids)
    assert set.union(*map(cells, found)) == set.union(*map(cells, grids))
    assert len(found) <= len(grids)


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
    file.write_text(dump_tree(Tree.model_validate_json(changed.model_dump_json())))
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
    assert load_run(moved).scores == expected
    assert run_trees(moved) == {"mine": tree, "paper2": load_tree("paper2")}
    assert kept_task(INQUIRIES, moved, "mine", tree.digest) == tree
    assert kept_task(INQUIRIES, moved, "mine", "0" * 64) is None
    assert kept_task(INQUIRIES, moved, "../run", tree.digest) is None
    assert sorted(file.name for file in (moved / "trees").iterdir()) == [
        f"{each.id}@{each.digest[:12]}.json" for each in (tree, load_tree("paper2"))
    ]
    assert view_run(moved).is_file()


def test_a_changed_tree_is_refused_before_anything_is_played(tmp_path: Path, mine: Path):
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
    assert [each.score.tree for each in load_run(folder).episodes] == ["mine"]


def test_a_changed_tree_can_be_played_beside_the_former_one(tmp_path: Path, mine: Path):
    folder = tmp_path / "run"
    run_study(study(trees=(str(mine),)), folder)
    first = load_tree(mine)
    second = edit(mine)
    summary = run_study(study(trees=(str(mine),)), folder, RunOptions(as_new_version=True))
    name = f"mine@{second.digest[:12]}"
    assert summary.added == f"1 episode; trees {name}"
    assert set(logs(folder)) == {"mine_oracle_f0_s0.jsonl", f"{name}_oracle_f0_s0.jsonl"}
    assert read_episode(folder / "episodes" / f"{name}_oracle_f0_s0.jsonl").header.task.digest == second.digest
    assert {each.score.tree for each in load_run(folder).episodes} == {"mine", name}
    assert run_study(study(trees=(str(mine),), seeds=2), folder).added == "1 episode; seeds 1", "known by now"
    mine.write_text(dump_tree(first))
    assert run_study(study(trees=(str(mine),)), folder) == RunSummary(played=0, found=1)


def test_a_tree_of_which_no_episode_is_left_may_change(tmp_path: Path, mine: Path):
    folder = tmp_path / "run"
    run_study(study(trees=(str(mine), "2")), folder)
    (folder / "episodes" / "mine_oracle_f0_s0.jsonl").unlink()
    changed = edit(mine)
    assert run_study(study(trees=(str(mine), "2")), folder).played == 1
    assert run_trees(folder)["mine"] == changed


def without_copies(folder: Path) -> None:
    """Make the folder one of a release that kept no trees."""
    file = folder / "run.json"
    manifest = json.loads(file.read_text())
    file.write_text(json.dumps({"format": manifest["format"], "study": manifest["study"]}))
    for copy in (folder / "trees").iterdir():
        copy.unlink()
    (folder / "trees").rmdir()


def test_a_run_without_copies_is_read_and_gets_them(tmp_path: Path):
    run_study(study(), tmp_path)
    without_copies(tmp_path)
    assert len(load_run(tmp_path).episodes) == 1
    run_study(study(seeds=2), tmp_path)
    assert load_manifest(tmp_path).trees["paper2"].digest == load_tree("paper2").digest
    assert len(list((tmp_path / "trees").iterdir())) == 1


def test_of_a_run_without_copies_the_logs_know_the_version(tmp_path: Path, mine: Path):
    folder = tmp_path / "run"
    run_study(study(trees=(str(mine),)), folder)
    without_copies(folder)
    edit(mine)
    with pytest.raises(LogError, match="mine has the digest"):
        run_study(study(trees=(str(mine),), seeds=2), folder)


def test_logs_of_another_version_are_named_and_do_not_stop_the_rest(tmp_path: Path, mine: Path):
    folder, other = tmp_path / "run", tmp_path / "other"
    run_study(study(trees=(str(mine), "2")), folder)
    edit(mine)
    run_study(study(trees=(str(mine),)), other)
    name = "mine_oracle_f0_s0.jsonl"
    (folder / "episodes" / name).write_bytes((other / "episodes" / name).read_bytes())
    run = load_run(folder)
    assert [each.score.tree for each in run.episodes] == ["paper2"]
    (missing,) = run.missing
    assert (missing.name, missing.status) == (name, "other tree")
    assert "was played on mine with digest" in missing.error


def test_a_changed_or_lost_copy_is_told(tmp_path: Path, mine: Path):
    folder = tmp_path / "run"
    run_study(study(trees=(str(mine),)), folder)
    (copy,) = (folder / "trees").iterdir()
    edit(copy)
    with pytest.raises(LogError, match=r"mine@.*' was changed: its digest is .*; bring the original copy back"):
        load_run(folder)
    copy.unlink()
    with pytest.raises(LogError, match=r"was played on mine with digest \w{12}, which is not at hand"):
        load_run(folder)


def test_a_run_goes_on_elsewhere_with_its_copies(tmp_path: Path, mine: Path):
    run_study(study(trees=(str(mine),)), tmp_path / "run")
    mine.unlink()
    (copy,) = (tmp_path / "run" / "trees").iterdir()
    assert run_study(study(trees=(str(copy),), seeds=2), tmp_path / "run").added == "1 episode; seeds 1"
    assert set(logs(tmp_path / "run")) == {f"mine_oracle_f0_s{seed}.jsonl" for seed in (0, 1)}


# Templates


def test_templates_of_ones_own_are_kept_and_may_not_change(tmp_path: Path):
    own, folder = tmp_path / "prompts", tmp_path / "run"
    own.mkdir()
    (own / "start.md").write_text("Welcome. {{ topic }}\n\nPropose a subtopic.\n")
    run_study(study(prompts=str(own)), folder)
    (copy,) = (folder / "prompts").glob("*/*.md")
    assert copy.read_text() == (own / "start.md").read_text()
    assert read_manifest(folder).prompts == copy.parent.relative_to(folder).as_posix()
    moved = own.rename(tmp_path / "renamed")
    assert run_study(study(prompts=str(moved), seeds=2), folder).added == "1 episode; seeds 1"
    first, second = (read_episode(folder / "episodes" / name) for name in sorted(logs(folder)))
    assert first.turns[0].observation.startswith("Welcome.")
    assert first.header.prompts == second.header.prompts == load_manifest(folder).versions["prompts"]
    (moved / "start.md").write_text("Hello. {{ topic }}")
    with pytest.raises(LogError, match=rf"prompts is prompts/{copy.parent.name} there and prompts/\w+ here"):
        run_study(study(prompts=str(moved), seeds=3), folder)
    with pytest.raises(LogError, match=rf"prompts is prompts/{copy.parent.name} there and default here"):
        run_study(study(seeds=3), folder)
    assert len(load_run(folder).episodes) == 2
