"""Answer sheets: answers are found in any sensible form, prose is not misread, and bad input is noted."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.inquiry.exam import Exam, draw_layout
from inquitree_gym.sheets import Sheet, read_sheet, write_sheet

EXAM = Exam((2, 2, 3, 3), ((0, 1), (1, 2), (2, 3), (0,)))
LAYOUT = tuple(tuple(range(EXAM.options(item))) for item in range(4))
"""Letters in file order: A to D, A to F, A to I, A and B."""


def letters(reply):
    return "".join("-" if c is None else "ABCDEFGHI"[c] for c in read_sheet(reply, LAYOUT).sheet.choices)


def probabilities(reply):
    return read_sheet(reply, LAYOUT).sheet.probabilities


def notes(reply):
    return [str(note) for note in read_sheet(reply, LAYOUT).notes]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("1 B", "B---"), ("1: B", "B---"), ("1) b", "B---"), ("1=B", "B---"), ("1B", "B---"), ("1. B", "B---"),
        ("(1) B", "B---"), ("1 → B", "B---"), ("1 is B", "B---"), ("1-B", "B---"), ("1.B", "B---"), ("#1: [B]", "B---"),
        ("Item 1 – B (80 %)", "B---"), ("Q1: B", "B---"), ("1: option B", "B---"), ("1 (drift): B", "B---"),
        ("4 A\n1 B", "B--A"), ("1 B, 2 F, 3 I", "BFI-"), ("1 B 2 F 3 I", "BFI-"), ("1B;2F;3I", "BFI-"),
        ("1 B 0.8 2 F 70% 3 I", "BFI-"), ("1 B because of x; 2 F since y", "BF--"), ("1 B (two readings), 2 F", "BF--"),
        ("| 1 | B | 0.8 |\n| 2 | f | |", "BF--"), ('{"1": "B", "2": "F"}', "BF--"),
        ('[{"item": 1, "answer": "B", "probability": 0.8}, {"item": 2, "answer": "F"}]', "BF--"),
        ("**Item 1**\nB (0.8)\n**Item 2:** F", "BF--"), ("My answers are 1 B, 2 F and 3 I.", "BFI-"),
        ("I saw drift twice.\n\nAnswers: 1 B, 2 F\nThanks", "BF--"), ("1. B. The bump stays.\n2. F: it moves", "BF--"),
        ("The answer to item 3 is I", "--I-"), ("3 I", "--I-"), ("1 A\n1 B", "B---"), ("1 A, 1 C, 1 B", "B---"),
        ("1 B, 2 none, 3 I", "B-I-"), ("1 B 2 unknown 3 I", "B-I-"), ("1 “B”, 2 «F»", "BF--"), ("1: I'd say B", "B---"),
        ("For item 1, I choose B.", "B---"), ("<item>1</item><answer>B</answer>", "B---"), ("ACTION: 1 B\n2 F", "BF--"),
        ("1 B, p = .8, 2 F", "BF--"), ("1 B 1, 2 F", "BF--"), ("1 B with probability 0.8", "B---"), ("1\n2 F", "-F--"),
    ],
)  # fmt: skip
def test_answers_are_read_in_any_form(reply, expected):
    assert letters(reply) == expected


@pytest.mark.parametrize(
    "reply",
    [
        "", "I", "A 3 B", "I think that a 3 B is right", "1. A study of drift", "1. I think so", "3 B cells",
        "3 B-cells were seen", "3 B12 deficits", "1. A final test", "2. A question remains", "1. A probability of 0.8",
        "As figures 1A and 2B show", "studies s1a and s2b agree", "1. I'd say so", "A1, B2", "B 1\nA 2", "1: A vs. B",
        "1-3: B", "1 2 B", "Up to 3 a day", "Item 1\nA) it drifts\nB) it stays", "5% B", "1 Bb", "Item 1: it stays",
        "I hesitated between 1 A and 1 B", "1 ß", "1 𝐁", "\x00", "1/2", "0.8",
    ],
)  # fmt: skip
def test_prose_is_not_misread(reply):
    assert letters(reply) == "----"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("1 B 0.8", 0.8), ("1 B .8", 0.8), ("1 B 0,8", 0.8), ("1 B 80%", 0.8), ("1 B (80 %)", 0.8), ("1-B-0.8", 0.8),
        ("1 B p=0.8", 0.8), ("1 B with probability of 0.8", 0.8), ("1 B 8 percent", 0.08),
        ("1 B 1", 1.0), ("1 B 0", 0.0), ("1 B 0.8 I saw it", 0.8), ("1 B 0.3\n1 B 0.8", 0.8), ("1 B 0.8\n1 B", None),
        ("1 B", None), ("1 B (2 of 3 studies)", None), ("1 B - 12 units", None), ("1 B 50 % of cells", None),
    ],
)  # fmt: skip
def test_probabilities_are_read(reply, expected):
    assert letters(reply) == "B---"
    assert probabilities(reply)[0] == expected
    assert notes(reply) == []


@pytest.mark.parametrize(
    ("reply", "kept", "place", "named"),
    [
        ("4 C", "----", "item 4", "letters A to B, got C"), ("1 A\n1 Z", "A---", "item 1", "letters A to D, got Z"),
        ("1 A\n1 B", "B---", "item 1", "last, B, counts"), ("1 A or B", "----", "item 1", "one letter, got A and B"),
        ("1 A\n1: B/C", "A---", "item 1", "one letter, got B and C"), ("1 A, B", "----", "item 1", "got A and B"),
        ("1 B 7", "B---", "item 1", "from 0 to 1, got 7"), ("1 B nan", "B---", "item 1", "from 0 to 1, got nan"),
        ("1 B -0.2", "B---", "item 1", "got -0.2"), ("1 B 120 %", "B---", "item 1", "got 120%"),
        ("1 B inf", "B---", "item 1", "got inf"), ("1 B " + "9" * 5000, "B---", "item 1", "got 9999"),
        ("1 B\n9 A", "B---", "reply", "got 9"), ("1 B\n" + "7" * 9000 + "A", "B---", "reply", "got 777777777777"),
        ("no idea", "----", "reply", "item's number and a letter, got 'no idea'"),
    ],
)  # fmt: skip
def test_bad_input_is_noted_with_place_value_and_remedy(reply, kept, place, named):
    assert letters(reply) == kept
    note = next(note for note in notes(reply) if named in note)
    assert note.startswith(f"{place}: ")
    assert note.count(". ") >= 1


def test_10000_answers_leave_a_note_for_each_problem_only():
    reply = "".join(f"{item} A\n{item} B\n" for item in range(1, 5001))
    assert letters(reply) == "BBBB"
    assert len(notes(reply)) == 5
    assert "5, 5, 6 and 9989 more" in notes(reply)[0]
    assert letters("1 A\n" * 9_999 + "1 B") == "B---"


def _steps(reply):
    """Count the lines of Python that a reading runs."""
    count = 0

    def trace(frame, event, _arg):
        nonlocal count
        count += event == "line"
        return trace if frame.f_code.co_filename.endswith(("sheets.py", "exam.py")) else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        read_sheet(reply, LAYOUT)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "pattern",
    [
        "1 (", "(1 ", "1 B,", "1 ,", "1 B 1 ", "1 A/B/", "1 B or ", "1\n", "((1))", "1 ()", "1 (B ", "1 B (",
        "1 B ,,", "a 3 B",
    ],
)  # fmt: skip
def test_work_is_linear_in_the_length(pattern):
    ends = ")" if "(" in pattern else ""
    short, long = (_steps(pattern * n + ends * n) for n in (60, 240))
    assert long < 4.5 * short


@st.composite
def sheets(draw):
    items = range(len(EXAM.items))
    choices = tuple(draw(st.none() | st.integers(0, EXAM.options(item) - 1)) for item in items)
    given = st.none() | st.integers(0, 100).map(lambda percent: percent / 100)
    return Sheet(choices, tuple(None if choice is None else draw(given) for choice in choices))


@given(sheets(), st.integers(0, 2**63 - 1))
def test_written_sheet_is_read_as_it_was(sheet, seed):
    layout = draw_layout(EXAM, seed, "t", "any")
    reading = read_sheet(write_sheet(sheet, layout), layout)
    assert reading.sheet == sheet
    assert bool(reading.notes) == sheet.is_empty


@given(st.text(alphabet="123 AB.,:;()|%-\n0oritemk'", max_size=60) | st.text(max_size=60))
def test_no_reply_breaks_the_reading(reply):
    reading = read_sheet(reply, LAYOUT)
    for item, choice in enumerate(reading.sheet.choices):
        assert choice is None or 0 <= choice < EXAM.options(item)
    assert all(p is None or 0 <= p <= 1 for p in reading.sheet.probabilities)
    assert reading.notes or not reading.sheet.is_empty
