"""Simulated courses: fakes follow their law, choosers keep the rules, and marks are those of the exam."""

from __future__ import annotations

from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.inquiry.courses import (
    best_course,
    choose_blind,
    choose_course,
    choose_cover,
    choose_greedy,
    choose_planned,
    draw_shown,
    plan,
    play_courses,
    replay,
    stated_poles,
)
from inquitree_gym.inquiry.exam import Exam, exam_return, sheet_of_beliefs
from inquitree_gym.inquiry.observer import Design, axis_beliefs, observe, promise
from inquitree_gym.inquiry.players import (
    PLAYERS,
    answer_exactly,
    answer_first,
    answer_majority,
    compare_players,
    figure,
    mark,
    tellable_fakes,
)
from inquitree_gym.seeds import hash_words
from inquitree_gym.sheets import Sheet
from tests.inquiry.test_observer import DESIGN

N = 40_000
KEYS = hash_words(np.zeros(N, np.uint64), np.arange(N))
CHOOSERS = {"cover": choose_cover, "blind": choose_blind, "greedy": choose_greedy, "bayes": PLAYERS["bayes"][0]}


def showings(study, run, level, *, true=0):
    columns = (np.full(N, value) for value in (study, run, true))
    return draw_shown(DESIGN, level, KEYS, *columns)


@pytest.mark.e2e
@pytest.mark.parametrize("level", range(11))
def test_rate_of_fakes_at_each_showing_is_the_level(level):
    for study, run in [(0, 0), (0, 1), (0, 5), (3, 0), (3, 2), (4, 1)]:
        rate = (showings(study, run, level) != 0).mean()
        assert abs(rate - level / 10) <= 4 * (level / 10 * (1 - level / 10) / N) ** 0.5


@pytest.mark.e2e
def test_fakes_are_nested_over_levels_and_show_the_same():
    for study, run in product((0, 3, 4), (0, 1, 3)):
        shown = [showings(study, run, level) for level in range(11)]
        for low, high in pairwise(shown):
            assert (high[low != 0] == low[low != 0]).all()


def test_fakes_change_one_axis_and_are_all_equally_likely():
    for study, possible in [(0, [1]), (3, [1, 2]), (4, [1, 2]), (9, [1, 2, 4])]:
        shown, counts = np.unique(showings(study, 0, 10), return_counts=True)
        assert list(shown) == possible
        assert list(DESIGN.fake_law[study, 0, possible]) == [1 / len(possible)] * len(possible)
        assert np.abs(counts / N - 1 / len(possible)).max() < 0.01


def test_controls_are_never_faked():
    assert not showings(2, 0, 10).any()


@pytest.mark.e2e
def test_repetition_draws_afresh():
    first, third = (showings(0, run, 3) for run in (0, 2))
    assert abs((first == third).mean() - (0.7**2 + 0.3**2)) < 0.012


def rules_kept(course, limit):
    """Check that every step was open and that the turns suffice. Return the turns used by each episode."""
    for world, studies, runs, shown, fakes in zip(*course, strict=True):
        seen, counts, left, last = 0, [0] * len(DESIGN.reads), limit + 1, -1
        for study, run, outcome, fake in zip(studies, runs, shown, fakes, strict=True):
            if study < 0:
                last = -2
                continue
            assert last != -2, "a showing after the end"
            home = DESIGN.homes[study]
            assert not DESIGN.prerequisites[home] & ~seen
            assert run == counts[study]
            assert fake == (DESIGN.outcome(study, world[list(DESIGN.reads[study])]) != outcome)
            left -= 1 if study == last else 4 if counts[study] else 3
            assert left >= 0
            seen, last = seen | 1 << home, study
            counts[study] += 1


@pytest.mark.parametrize("name", CHOOSERS)
@pytest.mark.parametrize("limit", [1, 2, 8, 13, 20])
def test_choosers_keep_to_prerequisites_and_turns(name, limit):
    model = observe(DESIGN, 3)
    course = play_courses(DESIGN, 3, limit, CHOOSERS[name], model=model, episodes=60, seed=limit)
    rules_kept(course, limit)
    longest = (course.study >= 0).sum(1).max(initial=0)
    assert (longest == 0) == (limit == 1)
    if name == "cover":
        assert ((course.study >= 0).sum(1) == (limit + 1) // 3).all()
        assert course.run.max() <= 0


def test_cover_draws_an_open_subtopic_evenly_and_then_a_study_evenly():
    model = observe(DESIGN, 0)
    course = play_courses(DESIGN, 0, 5, choose_cover, model=model, episodes=6000, seed=0)
    assert np.bincount(course.study[:, 0], minlength=12)[:3] / 6000 == pytest.approx([1 / 3] * 3, abs=0.03)
    homes = np.array(DESIGN.homes)[course.study[:, 1]]
    assert np.bincount(homes, minlength=4) / 6000 == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0], abs=0.03)


def test_blind_redo_runs_every_study_three_times_in_a_row():
    model = observe(DESIGN, 3)
    course = play_courses(DESIGN, 3, 14, choose_blind, model=model, episodes=20, seed=0)
    assert (course.study.reshape(20, -1, 3) == course.study[:, ::3, None]).all()
    assert (course.run % 3 == np.arange(9) % 3).all()


def test_greedy_goes_through_a_control_to_what_lies_behind_it():
    design = Design(Exam((2,), ((0,),)), (0, 1, 2), (0, 1, 2), ((), (), (0,)))
    model = observe(design, 0)
    course = play_courses(design, 0, 8, choose_greedy, model=model, episodes=3, seed=0)
    assert (course.study == [0, 1, 2]).all()
    short = play_courses(design, 0, 7, choose_greedy, model=model, episodes=3, seed=0)
    assert (short.study == -1).all()


def test_greedy_counts_the_first_step_of_a_way_with_its_end():
    design = Design(Exam((2, 2, 2, 3, 3), ((0,),)), (0, 0, 0b10), (0, 1, 2), ((0, 1), (2,), (3, 4)))
    model = observe(design, 0)
    # 2 bits in three turns against 1 + 3.17 bits in six
    course = play_courses(design, 0, 5, choose_greedy, model=model, episodes=2, seed=0)
    assert (course.study == [1, 2]).all()


def test_greedy_without_repeats_runs_nothing_twice_and_stops_when_nothing_is_left_to_learn():
    model = observe(DESIGN, 3)
    course = play_courses(DESIGN, 3, 90, partial(choose_greedy, repeats=False), model=model, episodes=40, seed=0)
    assert course.run.max() <= 0
    # both controls add nothing, but the way to others may lead through one
    assert ((course.study >= 0).sum(1) >= 10).all()
    certain = observe(DESIGN, 0)
    sure = play_courses(DESIGN, 0, 90, choose_greedy, model=certain, episodes=40, seed=0)
    assert (stated_poles(DESIGN, sure) >= 0).any(1).all()
    assert (sure.study >= 0).sum(1).max() <= 6


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_best_course_reads_as_many_axes_as_any(data):
    n = data.draw(st.integers(1, 4))
    needs = tuple(data.draw(st.integers(0, (1 << i) - 1)) for i in range(n))
    homes = tuple(sorted([*range(n), *data.draw(st.lists(st.integers(0, n - 1), max_size=3))]))
    reads = tuple(tuple(data.draw(st.sets(st.integers(0, 3), max_size=2))) for _ in homes)
    design = Design(Exam((2,) * 4, ((0,),)), needs, homes, reads)
    limit = data.draw(st.integers(0, 12))

    def axes_of(course):
        seen, read = 0, set()
        for study in course:
            if needs[homes[study]] & ~seen:
                return -1
            seen, read = seen | 1 << homes[study], read | set(reads[study])
        return len(read)

    lengths = range((limit + 1) // 3 + 1)
    counts = [max(map(axes_of, product(range(len(homes)), repeat=length))) for length in lengths]
    course = best_course(design, limit)
    assert axes_of(course) == max(counts)
    assert len(course) == counts.index(max(counts))


def test_fixed_course_is_run_as_far_as_turns_allow():
    model = observe(DESIGN, 0)
    chooser = partial(choose_course, course=(1, 3, 6))
    course = play_courses(DESIGN, 0, 5, chooser, model=model, episodes=4, seed=0)
    assert (course.study == [1, 3]).all()


@pytest.fixture(scope="module")
def played():
    model = observe(DESIGN, 3)
    return model, play_courses(DESIGN, 3, 14, choose_blind, model=model, episodes=300, seed=5)


def readings(course, episode):
    for study, outcome in zip(course.study[episode], course.shown[episode], strict=True):
        if study >= 0:
            poles = list(product(*(range(DESIGN.exam.poles[a]) for a in DESIGN.reads[study])))[outcome]
            yield from zip(DESIGN.reads[study], poles, strict=True)


def test_first_reading_and_majority_are_what_they_say(played):
    model, course = played
    first, majority = answer_first(model, course), answer_majority(model, course)
    for episode in range(len(course.world)):
        for axis in range(5):
            poles = [pole for read, pole in readings(course, episode) if read == axis]
            assert first[episode, axis] == (poles[0] if poles else -1)
            most = max(map(poles.count, poles), default=0)
            tied = [pole for pole in poles if poles.count(pole) == most]
            assert majority[episode, axis] in (tied if poles else [-1])
            assert not tied or poles[0] not in tied or majority[episode, axis] == poles[0]


def test_marks_are_those_of_the_exam(played):
    model, course = played
    for answerer in (answer_exactly, answer_first, answer_majority):
        stated = answerer(model, course)
        marks = mark(DESIGN, course, stated)
        for episode in range(100):
            sheet = sheet_of_poles(stated[episode])
            world = course.world[episode]
            read = {axis for axis, _ in readings(course, episode)}
            credit = [float(axis in read) for axis in range(5)]
            assert marks.score[episode] == pytest.approx(exam_return(DESIGN.exam, sheet, world, credit))
            right = [
                choice is not None and DESIGN.exam.stated(item, choice) == tuple(world[list(axes)])
                for item, (choice, axes) in enumerate(zip(sheet.choices, DESIGN.exam.items, strict=True))
            ]
            assert marks.right[episode] == pytest.approx(np.mean(right))


def sheet_of_poles(stated):
    return Sheet(
        tuple(
            DESIGN.exam.option(i, np.maximum(stated[list(axes)], 0)) if (stated[list(axes)] >= 0).any() else None
            for i, axes in enumerate(DESIGN.exam.items)
        )
    )


def test_exact_answers_are_the_sheet_of_the_beliefs(played):
    model, course = played
    beliefs = axis_beliefs(model, replay(model, course)[0])
    stated = answer_exactly(model, course)
    for episode in range(100):
        rows = [beliefs[episode, axis, :poles] for axis, poles in enumerate(DESIGN.exam.poles)]
        assert sheet_of_poles(stated[episode]) == sheet_of_beliefs(DESIGN.exam, rows)


@pytest.mark.e2e
def test_players_rank_as_they_should():
    sure = compare_players(DESIGN, 0, 3 * 4 + 3, episodes=200)
    assert sure["bayes"].score.mean == sure["best-set"].score.mean == 1
    assert sure["cover"] == sure["truster"]
    figures = compare_players(DESIGN, 3, 20, episodes=1500)
    assert set(figures) == {*PLAYERS, "best-set"}
    ranks = ["bayes", "greedy", "cover", "truster"]
    assert all(figures[a].score.low > figures[b].score.mean for a, b in pairwise(ranks))
    assert figures["greedy"].repeats == 0 < figures["bayes"].repeats < figures["blind-redo"].repeats
    assert figures["bayes"].score.low < figures["bayes"].score.mean < figures["bayes"].score.high


def test_knowing_the_level_helps_those_that_reason():
    design = Design(Exam((2,) * 3, ((0,), (1,), (2,))), (0,), (0,) * 9, ((0,), (1,), (2,)) * 3)
    known, unknown = (compare_players(design, 9, 26, known=known, episodes=400) for known in (True, False))
    assert known["cover"].score.low > 0.5 > 0 > unknown["cover"].score.high
    assert known["truster"].score == unknown["truster"].score


def test_figures_follow_from_the_seed():
    assert compare_players(DESIGN, 3, 8, episodes=50, seed=3) == compare_players(DESIGN, 3, 8, episodes=50, seed=3)
    assert compare_players(DESIGN, 3, 8, episodes=50, seed=3) != compare_players(DESIGN, 3, 8, episodes=50, seed=4)


def test_levels_share_worlds_and_courses_of_a_seed():
    model = observe(DESIGN, 3)
    low, high = (play_courses(DESIGN, level, 12, choose_cover, model=model, episodes=80, seed=2) for level in (2, 6))
    assert (low.world == high.world).all()
    assert (low.study == high.study).all()
    assert (high.fake[low.fake]).all()
    assert high.fake.sum() > low.fake.sum() > 0


def test_tellable_fakes_are_fake_with_at_least_three_fifths_when_shown():
    model = observe(DESIGN, None)
    course = play_courses(DESIGN, 4, 26, choose_cover, model=model, episodes=400, seed=0)
    doubts = replay(model, course)[1][course.fake]
    assert ((doubts > 0.505) & (doubts < 0.595)).any()
    assert tellable_fakes(DESIGN, 4, 26, episodes=400).tellable == (doubts >= 0.6).mean()


def test_figure_is_the_mean_with_its_95_per_cent_interval():
    mean, low, high = figure(np.array([0.0, 1.0] * 50))
    assert (mean, (high - mean) / (mean - low)) == (0.5, pytest.approx(1))
    assert high - low == pytest.approx(2 * 1.96 * (0.25 * 100 / 99 / 100) ** 0.5)


def test_tellable_fakes_need_readings_that_contradict_them():
    once = Design(Exam((2, 2), ((0,), (1,))), (0,), (0, 0), ((0,), (1,)))
    assert tellable_fakes(once, 3, 5, episodes=200)[1:] == (0, 0)
    assert tellable_fakes(once, 0, 5, episodes=20) == (0, None, None)
    # told are those that contradict two agreeing ones: after a single one, it is as likely that this was fake
    thrice = Design(Exam((2,), ((0,),)), (0,), (0, 0, 0), ((0,), (0,), (0,)))
    fakes, tellable, foretold = tellable_fakes(thrice, 3, 8, episodes=4000)
    third_after_two_true = 0.7 * 0.7 / 3
    either_true = (0.7 + 1 - 0.3 * 0.3) / 3
    assert fakes == pytest.approx(3 * 0.3 * 4000, rel=0.05)
    assert tellable == pytest.approx(third_after_two_true, abs=0.03)
    assert foretold == pytest.approx(either_true, abs=0.03)


def test_a_plan_reads_what_choice_by_promise_misses():
    # The first subtopic has two axes, and the second study of the next one reads the first of them beside a third.
    design = Design(Exam((2, 2, 2), ((0,), (1,), (2,))), (0, 1), (0, 0, 1), ((0,), (1,), (0, 2)))
    limit, model = 5, observe(design, 0)
    assert plan(model, limit) == (1, 2)
    by_promise = partial(choose_greedy, value=promise)
    courses = [
        play_courses(design, 0, limit, chooser, model=model, episodes=50, seed=1)
        for chooser in (choose_planned, by_promise)
    ]
    planned, promised = (mark(design, course, answer_exactly(model, course)).score for course in courses)
    assert planned.tolist() == [1.0] * 50
    assert promised.mean() < 0.9
    assert plan(model, 8) == plan(observe(design, None), limit) == (), "with turns enough, or at an unknown level"
    noisy = observe(design, 3)
    course = play_courses(design, 3, 7, choose_planned, model=noisy, episodes=50, seed=1)
    assert (course.study[:, : len(plan(noisy, 7))] == list(plan(noisy, 7))).all()
    assert (course.run > 0).any(), "what is left goes to repetitions"
