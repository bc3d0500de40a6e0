"""The score of an alignment and its area under the levels: the worked numbers, and what holds for every matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from inquitree_gym.projection.judges.alignment import (
    ORDERS,
    Alignment,
    area_under_levels,
    level_weights,
    projection_score,
)

NONE = np.zeros(0)
NAN = np.nan
HALVES = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0])
PAIRS = st.integers(1, 8).flatmap(lambda size: arrays(np.float64, size, elements=HALVES | st.just(NAN)))
EXTRAS = st.integers(0, 3).flatmap(lambda size: arrays(np.float64, size, elements=st.floats(-1, 1)))
AUCS = [
    ("GPT-5, all", (0.6127, 0.7478, 0.7660), 1.43715),
    ("Gemini 2.5 Pro, all", (0.5256, 0.7172, 0.7044), 1.3322),
    ("Gemini 3.1 Pro, all", (0.6033, 0.7545, 0.7639), 1.4381),
    ("Gemini 2.5 Pro, mechanical", (0.3398, 0.5431, 0.6293), 1.02765),
]


def f1(pairs: list[float], extras: list[float] | None = None, **options: str) -> float:
    return float(projection_score(np.array(pairs), np.array(extras or NONE), **options).f1)


# Worked numbers


@pytest.mark.parametrize(("f1s", "area"), [row[1:] for row in AUCS], ids=[row[0] for row in AUCS])
def test_the_area_is_the_trapezoid_with_unit_steps(f1s: tuple[float, ...], area: float):
    assert area_under_levels(np.array(f1s)) == pytest.approx(area, abs=1e-9)
    assert area_under_levels(np.array(f1s)) == pytest.approx(2 * np.dot([0.25, 0.5, 0.25], f1s))


def test_pairs_and_an_extra_that_bears_on_one_claim():
    alignment = Alignment(
        analogous=("a", "b", "c"),
        extraneous=("d",),
        pair_ratings=np.array([[1, 1], [1, 1], [-1, -1]], float),
        extra_ratings=np.array([[[1, 1], [0, 0], [0, 0]]], float),
    )
    score = alignment.score()
    assert (score.true_positives, score.false_positives, score.relevant) == pytest.approx((7 / 3, 1, 4))
    assert (score.precision, score.recall, score.f1) == pytest.approx((0.7, 0.5833, 0.6364), abs=5e-5)


def test_ratings_that_differ_between_the_orders_count_half():
    ratings = np.array([[1, 1], [1, 0], [-1, 0]], float)
    alignment = Alignment(("a", "b", "c"), (), ratings, np.zeros((0, 3, ORDERS)))
    np.testing.assert_array_equal(alignment.pairs, [1, 0.5, -0.5])
    score = alignment.score()
    assert (score.precision, score.recall, score.f1) == pytest.approx((0.75, 0.5, 0.6))


@pytest.mark.parametrize(
    ("pairs", "extras", "variant", "score"),
    [
        *(([1] * right + [left] * (3 - right), [], "paper", score)
          for right, score in ((3, 1), (2, 0.8), (1, 0.5), (0, 0)) for left in (NAN, 0)),
        ([1, 1, 1], [0, 0, 0], "paper", 1),
        ([1, 1, 1], [0, 0, 0], "strict", 2 / 3),
        ([1] * 3, [1 / 3], "paper", 0.9090909),
        ([1] * 3, [-1 / 3], "paper", 0.9473684),
    ],
)  # fmt: skip
def test_worked_scores(pairs: list[float], extras: list[float], variant: str, score: float):
    assert f1(pairs, extras, variant=variant) == pytest.approx(score)


@pytest.mark.parametrize("claims", [1, 3, 8])
def test_a_coin_that_knows_the_variables_earns_one_half(claims: int):
    guesses = np.array(np.meshgrid(*[[-1.0, 1.0]] * claims)).reshape(claims, -1).T
    scores = projection_score(guesses, np.zeros((len(guesses), 0)))
    assert scores.f1.mean() == pytest.approx(0.5)
    np.testing.assert_allclose(scores.f1, (guesses > 0).sum(axis=1) / claims)


# What holds for every matrix


@given(PAIRS, EXTRAS, st.randoms(use_true_random=False))
def test_the_order_of_claims_and_extras_does_not_matter(pairs, extras, random):
    mixed, other = list(pairs), list(extras)
    random.shuffle(mixed)
    random.shuffle(other)
    for variant in ("paper", "strict"):
        assert f1(mixed, other, variant=variant) == pytest.approx(f1(list(pairs), list(extras), variant=variant))


@given(PAIRS, EXTRAS)
def test_scores_lie_in_their_bounds(pairs, extras):
    for variant in ("paper", "strict"):
        score = projection_score(pairs, extras, variant=variant)
        assert 0 <= score.f1 <= 1
        assert 0 <= score.recall <= 1
        assert 0 <= score.precision <= 1
        assert score.f1 == 0 if score.true_positives == 0 else score.f1 > 0 or score.true_positives < 1e-9
    assert projection_score(pairs, extras).relevant >= len(pairs)


@given(PAIRS, EXTRAS)
def test_a_missing_pair_counts_as_an_unrelated_one_and_a_better_pair_never_less(pairs, extras):
    assert f1(list(pairs), list(extras)) == f1(list(np.nan_to_num(pairs)), list(extras))
    better = pairs.copy()
    better[0] = 1
    assert f1(list(better), list(extras)) >= f1(list(pairs), list(extras)) - 1e-12


@given(st.lists(st.tuples(PAIRS, EXTRAS), min_size=1, max_size=5))
def test_many_matrices_at_once_score_as_each_alone(matrices):
    size, most = max(len(pairs) for pairs, _ in matrices), max(len(extras) for _, extras in matrices)
    rows = np.array([np.pad(pairs, (0, size - len(pairs)), constant_values=NAN) for pairs, _ in matrices])
    others = np.array([np.pad(extras, (0, most - len(extras)), constant_values=NAN) for _, extras in matrices])
    sizes = np.array([len(pairs) for pairs, _ in matrices])
    together = projection_score(rows, others.reshape(len(matrices), most), claims=sizes)
    for k, (pairs, extras) in enumerate(matrices):
        np.testing.assert_allclose([field[k] for field in together], projection_score(pairs, extras))


@given(st.integers(1, 6), st.data())
def test_the_weights_of_the_levels_are_those_of_the_area(levels: int, data):
    scores = data.draw(arrays(np.float64, levels, elements=st.floats(0, 1)))
    weights = level_weights(levels)
    assert weights.sum() == pytest.approx(1)
    assert area_under_levels(scores) == pytest.approx(weights @ scores * max(1, levels - 1))


def test_an_alignment_with_a_rating_that_is_due_and_missing_is_incomplete():
    extras = np.zeros((0, 2, ORDERS))
    assert Alignment(("a", None), (), np.array([[1, 1], [NAN, NAN]]), extras).complete
    assert not Alignment(("a", "b"), (), np.array([[1, 1], [1, NAN]]), extras).complete
