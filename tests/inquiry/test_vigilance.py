"""Signal detection: values worked out by hand, observers of known sensitivity, and what no count may do."""

from __future__ import annotations

import math
from dataclasses import astuple, replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from inquitree_gym.inquiry.vigilance import (
    CRITERION,
    D_PRIME,
    FALSE_ALARMS,
    GAP,
    HITS,
    SENSITIVITY,
    Counts,
    Trial,
    count,
    sensitivity,
    sensitivity_difference,
    slopes,
)
from inquitree_gym.results.statistics import Estimate

z = NormalDist().inv_cdf
phi = NormalDist().cdf
WHOLE = st.integers(0, 60)


def counts_of(draw: tuple[int, int, int, int]) -> Counts:
    hits, misses, false, right = draw
    return Counts(hits + misses, hits, false + right, false)


COUNTS = st.tuples(WHOLE, WHOLE, WHOLE, WHOLE).map(counts_of)
BOTH_KINDS = COUNTS.filter(lambda counts: bool(counts.fakes and counts.trues))


def test_the_correction_is_one_half_to_every_cell_or_split_as_the_trials_are():
    counts = Counts(20, 15, 20, 4)
    hit, false = z(15.5 / 21), z(4.5 / 21)
    assert (counts.hit_rate, counts.false_alarm_rate, counts.gap) == pytest.approx((0.75, 0.2, 0.55))
    assert (counts.d_prime, counts.criterion) == pytest.approx((hit - false, -(hit + false) / 2))
    assert Counts(9, 6, 1, 0).d_prime == pytest.approx(z(6.9 / 10.8) - z(0.1 / 1.2))


@given(BOTH_KINDS)
def test_sensitivity_is_finite_grows_with_hits_and_turns_its_sign_with_the_doubts(counts: Counts):
    assert math.isfinite(counts.d_prime)
    assert math.isfinite(counts.criterion)
    fakes, hits, trues, false = astuple(counts)
    turned = Counts(fakes, fakes - hits, trues, trues - false)
    assert (turned.d_prime, turned.criterion) == pytest.approx((-counts.d_prime, -counts.criterion), abs=1e-9)
    if hits < fakes:
        more = replace(counts, hits=hits + 1)
        assert more.d_prime > counts.d_prime
        assert more.criterion < counts.criterion


@pytest.mark.parametrize("counts", [Counts(), Counts(fakes=5, hits=2), Counts(trues=5, false_alarms=1)])
def test_without_both_kinds_of_results_there_is_no_sensitivity(counts: Counts):
    assert counts.gap is counts.d_prime is counts.criterion is None
    assert (counts.hit_rate, counts.false_alarm_rate) == (
        2 / 5 if counts.fakes else None,
        1 / 5 if counts.trues else None,
    )


@given(st.integers(1, 50), st.integers(1, 50), st.integers(0, 10))
def test_whoever_redoes_both_alike_has_no_sensitivity_however_many_of_each_there_are(fakes, trues, tenths):
    counts = Counts(10 * fakes, tenths * fakes, 10 * trues, tenths * trues)
    assert counts.d_prime == pytest.approx(0, abs=1e-9)
    assert np.sign(counts.criterion) == np.sign(5 - tenths) or abs(counts.criterion) < 1e-9


def test_trials_are_added_up_by_tree_and_shares_of_answers_count_as_shares():
    trials = [Trial("a", True, 1.0), Trial("a", True, 0.25), Trial("a", False, 0.0), Trial("b", False, 0.5)]
    assert count(trials) == {"a": Counts(2, 1.25, 1, 0), "b": Counts(0, 0, 1, 0.5)}


def test_estimates_are_means_of_what_each_tree_gives_by_itself():
    by_tree = {"big": Counts(100, 100, 100, 0), "small": Counts(2, 1, 2, 1), "no fakes": Counts(0, 0, 4, 1)}
    found = sensitivity(by_tree)
    assert tuple(found) == SENSITIVITY
    assert found[HITS] == Estimate(0.75, None, None, 2, 2, found[HITS].values)
    assert found[FALSE_ALARMS].mean == pytest.approx((0 + 0.5 + 0.25) / 3)
    assert found[GAP].mean == pytest.approx(0.5)
    assert found[D_PRIME].mean == pytest.approx((2 * z(100.5 / 101) + 0) / 2)
    assert found[CRITERION].mean == pytest.approx(0, abs=1e-9)


def test_differences_are_taken_tree_by_tree_over_the_trees_that_both_have():
    ours = {f"t{i}": Counts(10, 5 + i % 2, 10, 0) for i in range(6)} | {"ours alone": Counts(10, 0, 10, 9)}
    theirs = {f"t{i}": Counts(10, 3 + i % 2, 10, 1) for i in range(6)}
    found = sensitivity_difference(ours, theirs)
    assert found[HITS][:3] == pytest.approx((0.2, 0.2, 0.2))
    assert found[FALSE_ALARMS].mean == pytest.approx(-0.1)
    assert found[GAP].trees == 6
    assert found[D_PRIME].low > 0


def observe(seed: int, sharpness: float, criterion: float, trees: int = 18, trials: int = 400) -> list[Trial]:
    """An observer whose evidence is N(±d′/2, 1) and who doubts where it lies above the criterion."""
    rng = np.random.default_rng(seed)
    fake = rng.random((trees, trials)) < rng.choice([0.3, 0.6])
    doubted = rng.normal(np.where(fake, sharpness / 2, -sharpness / 2)) > criterion
    return [Trial(f"t{t}", bool(fake[t, i]), float(doubted[t, i])) for t in range(trees) for i in range(trials)]


@pytest.mark.parametrize("sharpness", [0.0, 0.7, 1.5, 2.5])
@pytest.mark.parametrize("criterion", [-0.5, 0.0, 0.8])
def test_a_simulated_observer_is_found_again(sharpness: float, criterion: float):
    found = sensitivity(count(observe(7, sharpness, criterion)))
    for name, known in ((D_PRIME, sharpness), (CRITERION, criterion)):
        assert found[name].mean == pytest.approx(known, abs=0.1)
        assert found[name].low - 0.05 < known < found[name].high + 0.05, "the correction pulls by less than 0.05"
    assert found[HITS].mean == pytest.approx(phi(sharpness / 2 - criterion), abs=0.03)


@pytest.mark.parametrize(("fakes", "trues"), [(12, 28), (28, 12)])
@pytest.mark.parametrize("chance", [0.02, 0.1, 0.5, 0.95])
def test_on_average_chance_has_hardly_any_sensitivity_even_with_few_trials_and_unequal_numbers(fakes, trues, chance):
    hits, false = (binom.pmf(range(n + 1), n, chance) for n in (fakes, trues))
    table = [[Counts(fakes, i, trues, j).d_prime for j in range(trues + 1)] for i in range(fakes + 1)]
    assert abs(hits @ np.array(table) @ false) < 0.1


def lines(hit: tuple[float, float], false: tuple[float, float], tree: str = "a", level: int = 3) -> list[Trial]:
    """Answers that lie on a line each, intercept and slope."""
    places = (0.0, 0.25, 0.5, 1.0)
    return [
        Trial(tree, fake, start + slope * at, at, level)
        for fake, (start, slope) in ((True, hit), (False, false))
        for at in places
    ]


def test_slopes_are_those_of_the_lines():
    found = slopes(lines((0.9, -0.5), (0.1, 0.2)))
    assert (found[HITS].mean, found[FALSE_ALARMS].mean, found[GAP].mean) == pytest.approx((-0.5, 0.2, -0.7))
    assert found[GAP].low is None


def test_what_trees_and_levels_differ_by_or_show_at_one_place_is_no_slope():
    trials = []
    for number in range(6):
        trials += lines((0.1 * number, 0.0), (0.0, 0.0), f"t{number}")
        trials += [replace(trial, at=trial.at + 5, doubted=1.0) for trial in lines((0, 0), (0, 0), f"t{number}", 9)]
    found = slopes(trials)
    assert (found[HITS][:3], found[GAP].trees) == (pytest.approx((0, 0, 0), abs=1e-12), 6)
    found = slopes([Trial("a", True, 1.0, 0.3, level) for level in (3, 3, 6)] + lines((0.5, 0.25), (0, 0), "b"))
    assert (found[HITS].mean, found[HITS].trees) == (pytest.approx(0.25), 1)
    assert slopes([])[GAP] == Estimate(None, None, None, 0, 0)


def test_a_fading_observer_has_a_slope_below_zero_and_a_steady_one_does_not():
    rng = np.random.default_rng(11)
    for fading in (0.0, 0.6):
        trials = []
        for number in range(18 * 150):
            at, fake = float(rng.random()), bool(rng.random() < 0.5)
            chance = (0.8 - fading * at) if fake else 0.1
            trials.append(Trial(f"t{number % 18}", fake, float(rng.random() < chance), at, 3))
        found = slopes(trials)[GAP]
        assert found.low < -fading < found.high
        assert (found.high < 0) == (fading > 0)
