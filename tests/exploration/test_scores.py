"""Worked numbers of the paper's scores (SciExplore, A.5 and Tables 3, 4, 6 and 7)."""

from __future__ import annotations

import pytest

from inquitree_gym.exploration.gold import TableGold
from inquitree_gym.exploration.graders import AnswerGrade, CitationGrade, TableGrade, Tally, grade
from inquitree_gym.exploration.scores import Readings, accuracy, f_cite, f_em, overall, scores, table_scores, variance

DEPTHS = (9, 10, 8, 8, 4)


@pytest.mark.parametrize(("counts", "expected"), [((9, 30, 0), 9 / 39), ((9, 20, 10), 0.2647), ((9, 0, 30), 0.375)])
def test_f_em(counts, expected):
    assert f_em(*counts) == pytest.approx(expected, abs=5e-5)


def test_nothing_played_divides_by_no_zero():
    assert accuracy(0, 0, 0) == f_em(0, 0, 0) == 0.0


@pytest.mark.parametrize(
    ("right", "percent"),
    [((4, 5, 2, 5, 1), 43.59), ((3, 2, 1, 1, 1), 20.51), ((2, 4, 1, 1, 1), 23.08), ((6, 6, 4, 3, 1), 51.28)],
)
def test_accuracy_by_depth_sums_to_table_3(right, percent):
    grades = [
        AnswerGrade(kind="T1", verdict="correct" if task < good else "incorrect")
        for good, tasks in zip(right, DEPTHS, strict=True)
        for task in range(tasks)
    ]
    assert len(grades) == 39
    assert 100 * scores(grades).t1 == pytest.approx(percent, abs=5e-3)


@pytest.mark.parametrize(
    ("kinds", "weights", "expected"),
    [
        ((23.08, 43.75, 59.91, 30.14), "eq8", 40.38),
        ((23.08, 43.75, 59.91, 30.14), "table", 49.39),
        ((20.51, 6.25, 5.95, 8.32), "eq8", 9.63),
        ((20.51, 6.25, 5.95, 8.32), "table", 11.06),
        ((17.95, 9.38, 9.66, 9.20), "eq8", 11.12),
    ],
)
def test_overall(kinds, weights, expected):
    assert overall(kinds, weights) == pytest.approx(expected, abs=6e-3)


def test_a_kind_that_was_not_played_leaves_overall_empty():
    assert overall((1.0, None, 1.0, 1.0)) is None
    found = scores([AnswerGrade(kind="T1", verdict="correct")])
    assert (found.t1, found.t2, found.t3, found.t4, found.overall) == (1.0, None, None, None, None)


SLOTS = tuple(Tally(right=c, given=c + i, gold=g) for c, i, g in ((1, 0, 1), (0, 1, 1), (1, 1, 2), (0, 0, 1)))


def test_f_cite():
    assert [slot.f1 for slot in SLOTS] == [1.0, 0.0, 0.5, 0.0]
    tasks = [CitationGrade(slots=SLOTS, format=True), CitationGrade(slots=SLOTS[:1], format=True)]
    assert f_cite(tasks[:1]) == tasks[0].score == 0.375
    assert f_cite(tasks) == (0.375 + 1) / 2
    assert f_cite(tasks, "slots") == 2.5 / 5


def found_table() -> TableGrade:
    gold = TableGold(headers=("Key", "A", "B", "C"), rows=tuple((f"k{row}", "x", "y", "z") for row in range(17)))
    rows = [f"|k{row}|x|y|z|" for row in range(4)] + ["|k4|x|no|no|", "|k5|no|no|z|"]
    return grade(gold, "|Key|A|B|C|\n|-|-|-|-|\n" + "\n".join(rows))


def test_the_table_of_seventeen_rows():
    given = found_table()
    assert given.score == 20 / 68
    assert given.items("attributes").recall == 14 / 51
    assert given.rows.recall == 4 / 17
    assert given.keys.recall == 6 / 17
    assert given.items().f1 == pytest.approx(2 * 20 / (68 + 24))


def test_item_recall_may_exceed_key_recall_where_rows_have_unequal_cells():
    gold = TableGold(headers=("Key", "A", "B", "C"), rows=(("k", "x", "y", "z"), ("l", "x", "", "")))
    given = grade(gold, "|Key|A|B|C|\n|-|-|-|-|\n|k|x|y|z|")
    assert (given.score, given.items("attributes").recall, given.keys.recall) == (pytest.approx(4 / 6), 0.75, 0.5)


def test_format_accuracy_and_means_over_tables():
    good = found_table()
    grades = [good] * 10 + [good.model_copy(update={"format": False})] * 8
    found = table_scores(grades)
    assert 100 * found.format_accuracy == pytest.approx(55.56, abs=5e-3)
    assert (found.r_item, found.key_recall) == pytest.approx((20 / 68, 6 / 17))
    assert found.item_precision == pytest.approx(20 / 24)
    assert table_scores(grades, "attributes").r_item == pytest.approx(14 / 51)


def test_readings_reach_the_scores():
    grades = [
        AnswerGrade(kind="T1", verdict="correct"),
        AnswerGrade(kind="T1", verdict="not_attempted"),
        AnswerGrade(kind="T2", verdict="correct"),
        CitationGrade(slots=SLOTS, format=True),
        CitationGrade(slots=SLOTS[:1], format=True),
        found_table(),
    ]
    plain = scores(grades)
    other = scores(grades, Readings(single="f_em", mean="slots", items="attributes", weights="table"))
    assert (plain.t1, plain.t3, plain.t4.r_item) == (0.5, 0.6875, 20 / 68)
    assert (other.t1, other.t3, other.t4.r_item) == (pytest.approx(2 / 3), 0.5, 14 / 51)
    assert plain.overall == pytest.approx(0.2 * 0.5 + 0.2 + 0.3 * 0.6875 + 0.3 * 20 / 68)
    assert other.overall == pytest.approx(0.2 * 2 / 3 + 0.2 + 0.4 * 0.5 + 0.4 * 14 / 51)


def test_variance_over_repeats():
    assert variance([10.0, 12.0, 11.0, 13.0]) == pytest.approx(5 / 3)
    assert variance([10.0]) is None
