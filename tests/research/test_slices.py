"""Slices of papers' texts, judged as projections."""

from __future__ import annotations

import numpy as np

from inquitree_gym.judging.judgement import InProcessJudge
from inquitree_gym.projection.judges.alignment import Alignment
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.trees import ProjectionTask, load_tree
from research.slices import SHARES, paper_texts, sliced

TREE = load_tree("paper2")


class ByLength:
    """States as many claims as its share of the whole text holds."""

    def __init__(self, task: ProjectionTask) -> None:
        self.claims, self.whole = len(task.claims), sum(map(len, paper_texts(TREE)))

    def judge(self, text: str, /) -> Alignment:
        stated = round(self.claims * min(1.0, len(text) / self.whole))
        rows = np.array([[1.0, 1.0] if i < stated else [np.nan, np.nan] for i in range(self.claims)])
        names = tuple("a claim" if i < stated else None for i in range(self.claims))
        return Alignment(names, (), rows, np.zeros((0, self.claims, 2)))


def test_slices_grow_from_nothing_to_the_whole_text():
    judge = InProcessJudge("length", lambda: {"version": 1}, ByLength)
    found = list(sliced(TREE, judge, 3, np.random.default_rng(0)))
    assert [each.share for each in found] == list(SHARES)
    means = [float(np.mean(each.f1)) for each in found]
    assert means[0] == 0
    assert means[-1] == 1
    assert means == sorted(means)
    assert {each.unscored for each in found} == {0}
    assert len(paper_texts(TREE)) == len(TREE.conclusions) + len(TREE.studies)
    assert load_task(TREE).claims
