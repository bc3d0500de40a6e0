"""Conflicts between results and whether they are taken up, probabilities of redos, and calls of the observer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from inquitree_gym.inquiry.courses import Chooser, choose_cover, choose_greedy, play_courses
from inquitree_gym.inquiry.gains import CHECKED, CONFLICT_D, TAKEN_UP, called_fake, count_conflicts, taken_up
from inquitree_gym.inquiry.observer import observe
from inquitree_gym.inquiry.vigilance import REDO, REDO_FAKES, REDO_TRUES, Counts, Exposure, redo_probabilities
from tests.inquiry.test_observer import DESIGN

FIRST, SECOND, OTHER, CONTROL, BOTH = 0, 10, 1, 2, 3
"""Two studies of axis 0, one of axis 1, one of none, and one of axes 0 and 2."""


def counted(showings: Sequence[tuple[int, int]], answered: int) -> Counts:
    """Count the conflicts of showings, of which the first ones were answered."""
    shown = [
        Exposure("s", 0, i, 0, tokens_read=0, prompt_tokens=None, redone=False if i < answered else None)
        for i in range(len(showings))
    ]
    return count_conflicts(DESIGN, showings, shown)


@pytest.mark.parametrize(
    ("following", "taken"),
    [([(SECOND, 1)], 1), ([(FIRST, 0)], 1), ([(BOTH, 0)], 1), ([(OTHER, 0)], 0), ([(CONTROL, 0)], 0), ([], 0)],
    ids=["redone", "the earlier study again", "a third study", "another axis", "a control", "nothing"],
)
def test_a_conflict_is_taken_up_by_the_next_result_about_its_axis(following: list[tuple[int, int]], taken: int):
    assert counted([(FIRST, 0), (SECOND, 1), *following], 2) == Counts(1, taken, 0, 0)
    assert counted([(FIRST, 1), (SECOND, 1), *following], 2) == Counts(0, 0, 1, taken)


def test_only_the_last_reading_of_an_axis_is_compared():
    assert counted([(FIRST, 0), (SECOND, 1), (BOTH, 2)], 3) == Counts(1, 1, 1, 0)
    assert counted([(FIRST, 0), (OTHER, 1), (CONTROL, 0), (SECOND, 1)], 4) == Counts(1, 0, 0, 0)


def test_a_result_about_two_axes_is_compared_on_each():
    # Study 6 reads axis 3, study 7 axis 2, and outcome 2 of the result about axes 0 and 2 states poles 1 and 0.
    assert DESIGN.poles(BOTH, 2) == {0: 1, 2: 0}
    assert counted([(FIRST, 0), (7, 0), (BOTH, 2), (7, 1)], 3) == Counts(1, 0, 1, 1)
    assert counted([(FIRST, 0), (7, 0), (BOTH, 2), (SECOND, 1)], 3) == Counts(1, 1, 1, 0)


def test_a_result_that_left_no_choice_and_a_first_reading_count_in_neither():
    assert counted([(FIRST, 0), (SECOND, 1), (FIRST, 0)], 1) == Counts()
    assert counted([(FIRST, 0), (OTHER, 0), (7, 0)], 3) == counted([], 0) == Counts()


def followed(chooser: Chooser, level: int) -> Counts:
    model = observe(DESIGN, level)
    course = play_courses(DESIGN, level, 30, chooser, model=model, episodes=1500, seed=3)
    counts = Counts()
    for study, shown in zip(course.study, course.shown, strict=True):
        showings = [(int(a), int(b)) for a, b in zip(study, shown, strict=True) if a >= 0]
        counts += counted(showings, len(showings) - 1)
    return counts


@pytest.mark.e2e
def test_who_chooses_blindly_takes_up_agreements_as_often_and_who_reasons_takes_up_conflicts():
    blind, reasoning = followed(choose_cover, 3), followed(choose_greedy, 3)
    assert min(blind.fakes, blind.trues) > 500
    assert abs(blind.d_prime) < 0.2
    assert reasoning.d_prime > 0.5
    assert reasoning.hit_rate > blind.hit_rate


def test_shares_are_pooled_over_trees_and_d_prime_is_a_mean_over_them():
    by_tree = {"a": Counts(30, 20, 10, 1), "b": Counts(2, 0, 20, 4), "none": Counts()}
    found = taken_up(by_tree)
    assert (found[TAKEN_UP].mean, found[CHECKED].mean) == pytest.approx((20 / 32, 5 / 30))
    assert found[CONFLICT_D].mean == pytest.approx((by_tree["a"].d_prime + by_tree["b"].d_prime) / 2)
    assert found[TAKEN_UP].trees == found[CONFLICT_D].trees == 2


def test_probabilities_of_redos_are_those_of_all_results_of_all_trees():
    counts = {"a": Counts(30, 20, 10, 1), "b": Counts(2, 0, 20, 4)}
    found = redo_probabilities(counts)
    means = [found[name].mean for name in (REDO, REDO_FAKES, REDO_TRUES)]
    assert means == pytest.approx([25 / 62, 20 / 32, 5 / 30])
    assert all(each.mean is None for each in redo_probabilities({"a": Counts()}).values())


def test_an_interval_of_a_ratio_is_that_of_its_residuals():
    trees = {str(i): Counts(10 + i, 5 + i, 0, 0) for i in range(6)}
    found = redo_probabilities(trees)[REDO_FAKES]
    ratio = 45 / 75
    residuals = np.array([(5 + i - ratio * (10 + i)) / 12.5 for i in range(6)])
    assert found.mean == pytest.approx(ratio)
    assert found.high - found.low == pytest.approx(2 * 2.570582 * residuals.std(ddof=1) / 6**0.5, rel=1e-5)


def test_the_observer_calls_what_is_likelier_fake_and_half_of_what_is_as_likely():
    assert [called_fake(doubt) for doubt in (0, 0.3, 0.5 - 1e-12, 0.5, 0.5 + 1e-12, 0.51, 1)] == [
        0, 0, 0.5, 0.5, 0.5, 1, 1,
    ]  # fmt: skip
