"""The ideal observer: its posterior is the brute-force one, and its beliefs are calibrated."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import log2, prod

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.courses import choose_cover, choose_greedy, play_courses, replay
from inquitree_gym.inquiry.exam import Exam, exam_return
from inquitree_gym.inquiry.observer import (
    UNKNOWN,
    Design,
    axis_beliefs,
    believe,
    design_of,
    expected_return,
    expected_scores,
    fake_chances,
    information,
    likeliest_poles,
    observe,
    outcome_beliefs,
    promise,
    start,
    update,
)
from inquitree_gym.inquiry.players import mark
from inquitree_gym.sheets import Sheet
from inquitree_gym.trees.worlds import in_world
from tests.worlds import read, world_document, world_trees

DESIGN = Design(
    Exam((2, 2, 2, 3, 2), ((0,), (1, 2), (3,), (4, 0), (2,))),
    prerequisites=(0, 1, 1, 2),
    homes=(0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3),
    reads=((0,), (1,), (), (0, 2), (3,), (1,), (3,), (2,), (4,), (3, 4), (0,), ()),
)
"""Four subtopics, twelve studies of which two are controls, five axes of which one has three poles."""


@st.composite
def designs(draw, most=3):
    poles = tuple(draw(st.lists(st.integers(2, 3), min_size=1, max_size=most)))
    axes = st.lists(st.integers(0, len(poles) - 1), max_size=2, unique=True).map(tuple)
    reads = tuple(draw(st.lists(axes, min_size=1, max_size=4)))
    return Design(Exam(poles, tuple((axis,) for axis in range(len(poles)))), (0,), (0,) * len(reads), reads)


@st.composite
def shown_courses(draw):
    """Draw a design with up to four showings of possible outcomes, few enough to list all latent draws."""
    design = draw(designs())
    studies = draw(st.lists(st.integers(0, len(design.reads) - 1), max_size=4))
    return design, [(study, draw(st.integers(0, design.outcomes(study) - 1))) for study in studies]


def keys_of(design, study):
    return list(product(*(range(design.exam.poles[axis]) for axis in design.reads[study])))


def draw_law(design, study, true, level):
    """Return the probability of each outcome of a fresh draw, from the words of the rule."""
    keys = keys_of(design, study)
    law = dict.fromkeys(range(len(keys)), Fraction(0))
    law[true] += 1 - Fraction(level, 10) if design.reads[study] else 1
    fakes = [i for i, key in enumerate(keys) if sum(a != b for a, b in zip(key, keys[true], strict=True)) == 1]
    return law | dict.fromkeys(fakes, Fraction(level, 10) / max(len(fakes), 1))


def likelihood(design, study, shown, true, level):
    """Return the probability of the showings of a study, each drawn afresh."""
    law = draw_law(design, study, true, level)
    return prod((law[outcome] for outcome in shown), start=Fraction(1))


def brute_force(design, showings, levels):
    """Return the weights of levels and worlds."""
    weights = {}
    for level in levels:
        for world in product(*map(range, design.exam.poles)):
            weight = Fraction(1)
            for study in {study for study, _ in showings}:
                shown = [outcome for s, outcome in showings if s == study]
                true = design.outcome(study, [world[axis] for axis in design.reads[study]])
                weight *= likelihood(design, study, shown, true, level)
            weights[level, world] = weight
    return weights


def watch(model, showings):
    belief = start(model)
    for study, shown in showings:
        belief = update(model, belief, np.array([study]), np.array([shown]))
    return belief


@pytest.mark.e2e
@settings(deadline=None, max_examples=120)
@given(shown_courses(), st.sampled_from([None, 0, 1, 3, 5, 9, 10]))
def test_posterior_is_that_of_all_worlds(course, level):
    design, showings = course
    levels = UNKNOWN if level is None else (level,)
    weights = brute_force(design, showings, levels)
    model, total = observe(design, level), sum(weights.values())
    if not total:
        with pytest.raises(OptionError, match=r"is impossible at the fake level assumed; pass level=None"):
            watch(model, showings)
        return
    belief = watch(model, showings)
    for i, each in enumerate(levels):
        expected = sum(w for (this, _), w in weights.items() if this == each) / total
        assert belief.levels[0, i] == pytest.approx(float(expected), abs=1e-12)
    for axis, poles in enumerate(design.exam.poles):
        for pole in range(poles):
            expected = sum(w for (_, world), w in weights.items() if world[axis] == pole) / total
            assert axis_beliefs(model, belief)[0, axis, pole] == pytest.approx(float(expected), abs=1e-12)
    for study, shown in showings:
        poles = keys_of(design, study)[shown]
        true = sum(w for (_, world), w in weights.items() if tuple(world[a] for a in design.reads[study]) == poles)
        chance = fake_chances(model, belief, np.array([study]), np.array([shown]))[0]
        assert chance == pytest.approx(float(1 - true / total), abs=1e-12)


def entropy(chances):
    return -sum(p * log2(p) for p in np.ravel(chances) if p > 0)


@pytest.mark.e2e
@settings(deadline=None, max_examples=60)
@given(shown_courses(), st.sampled_from([None, 1, 3, 6]))
def test_information_is_the_expected_fall_of_entropy_by_one_more_showing(course, level):
    design, showings = course
    model = observe(design, level)
    try:
        belief = watch(model, showings)
    except OptionError:  # two axes of one result are never both changed
        return
    for study in range(len(design.reads)):
        before = outcome_beliefs(model, belief).sum(1)[0, study]
        after, reached = 0.0, 0.0
        for shown in range(design.outcomes(study)):
            chance = next_chance(model, belief, study, shown)
            if chance > 1e-12:
                then = update(model, belief, np.array([study]), np.array([shown]))
                after += chance * entropy(outcome_beliefs(model, then).sum(1)[0, study])
                reached += chance
        assert reached == pytest.approx(1)
        assert information(model, belief)[0, study] == pytest.approx(entropy(before) - after, abs=1e-9)


def next_chance(model, belief, study, shown):
    """Return the probability of the next outcome, from the joint belief in level and outcome."""
    return float((outcome_beliefs(model, belief)[0, :, study] * model.law[:, study, :, shown]).sum())


def test_known_values_of_information():
    design = Design(Exam((2, 2), ((0,), (1,))), (0,), (0, 0, 0), ((0,), (0, 1), ()))
    for level, one, two in [(0, 1.0, 2.0), (3, 0.119, 0.819), (5, 0.0, 0.5), (10, 1.0, 1.0)]:
        model = observe(design, level)
        assert information(model, start(model))[0] == pytest.approx([one, two, 0], abs=5e-4)


def test_promise_is_the_expected_growth_of_the_scores_to_the_power_of_one_and_a_half():
    model = observe(DESIGN, 3)
    belief = watch(model, [(0, 1), (3, 2), (4, 0), (0, 1)])

    def total(belief):
        beliefs = axis_beliefs(model, belief)[0]
        return [max(0, (max(b) * k - 1) / (k - 1)) ** 1.5 for b, k in zip(beliefs, DESIGN.exam.poles, strict=True)]

    for study, axes in enumerate(DESIGN.reads):
        expected = 0.0
        for shown in range(DESIGN.outcomes(study)):
            then = update(model, belief, np.array([study]), np.array([shown]))
            grown = [total(then)[axis] - total(belief)[axis] for axis in axes]
            expected += next_chance(model, belief, study, shown) * sum(grown)
        assert promise(model, belief)[0, study] == pytest.approx(expected, abs=1e-12)


def test_trees_of_any_size_are_split_where_no_result_joins_axes():
    reads = tuple((axis,) for axis in range(30)) * 2
    design = Design(Exam((2,) * 30, tuple((axis,) for axis in range(30))), (0,), (0,) * 60, reads)
    model = observe(design, None)
    assert len(model.blocks) == 30
    beliefs = axis_beliefs(model, watch(model, [(0, 1), (30, 1), (1, 0)]))[0]
    single = Design(Exam((2, 2, 2), ((0,),)), (0,), (0,) * 4, ((0,), (0,), (1,), (2,)))
    small = observe(single, None)
    assert beliefs[:3] == pytest.approx(axis_beliefs(small, watch(small, [(0, 1), (1, 1), (2, 0)]))[0])


def test_too_many_joined_axes_are_refused():
    chain = tuple((axis, axis + 1) for axis in range(12))
    design = Design(Exam((2,) * 13, ((0,),)), (0,), (0,) * 12, chain)
    with pytest.raises(OptionError, match=r"at most 4096 worlds, got 13 joined axes with 8192. Let fewer studies"):
        observe(design, 3)


@pytest.mark.e2e
@pytest.mark.parametrize("level", [*range(11), None])
def test_expected_exam_and_doubts_are_those_that_come_true(level):
    model = observe(DESIGN, level)
    realised, expected, fakes, doubts = [], [], [], []
    for actual in UNKNOWN if level is None else (level,):
        for chooser in (choose_cover, choose_greedy):
            course = play_courses(DESIGN, actual, 16, chooser, model=model, episodes=600, seed=actual)
            belief, doubt = replay(model, course)
            beliefs = axis_beliefs(model, belief)
            expected.append(expected_scores(model, beliefs).mean(1))
            realised.append(mark(DESIGN, course, likeliest_poles(model, beliefs)).score)
            fakes.append(course.fake[course.study >= 0])
            doubts.append(doubt[course.study >= 0])
    gap = np.concatenate(realised) - np.concatenate(expected)
    assert abs(gap.mean()) <= 4 * gap.std() / len(gap) ** 0.5 + 1e-9
    fake, doubt = np.concatenate(fakes), np.concatenate(doubts)
    for low in np.arange(0, 1, 0.2):
        bin_ = (doubt >= low) & (doubt <= low + 0.2)
        spread = (doubt[bin_] * (1 - doubt[bin_])).sum() ** 0.5
        assert abs(fake[bin_].sum() - doubt[bin_].sum()) <= 4 * spread + 1e-9


def test_design_of_a_tree_numbers_axes_subtopics_and_studies_in_file_order():
    tree = read(world_document([2, 3], [[[1], []], [[0, 1]], [[0]]], [[1, 0]]))
    design = design_of(tree)
    assert design == Design(Exam((2, 3), ((1, 0),)), (0, 1, 2), (0, 0, 1, 2), ((1,), (), (0, 1), (0,)))
    for study, node in enumerate(tree.studies):
        stated = keys_of(design, study)
        assert [design.outcome(study, poles) for poles in stated] == list(range(design.outcomes(study)))
        assert ["".join(map(str, poles)) for poles in stated] == list(tree.keys(node.result.axes))


@given(shown_courses(), st.data())
@settings(deadline=None, max_examples=60)
def test_expected_return_is_the_mean_of_returns_over_the_worlds(course, data):
    design, showings = course
    weights = brute_force(design, showings, [3])
    choices = tuple(
        data.draw(st.none() | st.integers(0, design.exam.options(i) - 1)) for i in range(len(design.exam.items))
    )
    credit = [data.draw(st.sampled_from([0.0, 0.25, 1.0])) for _ in design.exam.poles]
    sheet, total = Sheet(choices), sum(weights.values())
    assume(total > 0)  # some showings contradict one another in every world
    mean = sum(float(w / total) * exam_return(design.exam, sheet, world, credit) for (_, world), w in weights.items())
    model = observe(design, 3)
    beliefs = axis_beliefs(model, believe(model, showings))[0]
    assert expected_return(model, beliefs, sheet, credit) == pytest.approx(mean)


def test_the_engine_draws_fakes_by_the_law():
    tree = read(world_document([2, 3], [[[0, 1], [1]], [[0]]], [[1, 0]]))
    law = design_of(tree).fake_law
    for world in product(range(2), range(3)):
        for i, (study, told) in enumerate(zip(tree.studies, in_world(tree, world).studies, strict=True)):
            true, *fakes = (study.outcomes.index(wordings) for wordings in told.outcomes)
            assert dict(zip(*np.unique(fakes, return_counts=True), strict=True)) == dict.fromkeys(fakes, 1)
            assert law[i, true, fakes] == pytest.approx(1 / len(fakes))


@given(world_trees())
def test_every_tree_can_be_observed(tree):
    design = design_of(tree)
    model = observe(design, None)
    beliefs = axis_beliefs(model, start(model))[0]
    for axis, poles in enumerate(design.exam.poles):
        assert beliefs[axis] == pytest.approx([1 / poles] * poles + [0] * (beliefs.shape[1] - poles))
    assert ((information(model, start(model))[0] > 1e-3) == [bool(axes) for axes in design.reads]).all()
