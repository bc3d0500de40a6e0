"""Chance as computed equals chance as played."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.errors import OptionError
from inquitree_gym.projection.judges.alignment import projection_score
from inquitree_gym.projection.judges.chance import chance_f1


def enumerated(claims: int, right: float, wrong: float) -> float:
    """The mean F1 over every way to state, deny or leave out each claim, by the formula as printed."""
    weights = {1.0: right, -1.0: wrong, np.nan: 1 - right - wrong}
    ways = np.array(list(product(weights, repeat=claims)))
    likely = [np.prod([weights[each] for each in way]) for way in product(weights, repeat=claims)]
    return float(projection_score(ways, np.zeros((len(ways), 0))).f1 @ np.array(likely))


@given(st.integers(1, 6), st.floats(0, 1), st.floats(0, 1))
def test_chance_is_the_mean_over_all_projections(claims, right, share):
    wrong = (1 - right) * share
    assert chance_f1(claims, right, wrong) == pytest.approx(enumerated(claims, right, wrong), abs=1e-9)


@pytest.mark.parametrize("claims", [1, 2, 3, 5, 50])
def test_a_coin_that_knows_the_variables_earns_one_half_for_any_number_of_claims(claims):
    assert chance_f1(claims) == pytest.approx(0.5, abs=1e-12)
    assert chance_f1(claims, right=0.8, wrong=0.2) == pytest.approx(0.8, abs=1e-12)


def test_silence_earns_nothing_and_the_truth_everything():
    assert chance_f1(4, right=0, wrong=0) == 0
    assert chance_f1(4, right=0, wrong=1) == 0
    assert chance_f1(4, right=1, wrong=0) == pytest.approx(1)


@pytest.mark.parametrize("given_values", [(0, 0.5, 0.5), (3, -0.1, 0.5), (3, 0.6, 0.5), (3, 0.5, -1)])
def test_impossible_values_are_refused(given_values):
    with pytest.raises(OptionError, match="at most 1, not"):
        chance_f1(*given_values)
