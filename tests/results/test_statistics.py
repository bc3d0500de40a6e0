"""Means over trees, their intervals, and paired differences, against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.results.statistics import (
    Contrast,
    Estimate,
    clustered_mean,
    paired_difference,
    stratified_mean,
    unpaired_difference,
)

T4, T9 = 2.7764451051977987, 2.2621571628540993
"""0.975 quantiles of Student's t with 4 and 9 degrees of freedom, from printed tables."""


def test_the_interval_is_students_over_tree_means():
    # Tree means 1, 2, 3, 4, 5: mean 3, standard deviation sqrt(2.5).
    values = [("a", 0.0), ("a", 2.0), ("b", 2.0), ("c", 3.0), ("d", 4.5), ("d", 3.5), ("e", 5.0)]
    half = T4 * math.sqrt(2.5) / math.sqrt(5)
    assert half == pytest.approx(1.963243, abs=1e-6)
    found = clustered_mean(values)
    assert found[:3] == pytest.approx((3, 3 - half, 3 + half))
    assert (found.trees, found.episodes) == (5, 7)


def test_degrees_of_freedom_grow_with_the_trees():
    found = clustered_mean((f"t{i}", float(i % 2)) for i in range(10))
    half = T9 * math.sqrt(10 * 0.25 / 9) / math.sqrt(10)
    assert found[:3] == pytest.approx((0.5, 0.5 - half, 0.5 + half))


def test_every_tree_weighs_the_same_however_many_episodes_it_has():
    assert clustered_mean([("a", 0.0)] * 99 + [("b", 1.0)]).mean == 0.5


@pytest.mark.parametrize("trees", [1, 2, 3, 4])
def test_below_five_trees_there_is_no_interval(trees: int):
    found = clustered_mean((f"t{i}", float(i)) for i in range(trees) for _ in range(50))
    values = tuple(map(float, range(trees)))
    assert found == Estimate((trees - 1) / 2, None, None, trees, 50 * trees, values), "single trees are shown"
    assert str(found) == f"{(trees - 1) / 2:.3f}"


def test_absent_is_not_zero():
    values = [("a", 1.0), ("a", None), ("b", None), ("c", 0.0)]
    assert clustered_mean(values) == Estimate(0.5, None, None, 2, 2, (1.0, 0.0))


@pytest.mark.parametrize("values", [[], [("a", None), ("b", None)]])
def test_without_a_value_there_is_no_mean(values: list):
    found = clustered_mean(values)
    assert found == Estimate(None, None, None, 0, 0)
    assert str(found) == "–"


def test_an_absent_value_takes_its_tree_out_of_the_count():
    values = [(f"t{i}", float(i)) for i in range(4)] + [("t4", None)]
    assert clustered_mean(values).low is None
    assert clustered_mean([*values, ("t4", 4.0)]).low is not None


def test_trees_that_agree_have_an_interval_without_width():
    assert clustered_mean((f"t{i}", 0.25) for i in range(6))[:3] == (0.25, 0.25, 0.25)


def test_an_estimate_is_written_with_its_interval():
    assert str(Estimate(0.5, 0.25, 0.75, 5, 10)) == "0.500 [0.250, 0.750]"


def test_differences_are_paired_by_tree_and_seed():
    ours = {("a", 0): 1.0, ("a", 1): 0.5, ("b", 0): 0.4, ("c", 0): 9.0, ("d", 0): None}
    theirs = {("b", 0): 0.1, ("a", 1): 0.25, ("a", 0): 0.25, ("c", 1): 9.0, ("d", 0): 1.0}
    found = paired_difference(ours, theirs)
    # Tree a: (0.75 + 0.25) / 2, tree b: 0.3; c shares no seed, d has no value.
    assert found.mean == pytest.approx(0.4)
    assert (found.low, found.high, found.trees, found.episodes) == (None, None, 2, 3)


def test_a_paired_interval_is_narrower_than_what_trees_differ_by():
    theirs = {(f"t{i}", 0): float(i) for i in range(5)}
    ours = {key: value + 1 + 0.01 * (key[0] == "t0") for key, value in theirs.items()}
    found = paired_difference(ours, theirs)
    assert found.mean == pytest.approx(1.002)
    assert found.high - found.low < 0.02
    assert clustered_mean((tree, value) for (tree, _), value in ours.items()).high > 4


VALUES = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.none() | st.floats(-1e3, 1e3)), max_size=40)


@given(VALUES, st.randoms())
def test_the_order_of_episodes_does_not_matter(values: list, chance):
    shuffled = list(values)
    chance.shuffle(shuffled)
    one, other = clustered_mean(values), clustered_mean(shuffled)
    assert one[3:5] == other[3:5]
    for a, b in zip(one[:3], other[:3], strict=True):
        assert (a is None) == (b is None)
        assert a is None or a == pytest.approx(b, abs=1e-9)


@given(VALUES)
def test_the_mean_lies_between_the_tree_means_and_in_its_interval(values: list):
    found = clustered_mean(values)
    by_tree: dict[str, list[float]] = {}
    for tree, value in values:
        if value is not None:
            by_tree.setdefault(tree, []).append(value)
    assert found.trees == len(by_tree)
    if not by_tree:
        return
    means = [np.mean(each) for each in by_tree.values()]
    assert min(means) - 1e-9 <= found.mean <= max(means) + 1e-9
    assert (found.low is None) == (len(by_tree) < 5)
    if found.low is not None:
        assert found.low <= found.mean <= found.high
        assert found.high - found.mean == pytest.approx(found.mean - found.low)


# Two groups of trees


@given(
    st.lists(st.floats(-5, 5), min_size=5, max_size=12, unique=True),
    st.lists(st.floats(-5, 5), min_size=5, max_size=12, unique=True),
)
def test_two_groups_have_welchs_interval(ones: list[float], others: list[float]):
    from scipy.stats import ttest_ind

    expected = ttest_ind(ones, others, equal_var=False)
    low, high = expected.confidence_interval()
    contrast = unpaired_difference(
        [(f"a{i}", value) for i, value in enumerate(ones) for _ in range(3)],
        [(f"b{i}", value) for i, value in enumerate(others)],
    )
    found = contrast.estimate
    assert contrast.degrees == pytest.approx(expected.df)
    assert found[:3] == pytest.approx((np.mean(ones) - np.mean(others), low, high), abs=1e-9)
    assert (found.trees, found.episodes) == (len(ones) + len(others), 3 * len(ones) + len(others))


@pytest.mark.parametrize(("ones", "others"), [(4, 9), (9, 4)])
def test_two_groups_have_no_interval_where_one_has_fewer_than_five_trees(ones: int, others: int):
    groups = ([(f"{name}{i}", float(i)) for i in range(count)] for name, count in (("a", ones), ("b", others)))
    assert unpaired_difference(*groups) == Contrast(Estimate((ones - others) / 2, None, None, 13, 13), None)


def test_groups_without_spread_differ_by_what_they_differ():
    ones, others = ([(f"{name}{i}", value) for i in range(5)] for name, value in (("a", 1.0), ("b", 0.25)))
    assert unpaired_difference(ones, others) == Contrast(Estimate(0.75, 0.75, 0.75, 10, 10), None)


def test_an_empty_group_leaves_no_difference():
    assert unpaired_difference([("a", 1.0)], [("b", None)]) == Contrast(Estimate(None, None, None, 1, 1), None)


def test_a_tree_in_both_groups_is_no_independent_evidence():
    with pytest.raises(ValueError, match=r"a in both groups; pair them by `paired_difference`"):
        unpaired_difference([("a", 1.0), ("b", 0.0)], [("a", 0.0)])


# Strata, as the paper averages its domains


def papers(stratum: str, *values: float | None) -> list[tuple[str, float | None]]:
    return [(f"{stratum}{i}", value) for i, value in enumerate(values)]


def test_all_is_the_mean_of_the_domains_as_the_paper_prints_it():
    found = stratified_mean([papers("a", 0.6957), papers("b", 0.4819), papers("c", 0.6604)])
    assert found.mean == pytest.approx(0.6127, abs=5e-5)
    assert (found.low, found.trees, found.episodes) == (None, 3, 3)


def test_strata_weigh_the_same_whatever_their_size():
    found = stratified_mean([papers("a", 1.0, 1.0, 1.0, 1.0), papers("b", 0.0, 0.0)])
    assert found.mean == 0.5
    assert clustered_mean([*papers("a", 1.0, 1.0, 1.0, 1.0), *papers("b", 0.0, 0.0)]).mean == pytest.approx(2 / 3)
    assert (found.low, found.high) == (None, None)


def test_values_of_none_and_empty_strata_are_absent():
    found = stratified_mean([papers("a", 0.2, None), papers("b", None), papers("c", 0.4)])
    assert (found.mean, found.trees) == (pytest.approx(0.3), 2)
    assert stratified_mean([papers("a", None), []]).mean is None


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8))
def test_one_stratum_is_the_clustered_mean(values: list[float]):
    assert stratified_mean([papers("a", *values)]) == clustered_mean(papers("a", *values))
