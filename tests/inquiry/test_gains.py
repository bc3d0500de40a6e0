"""Gains by choosing and reading, and vigilance, against the exact posterior."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from inquitree_gym.baselines import BayesAgent, CopyistAgent, CoverAgent, GreedyAgent, RandomAgent
from inquitree_gym.embeddings import ReaderEmbedder
from inquitree_gym.inquiry.courses import mean_worth
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.gains import (
    CHOOSING,
    OBSERVER_AUC,
    OBSERVER_D,
    REDO_AUC,
    TOLD,
    TOLD_HITS,
    called_fake,
    gains,
    page_beliefs,
    reasoned,
)
from inquitree_gym.inquiry.observer import design_of
from inquitree_gym.inquiry.pages import inquiry_view
from inquitree_gym.inquiry.vigilance import Counts, exposures
from inquitree_gym.results import score_episode
from inquitree_gym.results.summary import summarise
from inquitree_gym.rollout import play
from inquitree_gym.trees import Tree, load_tree


@pytest.fixture(scope="module")
def tree() -> Tree:
    return load_tree("paper28")


def scored(agent: Any, reader: ReaderEmbedder, seeds: int = 30, **rules: Any) -> list[Any]:
    env = InquiryEnv(agent._tree, embedder=reader, **({"fake_level": 3, "max_turns": "5n"} | rules))
    return [score_episode(play(env, agent, seed), agent._tree) for seed in range(seeds)]


def means(scores: list[Any]) -> dict[str, float | None]:
    return {name: estimate.mean for name, estimate in summarise(scores)[0].estimates.items()}


def test_who_answers_by_the_posterior_loses_nothing_by_reading(tree: Tree, reader: ReaderEmbedder):
    for agent in (CoverAgent(tree), BayesAgent(tree)):
        scores = scored(agent, reader)
        assert [score.values["reading"] for score in scores] == pytest.approx([0] * len(scores))
        gap = np.array([score.values["return"] - score.values["exact_return"] for score in scores])
        assert abs(gap.mean()) <= 3.3 * gap.std() / len(gap) ** 0.5, "the best sheet earns what it is expected to"
    guessed = [score.values for score in scored(RandomAgent(tree), reader)]
    assert np.mean([each["reading"] for each in guessed]) < -0.1
    gap = np.array([each["return"] - each["exact_return"] - each["reading"] for each in guessed])
    assert abs(gap.mean()) <= 3.3 * gap.std() / len(gap) ** 0.5


def test_choosing_is_0_for_random_choice_and_1_for_the_greedy_one(tree: Tree, reader: ReaderEmbedder):
    kinds: tuple[Any, ...] = (CoverAgent, GreedyAgent, BayesAgent)
    cover, greedy, bayes = (means(scored(kind(tree), reader, 60))[CHOOSING] for kind in kinds)
    assert cover == pytest.approx(0, abs=0.25)
    assert greedy == pytest.approx(1, abs=0.25)
    assert bayes > 1.2
    assert means(scored(GreedyAgent(tree), reader, 2, max_turns=None))[CHOOSING] is None, "without a limit"


def test_simulated_means_are_kept(tree: Tree):
    design = design_of(tree)
    assert mean_worth(design, 3, 20, "greedy") is mean_worth(design, 3, 20, "greedy")


def test_vigilance_against_the_posterior(tree: Tree, reader: ReaderEmbedder):
    scores = scored(BayesAgent(tree), reader, fake_level=4, max_turns="11n")
    found = means(scores)
    assert 0 < found[TOLD] < 1
    assert found[REDO_AUC] > 0.5, "it repeats what it doubts"
    assert 0 <= found[TOLD_HITS] <= 1
    pairs = [
        (shown.fake > 0, doubt)
        for score in scores
        for shown, doubt in zip(score.detail.exposures, score.detail.reasoned.doubts, strict=True)
    ]
    fakes, doubts = np.array(pairs).T
    assert abs((fakes - doubts).sum()) <= 4 * (doubts * (1 - doubts)).sum() ** 0.5, "doubts are calibrated"


@pytest.mark.parametrize("world", ["actual", "complement", "00000"])
def test_worlds_that_are_not_drawn_evenly_have_no_gains(world: str, tree: Tree, reader: ReaderEmbedder):
    score = scored(CoverAgent(tree), reader, 1, world=world)[0]
    assert score.detail.reasoned is None
    assert score.values["reading"] is score.values["exact_return"] is None
    assert all(each.mean is None for each in gains([("t", None, ())]).values())


def test_credit_that_was_not_earned_is_worth_nothing_to_the_posterior_either(tree: Tree, reader: ReaderEmbedder):
    score = scored(CopyistAgent(tree), reader, 1, fake_level=0, max_turns="11n")[0]
    assert score.values["exact_return"] == score.values["reading"] == 0
    assert score.detail.reasoned.showings > 0


def test_the_belief_over_turns_starts_even_and_ends_with_the_posterior(tree: Tree, reader: ReaderEmbedder):
    episode = play(InquiryEnv(tree, embedder=reader, fake_level=3), CoverAgent(tree), 0)
    shown = exposures(episode, tree)
    beliefs = page_beliefs(episode, tree, shown).axes
    assert len(beliefs) == len(shown) + 1
    assert beliefs[0] == tuple((1 / len(axis.poles),) * len(axis.poles) for axis in tree.axes)
    found = reasoned(episode, tree, shown, None)
    assert found is not None
    worth = [(max(axis) * len(axis) - 1) / (len(axis) - 1) for axis in beliefs[-1]]
    assert np.mean(worth) == pytest.approx(found.showings) == found.best
    assert found.own is found.reading is None


def test_the_page_of_an_episode_tells_the_belief_after_every_result(tree: Tree, reader: ReaderEmbedder):
    episode = play(InquiryEnv(tree, embedder=reader, fake_level=3), CoverAgent(tree), 0)
    score = score_episode(episode, tree)
    rows = inquiry_view(episode, tree, score).values["beliefs"]
    assert rows[0] == (0, "", False, None, None, "", [1 / len(axis.poles) for axis in tree.axes])
    assert [row[:4] for row in rows[1:]] == [
        (shown.turn, shown.study, shown.fake > 0, doubt)
        for shown, doubt in zip(score.detail.exposures, score.detail.reasoned.doubts, strict=True)
    ]
    choices = score.detail.reasoned.choices
    assert [row.choice for row in rows[1:]] == list(choices)
    assert [row.best for row in rows[1:]] == [tree.studies[each.best].id for each in choices]
    assert inquiry_view(episode, tree, None).values["beliefs"] == []


def test_the_page_has_truth_answer_and_posterior_of_every_statement_side_by_side(tree: Tree, reader: ReaderEmbedder):
    episode = play(InquiryEnv(tree, embedder=reader, fake_level=3), CoverAgent(tree), 0)
    score = score_episode(episode, tree)
    exam, design = score.detail.trajectory.exam, design_of(tree).exam
    last = page_beliefs(episode, tree, score.detail.exposures).axes[-1]
    for item, (_, rows) in enumerate(inquiry_view(episode, tree, score).values["exam"]):
        assert [row.holds for row in rows].index(True) == exam.right[item]
        assert [place for place, row in enumerate(rows) if row.chosen] == [exam.choices[item]] * any(
            row.chosen for row in rows
        )
        for place, axis in enumerate(design.items[item]):
            for pole, chance in enumerate(last[axis]):
                stating = [row.chance for i, row in enumerate(rows) if design.stated(item, i)[place] == pole]
                assert sum(stating) == pytest.approx(chance)
    unscored = inquiry_view(episode, tree, None).values["exam"]
    assert {row.chance for _, rows in unscored for row in rows} == {None}


def test_the_observers_d_prime_is_over_the_trials_of_the_agent(tree: Tree, reader: ReaderEmbedder):
    scores, counts = scored(CoverAgent(tree), reader, 20), Counts()
    for score in scores:
        for shown, doubt in zip(score.detail.exposures, score.detail.reasoned.doubts, strict=True):
            if shown.counts:
                counts += Counts.of(shown.fake > 0, called_fake(doubt))
    found = means(scores)
    assert found[OBSERVER_D] == pytest.approx(counts.d_prime)
    assert counts.results == sum(score.detail.trajectory.showings["all"].results for score in scores)
    assert found[OBSERVER_AUC] > 0.5
