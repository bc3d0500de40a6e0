"""Recall that is planted in a reader is found again, and none is found where there is none."""

from __future__ import annotations

import math
from typing import Any

import pytest
from typer.testing import CliRunner

from inquitree_gym.baselines import BayesAgent
from inquitree_gym.embeddings import ReaderEmbedder
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.recall import RECALL, RECALL_GAP, RIGHT_ELSEWHERE, RIGHT_THERE, Answer, recall_gap
from inquitree_gym.inquiry.sections import paired_worlds
from inquitree_gym.results import score_episode
from inquitree_gym.rollout import play
from inquitree_gym.trees import Tree, load_tree
from research.recall import answered, app


@pytest.fixture(scope="module")
def trees() -> list[Tree]:
    return [load_tree(f"paper{number}") for number in (1, 2, 8, 12, 24, 28)]


@pytest.mark.parametrize(("recall", "closed"), [(0, False), (2, False), (2, True)])
def test_planted_recall_is_found(recall: float, closed: bool, trees: list[Tree], reader: ReaderEmbedder):
    found = recall_gap(answered(trees, recall, 3, 4, closed_book=closed, embedder=reader))
    assert found[RECALL].low <= recall <= found[RECALL].high
    assert found[RECALL].high - found[RECALL].low < 2
    assert (found[RECALL_GAP].low > 0.2) == (recall > 0)
    assert found[RECALL].trees == len(trees)


def test_a_setting_has_the_gap_of_its_pairs(trees: list[Tree], reader: ReaderEmbedder):
    tree = trees[3]
    envs = [InquiryEnv(tree, embedder=reader, fake_level=3, world=world) for world in ("actual", "complement")]
    scores = [score_episode(play(env, BayesAgent(tree), seed), tree) for env in envs for seed in range(2)]
    (row,) = paired_worlds(scores)
    right, wrong = (row.estimates[name].mean for name in (RIGHT_THERE, RIGHT_ELSEWHERE))
    assert right == pytest.approx(sum(score.values["right"] for score in scores[:2]) / 2, abs=0.1)
    assert row.estimates[RECALL_GAP].mean == pytest.approx(right - wrong)
    assert paired_worlds(scores[:3])[0].estimates[RECALL_GAP].episodes == len(tree.axes), "the third has a pair"
    assert paired_worlds(scores[:2])[0].estimates[RECALL_GAP].mean is None, "no pair"
    drawn = InquiryEnv(tree, embedder=reader, world="any")
    assert score_episode(play(drawn, BayesAgent(tree), 0), tree).detail.answers == ()


def sides(stated: Any, evidence: float = 0.0) -> list[Answer]:
    return [Answer(0, published, evidence, stated, stated is published) for published in (False, True)]


def test_answers_that_are_all_the_papers_have_a_finite_recall():
    found = recall_gap((f"t{i}", seed, sides(True)) for i in range(5) for seed in range(10))
    assert found[RECALL].mean == pytest.approx(math.log(100.5 / 0.5))
    assert (found[RECALL_GAP].mean, found[RIGHT_THERE].mean, found[RIGHT_ELSEWHERE].mean) == (1, 1, 0)


def test_evidence_is_taken_off_and_certainty_and_omissions_say_nothing():
    half = [("t", 0, sides(True, 2.0)), ("t", 1, sides(False, 2.0))] * 50
    assert recall_gap(half)[RECALL].mean == pytest.approx(-2, abs=0.05)
    assert recall_gap([("t", 0, sides(None)), ("t", 1, sides(True, math.inf))])[RECALL].mean is None
    assert recall_gap([("t", 0, sides(None))])[RECALL_GAP].mean == 0, "an answer that is left out is not right"


def test_the_table_of_planted_recall(monkeypatch: pytest.MonkeyPatch, reader: ReaderEmbedder):
    done = CliRunner().invoke(app, ["--papers", "12", "--seeds", "1"])
    assert done.exit_code == 0, done.output
    assert done.output.count("\n") == 10
    assert "| 4 | none |" in done.output
