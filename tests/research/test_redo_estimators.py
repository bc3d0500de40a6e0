"""Estimators of redo probabilities, on simulated agents whose probabilities are known."""

from __future__ import annotations

import numpy as np
import pytest

from research.redo_estimators import estimates, simulate, study


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_an_agent_that_never_or_always_redoes(chance: float):
    found = simulate(np.random.default_rng(0), 4, 12, chance, 10, 3)
    # The first result comes on turn 2. Without redos three more follow, up to turn 11. With them each turn has one.
    shown = 10 if chance else 4
    assert found[:, 0].tolist() == [[shown, shown * chance, 0, 0]] * 3
    assert found[:, 1].tolist() == [[1, 1, 0, 0] if chance else [4, 0, 0, 0]] * 3


def test_every_estimator_is_the_share_where_all_episodes_are_alike():
    counts = np.array([4, 1, 6, 3])
    found = estimates(np.broadcast_to(counts, (5, 2, 2, 4)))
    known = {"redo_rate": 0.4, "hit_rate": 0.25, "false_alarm_rate": 0.5}
    assert {(rate, name): each.mean for (rate, name), each in found.items()} == {
        key: pytest.approx(known[key[0]]) for key in found
    }
    assert len(found) == 3 * 4


@pytest.mark.parametrize(("trees", "level", "chance"), [(5, 3, 0.8), (18, 6, 0.5)])
def test_pooling_over_trees_is_unbiased_and_covers_where_means_over_episodes_do_not(trees, level, chance):
    rows = list(study(200, 5, seed=1, trees=[trees], levels=[level], chances=[chance], limits=[11]))
    pooled = [row for row in rows if row.estimator == "pooled over trees"]
    assert {row.rate for row in pooled} == {"redo_rate", "hit_rate", "false_alarm_rate"}
    assert max(abs(row.bias) for row in pooled) < 0.008
    assert min(row.covered for row in pooled) > 0.9, "four standard errors of 200 samples below 0.95 is 0.89"
    means = [row for row in rows if row.estimator == "mean over episodes"]
    assert max(row.bias for row in means) < -0.015
    if trees == 18:
        assert max(row.covered for row in means) < 0.85
