"""Studies that were open at each choice, and the information that was chosen of the largest."""

from __future__ import annotations

from math import log2
from typing import Any

import numpy as np
import pytest

from inquitree_gym.baselines import BayesAgent, CoverAgent
from inquitree_gym.embeddings import ReaderEmbedder
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.gains import reasoned, showings_of
from inquitree_gym.inquiry.observer import design_of
from inquitree_gym.inquiry.opportunities import Choice, mean_share, open_studies
from inquitree_gym.inquiry.results import INFORMATION
from inquitree_gym.inquiry.vigilance import exposures
from inquitree_gym.log import Episode
from inquitree_gym.results.score import score_episode
from inquitree_gym.rollout import play
from tests.inquiry.test_trajectory import CONCLUDE, END, EXPLORE, enter, episode_of, redo, result
from tests.worlds import clean_document, read

TREE = read(clean_document())
"""Four subtopics, s4 after s2 and s3 after s1; s1a, s1b, s2a read axis 1, s1c, s2b axis 0, s2c 3, s2d 0 and 3."""
NAMES = [study.id for study in TREE.studies]
STEPS = (enter("s1"), result("s1a"), EXPLORE, enter("s2"), result("s2b"), redo("s2b", 1), CONCLUDE, END)
ONE, TWO = (log2(2**axes) + 0.7 * log2(0.7) + 0.3 * log2(0.3 / axes) for axes in (1, 2))
"""Bits of a first result about one axis and about two, at level 3: entropy of what is shown less that of the draw."""


def opened(episode: Episode) -> list[set[str]]:
    shown = exposures(episode, TREE)
    rows = open_studies(episode, design_of(TREE), showings_of(episode, TREE, shown), shown)
    return [{NAMES[i] for i in np.flatnonzero(row)} for row in rows]


def choices(*steps: Any, **rules: Any) -> tuple[Choice, ...]:
    episode = episode_of(TREE, *steps, **{"fake_level": 3, **rules})
    found = reasoned(episode, TREE, exposures(episode, TREE), None)
    assert found is not None
    return found.choices


def of(*subtopics: str) -> set[str]:
    return {name for name in NAMES if name[:2] in subtopics}


def test_a_study_is_open_once_the_prerequisites_of_its_subtopic_were_entered():
    assert opened(episode_of(TREE, *STEPS)) == [of("s1"), of("s1", "s2", "s3"), of("s1", "s2", "s3")]
    later = (*STEPS[:5], EXPLORE, enter("s3"), result("s3a"), EXPLORE, enter("s4"), result("s4a"))
    assert opened(episode_of(TREE, *later))[-1] == set(NAMES)


@pytest.mark.parametrize(
    ("rules", "closed"),
    [
        ({"max_turns": None}, set()),
        ({"max_turns": 9}, set()),
        ({"max_turns": 8}, {"s1a"}),
        ({"max_turns": 8, "reruns": "match"}, set()),
        ({"max_turns": 7, "reruns": "match"}, of("s1", "s2", "s3") - {"s2b"}),
        ({"max_turns": 9, "redo_turn": True}, {"s1a"}),
    ],
)
def test_a_study_is_open_while_the_turns_left_suffice(rules: dict[str, Any], closed: set[str]):
    # The second result came on turn 5: 3 turns for a new study, 1 for a redo, 4 to return to an earlier one.
    assert opened(episode_of(TREE, *STEPS, **rules))[-1] == of("s1", "s2", "s3") - closed


def test_the_study_that_was_run_counts_as_open_whatever_the_log_says():
    assert "s4a" in opened(episode_of(TREE, enter("s4"), result("s4a")))[0]


def test_a_choice_has_its_bits_beside_those_of_the_best_open_study():
    first, second, third = choices(*STEPS)
    assert first == (pytest.approx(ONE, abs=1e-9), pytest.approx(ONE, abs=1e-9), 0, True)
    assert (second.bits, second.most, NAMES[second.best]) == (
        pytest.approx(ONE, abs=1e-9), pytest.approx(TWO, abs=1e-9), "s2d",
    )  # fmt: skip
    assert 0 < third.bits < third.most
    assert [first.share, second.share] == pytest.approx([1, ONE / TWO], abs=1e-9)
    assert mean_share((first, second)) == pytest.approx((1 + ONE / TWO) / 2, abs=1e-9)


def test_a_control_is_a_choice_that_tells_nothing_and_a_forced_move_is_no_choice():
    (control,) = choices(enter("s1"), result("s1d"))
    assert (control.bits, control.share) == (0, 0)
    for forced in ((enter("s1", forced=True), result("s1a")), (enter("s1"), result("s1a", forced=True))):
        first, second = choices(*forced, EXPLORE, enter("s2"), result("s2d"))
        assert (first.free, first.share, second.free, second.share) == (False, None, True, 1)


def test_where_everything_is_known_no_choice_has_a_share():
    found = choices(enter("s1"), result("s1a"), redo("s1a"), fake_level=0, max_turns=3)
    assert [each.share for each in found] == [1, None], "the only study that fits shows what is known"
    assert mean_share(found[1:]) is None


def test_played_shares_lie_in_0_to_1_and_more_of_the_information_is_chosen_by_who_looks_for_it(reader: ReaderEmbedder):
    env = InquiryEnv(TREE, embedder=reader, fake_level=3, max_turns="5n")
    means = []
    for agent in (CoverAgent(TREE), BayesAgent(TREE)):
        scores = [score_episode(play(env, agent, seed), TREE) for seed in range(10)]
        found = [each for score in scores for each in score.detail.reasoned.choices]
        assert all(0 <= each.bits <= each.most + 1e-12 and each.free for each in found)
        means.append(np.mean([score.values[INFORMATION.name] for score in scores]))
    assert means[0] < means[1] <= 1
