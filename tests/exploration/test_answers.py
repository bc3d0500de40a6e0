"""Parsing of answers: odd forms, bad input, and time in proportion to the text (SciExplore, A.9)."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from inquitree_gym.exploration.answers import citations, final_answer, last_table
from inquitree_gym.exploration.gold import AnswerGold, CitationGold, Gold, Slot, TableGold, Work
from inquitree_gym.exploration.graders import grade
from inquitree_gym.exploration.quantities import comparable, convert, quantity

ENTITY = AnswerGold(kind="T1", parts=({"entity": "Velorin", "number": 0.5},))
NUMBER = AnswerGold(kind="T1", parts=({"number": 260, "unit": "aa"},))
WORK = Work(authors=("Ada Osk",), title="Slow growth of gels", venue="Gel Letters", year=2019, unique=True)
TEXT = CitationGold(slots=(Slot(number=1, works=(WORK, WORK.model_copy(update={"title": "Other, gels"}))),))
ROWS = tuple((f"K{row}", str(row), f"{row} mm", "a; b") for row in range(1, 21))
TABLE = TableGold(headers=("Key", "Count", "Length", "Set"), rows=ROWS)
HEAD = "| Key | Count | Length | Set |\n|---|---|---|---|\n"

PATTERNS = {
    "spaces": " ", "newlines": "\n", "digits": "9", "thousands": "1,234,", "powers": "1e", "dashes": "-", "stars": "*_",
    "brackets": "[", "refs": "[ref.1", "ref lines": "[ref.1: a b. c. d. 2019.\n", "pipes": "|", "rules": "|-",
    "rows": "|1|2|\n|-|-|\n",
    "boxes": "\\boxed{", "answers": "answer: ", "answer lines": "Answer:\n", "commas": "slow, ", "colons": ": is ",
    "tags": "<br ", "superscripts": "⁻", "dots": ".1", "quotes": "'a", "ands": " and ", "units": "5 m/",
}  # fmt: skip


@pytest.mark.parametrize("size", [20_000, 1_000_000])
@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_long_answers_end(pattern, size):
    text = pattern * (size // len(pattern))
    for gold in (ENTITY, NUMBER, TEXT, TABLE):
        assert grade(gold, text).score == 0.0
        assert grade(gold, f"x\n{text}").score == 0.0


def test_many_different_lines_end():
    text = "\n".join(f"[ref.1: A{line}. b. c. 2019.]" for line in range(30_000))
    assert grade(TEXT, text).slots[0].given == 30_000
    assert grade(TABLE, HEAD + "\n".join(f"|{row}|1|2|3|" for row in range(60_000))).score == 0.0


def test_a_table_of_ten_thousand_rows():
    rows = "\n".join(f"| K{row} | {row} | {row} mm | b, a |" for row in range(1, 10_001))
    given = grade(TABLE, HEAD + rows)
    assert given.score == 1.0
    assert given.items().given == 40_000
    assert given.items().f1 == pytest.approx(2 * 80 / (80 + 40_000))
    assert given.rows.precision == 20 / 10_000


@pytest.mark.parametrize("gold", [ENTITY, NUMBER, TEXT, TABLE])
def test_gold_as_it_is_written_has_the_full_score(gold):
    given = grade(gold, gold.written())
    assert given.score == 1.0


@pytest.mark.parametrize("gold", [ENTITY, NUMBER, TEXT, TABLE])
def test_no_answer_scores_zero(gold):
    assert grade(gold, None).score == grade(gold, "").score == grade(gold, "\ud800").score == 0.0


@pytest.mark.parametrize("gold", [ENTITY, TEXT, TABLE])
def test_gold_and_grades_survive_a_round_trip(gold):
    assert TypeAdapter(Gold).validate_json(gold.model_dump_json()) == gold
    given = grade(gold, gold.written())
    assert type(given).model_validate_json(given.model_dump_json()) == given


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": "T1", "parts": []},
        {"kind": "T1", "parts": [{"unit": "m"}]},
        {"kind": "T1", "parts": [{"number": "nan"}]},
        {"kind": "T3", "slots": [{"number": 1, "works": []}]},
        {"kind": "T4", "headers": ["A", "B"], "rows": [["a"]]},
        {"kind": "T4", "headers": ["A", "B"], "rows": [["a", "1"], ["a", "2"]]},
        {"kind": "T4", "headers": ["A", "B"], "rows": [["a", "–"]]},
        {"kind": "T4", "headers": ["A", "B"], "rows": [["a", "1"]], "units": {"C": "g"}},
    ],
)
def test_faulty_gold_is_refused(bad):
    with pytest.raises(ValidationError):
        TypeAdapter(Gold).validate_python(bad)


def test_final_answers():
    assert final_answer("Reasons.\n\nThe answer is 260") == "260"
    assert final_answer("**Answer:** 3\nAnswer: 4\nas said above") == "4"
    assert final_answer("Final answer:\n\nA: 1\nB: 2\n\nThank you") == "A: 1\nB: 2"
    assert final_answer("one\n\ntwo") == "two"


def verdict(gold, text):
    return grade(gold, text).verdict


@pytest.mark.parametrize(
    "text",
    [
        "so it is. " * 200 + "\n\nFinal answer: 260",
        "so it is \\boxed{26",
        "Reasons.\n\nFinal answer:",
        "I could not find it among the 260 records.",
    ],
    ids=["repetitive", "cut off", "no final answer", "refusing"],
)
def test_invalid_answers_are_not_attempts(text):
    assert verdict(NUMBER, text) == "not_attempted"


def test_an_answer_with_doubts_is_an_attempt():
    assert verdict(NUMBER, "I could not prove it; my best guess is 260") == "correct"
    assert verdict(NUMBER, "I could not prove it; my best guess is 261") == "incorrect"


def test_a_title_that_reads_like_a_refusal():
    gold = AnswerGold(kind="T2", parts=({"entity": "No evidence of salts in gels"},))
    assert verdict(gold, "No evidence of salts in gels.") == "correct"
    assert verdict(gold, "No evidence was found.") == "not_attempted"
    assert verdict(gold, "It is not known: No evidence of salts in gels") == "not_attempted"


def test_lines_of_citations():
    lines = "1. [ref.1: A [2+2] b. c.]\n[ref.2: broken\n over lines.] [ref.3: x.]\nref.4: y\n[ref.5: ]\nas [ref.6] says"
    found = [(one.slot, one.text) for one in citations(lines)]
    assert found == [(1, "A [2+2] b. c."), (2, "broken  over lines."), (3, "x."), (4, "y")]


def test_unknown_slots_are_reported():
    given = grade(TEXT, f"[ref.9: {WORK.written()}]\n[ref.1: {WORK.written()}]")
    assert given.unknown == (9,)
    assert (given.slots[0].right, given.slots[0].given) == (1, 1)


def test_a_lenient_citation_needs_the_work_alone():
    line = "[ref.1: Ada Osk. Slow growth of gels. Gel Letters. 2011.]"
    assert grade(TEXT, line).score == 0.0
    assert grade(TEXT, line, attributes="lenient").score == pytest.approx(2 / 3)


def test_pipes_within_cells():
    table = last_table("a|b\n-|-\nx \\| y|2|3\nz\nq|r")
    assert table is not None
    assert table.rows == (("x | y", "2"),)


@pytest.mark.parametrize(
    ("value", "unit", "to", "expected"),
    [
        (5, "kb", "bp", 5000), (25, "%", "", 0.25), (1, "h", "min", 60), (25, "°C", "K", 298.15),
        (2, "mg/L", "g/L", 0.002),
        (1, "M", "m", None), (1, "furlongs", "m", None), (3, "spots", "Spots", 3), (1, "mM", "MM", 1e-9),
    ],
)  # fmt: skip
def test_units_convert_where_that_is_unambiguous(value, unit, to, expected):
    found = convert(value, unit, to)
    assert found == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("text", ["IL-2", "2nd", "C5", "1.2.3", "2'-AMP", "12 monkeys", "1/0", "1e999"])
def test_names_are_no_numbers(text):
    assert quantity(text) is None


def test_signs_that_mean_something_are_kept():
    assert comparable("> 5") != comparable("< 5") != comparable("5")
    assert comparable("-5") != comparable("5")
    assert comparable("Ca²⁺") == comparable("ca2+")
