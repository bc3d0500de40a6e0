"""Calibration of stated beliefs: known answers, and the bounds of any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.inquiry.vigilance import AUC, BRIER, Belief, Calibration, calibration

beliefs = st.lists(st.builds(Belief, st.booleans(), st.floats(0, 1)))


def test_known_answers():
    found = Calibration.of([Belief(True, 0.8), Belief(True, 0.5), Belief(False, 0.5), Belief(False, 0.0)])
    assert found.stated == 4
    assert found.brier == pytest.approx((0.04 + 0.25 + 0.25 + 0.0) / 4)
    assert found.auc == pytest.approx((1 + 1 + 0.5 + 1) / 4)


def test_absent_is_not_zero():
    assert Calibration.of([]) == Calibration(0, None, None)
    assert Calibration.of([Belief(False, 0.0)]) == Calibration(1, 0.0, None)
    assert Calibration.of([Belief(True, 0.0)]) == Calibration(1, 1.0, None)


@given(beliefs)
def test_the_opposite_belief_has_the_opposite_auc(given_beliefs: list[Belief]):
    one = Calibration.of(given_beliefs)
    other = Calibration.of([Belief(fake, 1 - stated) for fake, stated in given_beliefs])
    assert one.brier is None or 0 <= one.brier <= 1
    assert (one.auc is None) == (len({fake for fake, _ in given_beliefs}) < 2)
    if one.auc is not None and len({round(stated, 9) for _, stated in given_beliefs}) == len(given_beliefs):
        assert one.auc + other.auc == pytest.approx(1)


def test_trees_count_once_however_many_beliefs_they_have():
    found = calibration({"a": [Belief(True, 1.0)] * 9, "b": [Belief(True, 0.0), Belief(False, 1.0)], "c": []})
    assert (found[BRIER].mean, found[BRIER].trees) == (0.5, 2)
    assert (found[AUC].mean, found[AUC].trees) == (0.0, 1)
