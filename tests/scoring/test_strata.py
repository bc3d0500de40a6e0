"""The mean over strata, as the paper averages its domains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.scoring import clustered_mean
from inquitree_gym.scoring.statistics import stratified_mean

VALUES = st.lists(st.floats(0, 1), min_size=2, max_size=8)


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
    assert (found.low, found.high) == (0.5, 0.5), "nothing varies within a stratum"


def test_values_of_none_and_empty_strata_are_absent():
    found = stratified_mean([papers("a", 0.2, None), papers("b", None), papers("c", 0.4)])
    assert (found.mean, found.trees) == (pytest.approx(0.3), 2)
    assert stratified_mean([papers("a", None), []]).mean is None


@given(VALUES)
def test_one_stratum_is_the_clustered_mean(values: list[float]):
    assert stratified_mean([papers("a", *values)]) == clustered_mean(papers("a", *values))


@given(VALUES, VALUES)
def test_the_interval_of_two_strata_is_half_that_of_their_welch_sum(one: list[float], other: list[float]):
    found = stratified_mean([papers("a", *one), papers("b", *other)])
    if len(one) + len(other) < 5:
        assert found.low is None
        return
    errors = [float(np.var(values, ddof=1)) / len(values) for values in (one, other)]
    assert found.low is not None
    assert found.high is not None
    middle = (np.mean(one) + np.mean(other)) / 2
    assert found.low - 1e-9 <= middle <= found.high + 1e-9
    assert found.high - found.low >= 2 * 1.9599 * np.sqrt(sum(errors)) / 2 - 1e-9
