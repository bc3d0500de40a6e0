"""Runs joined into one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from inquitree_gym.analysis import load_run
from inquitree_gym.analysis.doubles import without_doubles
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.errors import LogError
from inquitree_gym.judges import Judgement, JudgementFile, Verdict, read_judgements
from inquitree_gym.log import read_episode
from inquitree_gym.runner import run_study
from inquitree_gym.runner.folder import read_manifest
from inquitree_gym.runner.merge import MergeSummary, merge_runs
from inquitree_gym.runner.run import RunSummary
from inquitree_gym.scoring.trajectory import read_trajectory
from inquitree_gym.trees import Tree, dump_tree, load_tree
from tests.runner.played import logs, run_trees
from tests.runner.played import small_study as study
from tests.strategies import make_tree


def test_runs_are_joined_without_doubling(tmp_path: Path):
    one, other, both = (tmp_path / name for name in ("one", "other", "both"))
    run_study(study("oracle", seeds=2), one)
    run_study(study("oracle", "random", trees=("2", "8"), fake_levels=(0, 6)), other)
    before = logs(one), logs(other)
    assert merge_runs([one, other], both) == MergeSummary(episodes=9, unfinished=0, doubles=1, damaged=())
    assert (logs(one), logs(other)) == before
    assert logs(both) == logs(other) | logs(one)
    run = load_run(both)
    assert (len(run.episodes), run.missing) == (9, [])
    assert run_trees(both) == {name: load_tree(name) for name in ("paper2", "paper8")}
    assert run_study(study("oracle", seeds=3), both).added == "1 episode; seeds 2", "a run like any other"


def test_a_complete_episode_goes_before_a_torn_one_and_damaged_ones_are_named(tmp_path: Path):
    one, other, both = (tmp_path / name for name in ("one", "other", "both"))
    run_study(study(seeds=4), one)
    run_study(study(seeds=1), other)
    files = sorted((one / "episodes").iterdir())
    for file in files[:2]:
        file.write_bytes(file.read_bytes()[:-40])
    files[2].write_bytes(files[2].read_bytes().replace(b'"kind":"turn"', b'"kind":"tarn"', 1))
    found = merge_runs([one, other], both)
    assert found == MergeSummary(episodes=2, unfinished=1, doubles=0, damaged=(files[2].name,))
    assert read_episode(both / "episodes" / files[0].name).status == "concluded"
    assert run_study(study(seeds=4), both) == RunSummary(played=2, found=2)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"max_turns": "3n"}, "max_turns is default in '{one}' and 3n in '{other}'"),
        ({"rules": {"on_tie": "ask"}, "threshold": 0.4}, "threshold is {tau} in '{one}' and 0.4 in '{other}'"),
    ],
)
def test_runs_that_contradict_each_other_are_refused(tmp_path: Path, change: dict, told: str):
    one, other = tmp_path / "one", tmp_path / "other"
    run_study(study(), one)
    run_study(study(**change), other)
    with pytest.raises(LogError) as caught:
        merge_runs([one, other], tmp_path / "both")
    assert told.format(one=one, other=other, tau=load_embedder(DEFAULT_EMBEDDER).threshold) in str(caught.value)
    assert not (tmp_path / "both").exists()


def test_versions_of_a_tree_and_other_episodes_of_one_kind_are_contradictions(tmp_path: Path):
    tree = make_tree([[]], [1], tree_id="mine")
    changed = Tree.model_validate_json(tree.model_copy(update={"topic": "Else?"}).model_dump_json())
    for name, each in {"one": tree, "other": changed}.items():
        (tmp_path / f"of-{name}").mkdir()
        file = tmp_path / f"of-{name}" / "mine.json"
        file.write_text(dump_tree(each))
        run_study(study(trees=(str(file),)), tmp_path / name)
    with pytest.raises(LogError, match=rf"mine has the digest {tree.digest[:12]} in .* and {changed.digest[:12]} in"):
        merge_runs([tmp_path / "one", tmp_path / "other"], tmp_path / "both")
    copy = tmp_path / "copy"
    run_study(study(trees=(str(tmp_path / "of-one" / "mine.json"),), seeds=2), copy)
    first = copy / "episodes" / "mine_oracle_f0_s0.jsonl"
    first.write_bytes(first.read_bytes().replace(b'"action":"', b'"action":"Well, ', 1))
    with pytest.raises(LogError, match=r"different episodes of the same agent, .*: mine_oracle_f0_s0\.jsonl of "):
        merge_runs([tmp_path / "one", copy], tmp_path / "both")


def test_other_weights_or_templates_under_one_name_are_contradictions(tmp_path: Path):
    run_study(study(), tmp_path / "one")
    run_study(study(seeds=2), tmp_path / "other")
    digests = read_episode(tmp_path / "one" / "episodes" / "paper2_oracle_f0_s0.jsonl").header
    for what, digest in {"an embedder": digests.embedder.digest, "templates": digests.prompts}.items():
        for log in (tmp_path / "other" / "episodes").iterdir():
            log.write_bytes(log.read_bytes().replace(digest.encode(), b"f" * 64, 1))
        told = rf"{what} with the digest {digest[:12]} in '.*one' and ffffffffffff in '.*other'"
        with pytest.raises(LogError, match=told):
            merge_runs([tmp_path / "one", tmp_path / "other"], tmp_path / "both")


def test_nothing_is_overwritten(tmp_path: Path):
    run_study(study(), tmp_path / "one")
    run_study(study(seeds=2), tmp_path / "other")
    with pytest.raises(LogError, match="exists already; nothing is overwritten"):
        merge_runs([tmp_path / "one", tmp_path / "other"], tmp_path / "one")
    with pytest.raises(LogError, match="takes two runs or more"):
        merge_runs([tmp_path / "one", tmp_path / "other" / ".." / "one"], tmp_path / "both")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["one", "other"]


def test_judgements_come_along(tmp_path: Path):
    for name, seeds in {"one": 1, "other": 2}.items():
        run_study(study(seeds=seeds), tmp_path / name)
        tree = load_tree("paper2")
        with JudgementFile(tmp_path / name, "llm:m", {"version": 1}) as file:
            for spec in read_manifest(tmp_path / name).specs():
                episode = read_episode(tmp_path / name / "episodes" / spec.file_name)
                said = read_trajectory(episode, tree).conclusion
                file.add(spec.file_name, tree, said, Judgement((Verdict(0.6, name),) * len(tree.conclusions)))
    merge_runs([tmp_path / "one", tmp_path / "other"], tmp_path / "both")
    (found,) = read_judgements(tmp_path / "both")
    why = {episode: record.verdicts[0].why for episode, record in found.by_episode.items()}
    assert why == {"paper2_oracle_f0_s0.jsonl": "one", "paper2_oracle_f0_s1.jsonl": "other"}
    assert [score.judge for score in load_run(tmp_path / "both", judge="llm:m").scores] == ["llm:m"] * 2


def test_a_run_that_is_reported_twice_counts_once(tmp_path: Path):
    run_study(study(seeds=2), tmp_path / "one")
    run_study(study(seeds=3), tmp_path / "again")
    run_study(study(max_turns="3n"), tmp_path / "other")
    runs = [load_run(tmp_path / name) for name in ("one", "again", "other")]
    found, doubles = without_doubles(runs)
    assert (doubles, [len(run.episodes) for run in found]) == (2, [2, 1, 1])
    assert [episode.score.seed for episode in found[1].episodes] == [2]
    assert without_doubles(found) == (found, 0)


def test_a_copy_has_no_grades_of_other_judges_either(tmp_path: Path):
    tree = load_tree("paper2")
    run_study(study(seeds=2), tmp_path / "one")
    with JudgementFile(tmp_path / "one", "llm:m", {"version": 1}) as file:
        for log in sorted((tmp_path / "one" / "episodes").iterdir()):
            said = read_trajectory(read_episode(log), tree).conclusion
            file.add(log.name, tree, said, Judgement((Verdict(0.6, ""),) * len(tree.conclusions)))
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    found, doubles = without_doubles([load_run(tmp_path / "one"), load_run(tmp_path / "copy")])
    assert doubles == 2
    assert [{label: len(scores) for label, scores in run.judged.items()} for run in found] == [{"llm:m v1": 2}, {}]
