"""Copies of episodes among runs that are reported together."""

from __future__ import annotations

import shutil
from pathlib import Path

from inquitree_gym.inquiry.judges.quality import Verdict
from inquitree_gym.inquiry.judging import JUDGING
from inquitree_gym.judging.judgement import Judgement
from inquitree_gym.judging.records import JudgementFile
from inquitree_gym.log import read_episode
from inquitree_gym.results.load import load_run, without_doubles
from inquitree_gym.runner import run_study
from inquitree_gym.trees import load_tree
from tests.runner.played import small_study as study


def test_a_run_that_is_reported_twice_counts_once(tmp_path: Path):
    run_study(study(seeds=2), tmp_path / "one")
    run_study(study(seeds=3), tmp_path / "again")
    run_study(study(max_turns="5n"), tmp_path / "other")
    runs = [load_run(tmp_path / name) for name in ("one", "again", "other")]
    found, doubles = without_doubles(runs)
    assert (doubles, [len(run.scores) for run in found]) == (2, [2, 1, 1])
    assert [score.seed for score in found[1].scores] == [2]
    assert without_doubles(found) == (found, 0)


def test_a_copy_has_no_grades_of_other_judges_either(tmp_path: Path):
    tree = load_tree("paper2")
    run_study(study(seeds=2), tmp_path / "one")
    with JudgementFile(tmp_path / "one", "llm:m", {"version": 1}) as file:
        for log in sorted((tmp_path / "one" / "episodes").iterdir()):
            ((turn, said),) = JUDGING.texts(read_episode(log))
            file.add((log.name, turn), tree, said, Judgement((Verdict(0.6, ""),) * len(tree.conclusions)))
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    found, doubles = without_doubles([load_run(tmp_path / "one"), load_run(tmp_path / "copy")])
    assert doubles == 2
    assert [{label: len(scores) for label, scores in run.judged.items()} for run in found] == [{"llm:m v1": 2}, {}]
