"""Agreement of judges: κ by hand, its interval over trees, what is unscored."""

from __future__ import annotations

from dataclasses import astuple, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from research.agreement import agreement, item_pairs

GRADES = st.sampled_from([0.0, 0.6, 1.0])


def pairs(*scores: tuple[float | None, float | None], trees: int = 1) -> list[tuple[str, float | None, float | None]]:
    return [(f"t{tree}", *each) for tree in range(trees) for each in scores]


def test_kappa_by_hand():
    # Of four items 0 and 1 agree twice, 0 meets 0.6 once and 1 meets 0 once.
    # Linear weights: disagreement (1 + 2) / 4 / 2; by chance from the margins (1/2, 0, 1/2) and (1/2, 1/4, 1/4).
    found = agreement(pairs((0, 0), (1, 1), (0, 0.6), (1, 0)))
    chance = (1 / 2 * 1 / 4 + 1 / 2 * 1 / 4 * 2 + 1 / 2 * 1 / 2 * 2 + 1 / 2 * 1 / 4) / 2
    assert found.kappa == pytest.approx(1 - (3 / 4 / 2) / chance)
    assert found.same == 0.5
    assert found.difference == pytest.approx((0 + 0 + 0.6 + 1) / 4)
    assert (found.items, found.trees, found.low, found.high) == (4, 1, None, None)


def test_a_near_miss_counts_for_more_than_a_far_one():
    near, far = (agreement(pairs((0, 0), (1, 1), (1, other), (0.6, 0.6))).kappa for other in (0.6, 0.0))
    assert near > far


def test_a_mean_counts_as_the_nearest_grade():
    found = agreement(pairs((0.5, 0.6), (0.85, 1), (0.25, 0), (0.78, 0.6)))
    assert (found.kappa, found.same) == (1, 1)
    assert found.difference == pytest.approx((0.1 + 0.15 + 0.25 + 0.18) / 4)


@pytest.mark.parametrize("mean", [(0.6 + 1) / 2, (0.6 + 0.6 + 1 + 1) / 4, 0.8, 1 - 0.2])
def test_midway_counts_as_the_lower_grade_whatever_floating_point_makes_of_it(mean: float):
    assert agreement(pairs((mean, 0.6), (0.3, 0), (1, 1))).same == 1


def test_what_one_left_unscored_is_counted_and_not_compared():
    found = agreement(pairs((0, 0), (1, 1), (None, 1), (1, None), (None, None)))
    assert (found.kappa, found.items, found.unscored) == (1, 2, 3)
    assert astuple(agreement(pairs((None, 1))))[:7] == (None, None, None, None, None, 0, 0)
    assert str(agreement([])) == "–"


def test_where_nothing_is_told_apart_there_is_no_kappa():
    found = agreement(pairs((0, 0), (0, 0)))
    assert (found.kappa, found.same, found.items) == (None, 1, 2)


def test_the_interval_is_over_trees_from_five_on():
    faults = [(f"t{tree}", 1.0, 0.0) for tree in range(6) for _ in range(tree)]
    mixed = [*faults, *pairs((0, 0), (1, 1), (0.6, 0.6), trees=6)]
    found = agreement(mixed)
    assert found.trees == 6
    assert found.low < found.kappa < found.high <= 1
    assert agreement(mixed) == found, "the same resampling every time"
    four = agreement([each for each in mixed if each[0] not in ("t4", "t5")])
    assert (four.trees, four.low, four.high) == (4, None, None)
    assert str(four) == f"{four.kappa:.2f}"
    assert str(found) == f"{found.kappa:.2f} [{found.low:.2f}, {found.high:.2f}]"


def test_trees_that_tell_nothing_apart_have_no_interval():
    found = agreement(pairs((1, 1), trees=5))
    assert (found.kappa, found.low, found.high) == (None, None, None)


@given(st.lists(st.tuples(GRADES, GRADES), min_size=1, max_size=30))
def test_kappa_is_that_of_scikit_learn(scores: list[tuple[float, float]]):
    found = agreement([("t", *each) for each in scores]).kappa
    if len({grade for each in scores for grade in each}) > 1:
        one, other = ([round(10 * grade) for grade in grades] for grades in zip(*scores, strict=True))
        assert found == pytest.approx(cohen_kappa_score(one, other, labels=[0, 6, 10], weights="linear"))
    else:
        assert found is None


@given(st.lists(st.tuples(st.sampled_from("abc"), GRADES, GRADES), min_size=1, max_size=30))
def test_agreement_is_symmetric_and_perfect_with_oneself(scores: list[tuple[str, float, float]]):
    there, back = agreement(scores), agreement([(tree, other, one) for tree, one, other in scores])
    assert replace(there, kappa=0) == replace(back, kappa=0)
    assert there.kappa == pytest.approx(back.kappa)
    oneself = agreement([(tree, one, one) for tree, one, _ in scores])
    assert oneself.kappa in (None, 1)
    assert (oneself.same, oneself.difference) == (1, 0)


def test_items_are_paired_by_conclusion():
    one = {("t", "a"): (0.0, 1.0), ("t", "b"): (None,), ("u", "a"): (1.0,)}
    other = {("u", "a"): (0.6,), ("t", "a"): (1.0, None)}
    assert item_pairs(one, other) == [("t", 0.0, 1.0), ("t", 1.0, None), ("u", 1.0, 0.6)]
