"""The mean over strata, as the paper averages its domains."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.results.statistics import clustered_mean, stratified_mean

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
    assert (found.low, found.high) == (None, None)


def test_values_of_none_and_empty_strata_are_absent():
    found = stratified_mean([papers("a", 0.2, None), papers("b", None), papers("c", 0.4)])
    assert (found.mean, found.trees) == (pytest.approx(0.3), 2)
    assert stratified_mean([papers("a", None), []]).mean is None


@given(VALUES)
def test_one_stratum_is_the_clustered_mean(values: list[float]):
    assert stratified_mean([papers("a", *values)]) == clustered_mean(papers("a", *values))
