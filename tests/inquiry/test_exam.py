"""The exam: scores are fair over worlds, and layouts depend on the whole key."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.inquiry.exam import (
    Exam,
    axis_points,
    brier_by_axis,
    draw_layout,
    exam_of,
    exam_return,
    random_sheet,
    sheet_of_beliefs,
    sheet_of_world,
)
from inquitree_gym.sheets import Sheet
from tests.worlds import read, world_document

CREDITS = st.sampled_from([0.0, 0.25, 1.0])


@st.composite
def exams(draw):
    poles = tuple(draw(st.lists(st.integers(2, 3), min_size=1, max_size=5)))
    axes = st.lists(st.integers(0, len(poles) - 1), min_size=1, max_size=2, unique=True).map(tuple)
    return Exam(poles, tuple(draw(st.lists(axes, min_size=1, max_size=6))))


@st.composite
def answered(draw):
    exam = draw(exams())
    choices = [draw(st.none() | st.integers(0, exam.options(item) - 1)) for item in range(len(exam.items))]
    return exam, Sheet(tuple(choices))


def worlds(exam):
    return list(product(*map(range, exam.poles)))


def credits_of(exam, data):
    return [data.draw(CREDITS) for _ in exam.poles]


@given(answered(), st.data())
def test_return_lies_in_its_range_in_every_world(given_sheet, data):
    exam, sheet = given_sheet
    credit = credits_of(exam, data)
    assert all(-1 <= exam_return(exam, sheet, world, credit) <= 1 for world in worlds(exam))


@given(answered())
def test_mean_of_a_fixed_sheet_over_all_worlds_is_exactly_0_on_every_axis(given_sheet):
    exam, sheet = given_sheet
    points = [axis_points(exam, sheet, world) for world in worlds(exam)]
    assert [sum(axis) for axis in zip(*points, strict=True)] == [0] * len(exam.poles)


@given(exams(), st.data())
def test_right_sheet_returns_the_mean_credit_of_the_examined_axes(exam, data):
    world = data.draw(st.sampled_from(worlds(exam)))
    credit = credits_of(exam, data)
    examined = [Fraction(c) * (n > 0) for c, n in zip(credit, exam.readers, strict=True)]
    expected = float(sum(examined) / len(examined))
    assert exam_return(exam, sheet_of_world(exam, world), world, credit) == expected


@given(answered(), st.data())
def test_return_is_linear_in_the_axes(given_sheet, data):
    exam, sheet = given_sheet
    world = data.draw(st.sampled_from(worlds(exam)))
    credit = credits_of(exam, data)
    points = axis_points(exam, sheet, world)
    one_by_one = [exam_return(exam, sheet, world, np.eye(len(credit))[a] * credit[a]) for a in range(len(credit))]
    assert exam_return(exam, sheet, world, credit) == pytest.approx(sum(one_by_one))
    for value, c, p in zip(one_by_one, credit, points, strict=True):
        assert value == float(Fraction(c) * p / (exam.scale * len(points)))


def test_axis_score_is_the_mean_over_its_items():
    exam = Exam((2, 3), ((0,), (0, 1), (1,)))
    sheet = Sheet((0, exam.option(1, (1, 2)), None))
    # axis 0: right and wrong. axis 1: right and left out
    assert [Fraction(p, exam.scale) for p in axis_points(exam, sheet, (0, 2))] == [0, Fraction(1, 2)]
    # a wrong one of three poles costs a half
    assert [Fraction(p, exam.scale) for p in axis_points(exam, sheet, (1, 0))] == [0, Fraction(-1, 4)]


@given(exams(), st.data())
def test_option_and_stated_poles_are_inverse_and_follow_the_order_of_the_keys(exam, data):
    item = data.draw(st.integers(0, len(exam.items) - 1))
    stated = [exam.stated(item, option) for option in range(exam.options(item))]
    assert stated == list(product(*(range(exam.poles[axis]) for axis in exam.items[item])))
    assert [exam.option(item, poles) for poles in stated] == list(range(len(stated)))


@pytest.mark.e2e
@settings(max_examples=25, deadline=None)
@given(exams(), st.data())
def test_sheet_of_beliefs_has_the_largest_expected_score(exam, data):
    weights = [data.draw(st.lists(st.integers(1, 3), min_size=k, max_size=k)) for k in exam.poles]
    beliefs = [[Fraction(w, sum(row)) for w in row] for row in weights]

    def expected(sheet):
        total = [Fraction(0)] * len(exam.poles)
        for world in worlds(exam):
            weight = np.prod([beliefs[a][p] for a, p in enumerate(world)], initial=Fraction(1))
            total = [t + weight * p for t, p in zip(total, axis_points(exam, sheet, world), strict=True)]
        return total

    best = sheet_of_beliefs(exam, beliefs)
    for item in range(len(exam.items)):
        for choice in (None, *range(exam.options(item))):
            other = Sheet((*best.choices[:item], choice, *best.choices[item + 1 :]))
            assert all(b >= o for b, o in zip(expected(best), expected(other), strict=True))
        even = all(len(set(weights[axis])) == 1 for axis in exam.items[item])
        assert (best.choices[item] is None) == even


def test_random_sheet_takes_every_option_equally_often():
    exam = Exam((2, 3), ((0,), (0, 1)))
    rng = np.random.default_rng(0)
    counts = [Counter(column) for column in zip(*(random_sheet(exam, rng).choices for _ in range(6000)), strict=True)]
    assert [len(count) for count in counts] == [2, 6]
    assert all(abs(n - 6000 / len(count)) < 5 * 6000**0.5 / 2 for count in counts for n in count.values())


def test_brier_is_the_mean_squared_error_of_the_given_probabilities_by_axis():
    exam = Exam((2, 2, 2), ((0,), (0, 1), (2,)))
    sheet = Sheet((0, exam.option(1, (0, 1)), 1), (0.8, 0.6, None))
    assert brier_by_axis(exam, sheet, (0, 0, 1)) == pytest.approx(((0.04 + 0.36) / 2, 0.36, None))
    assert brier_by_axis(exam, Sheet((0, 1, 1)), (0, 0, 1)) == (None, None, None)


def test_layouts_are_permutations_that_depend_on_seed_tree_and_set():
    exam = Exam((2, 2, 3), ((0, 1), (1, 2), (0,)))
    keys = [(seed, tree, which) for seed in range(40) for tree in "ab" for which in ("any", "train")]
    layouts = [draw_layout(exam, *key) for key in keys]
    assert all([sorted(item) for item in layout] == [[*range(4)], [*range(6)], [0, 1]] for layout in layouts)
    assert len(set(layouts)) > len(layouts) * 0.95
    assert layouts == [draw_layout(exam, *key) for key in keys]


def test_every_order_is_drawn_equally_often():
    exam = Exam((3,), ((0,),))
    counts = Counter(draw_layout(exam, seed, "t", "any")[0] for seed in range(6000))
    assert len(counts) == 6
    assert all(abs(n - 1000) < 150 for n in counts.values())


def test_exam_of_a_tree_names_axes_by_their_place_and_options_in_the_order_of_its_keys():
    tree = read(world_document([2, 3], [[[0], [1]]], [[1], [1, 0]]))
    exam = exam_of(tree)
    assert exam == Exam((2, 3), ((1,), (1, 0)))
    for item, conclusion in enumerate(tree.conclusions):
        stated = ["".join(map(str, exam.stated(item, option))) for option in range(exam.options(item))]
        assert stated == list(tree.keys(conclusion.axes))
