"""The split of projections into claims."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.projection.judges.clauses import clauses, projected_claims
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.text_limits import MAX_ACTION_LENGTH
from inquitree_gym.trees import builtin_ids

shipped = pytest.mark.parametrize("name", builtin_ids())


@shipped
def test_an_outcome_has_as_many_clauses_as_claims_and_a_claim_is_one(name: str):
    task = load_task(name)
    assert len(projected_claims(task.disclosure.outcome, len(task.claims))) == len(task.claims)
    for claim in task.claims:
        assert clauses(claim.text) == [claim.text.removesuffix(".")]


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        (
            "Salt slows dough, yeast raises it, and heat stops it.",
            ["Salt slows dough", "yeast raises it", "heat stops it"],
        ),
        ("Salt slows the dough; yeast raises it.", ["Salt slows the dough", "yeast raises it"]),
        ("Salt slows the dough, whereas yeast raises it.", ["Salt slows the dough", "yeast raises it"]),
        ("Salt, compared with sugar, slows the dough.", ["Salt, compared with sugar, slows the dough"]),
        ("If dough is warm, then it rises.", ["If dough is warm, then it rises"]),
        ("Salt and sugar slow the dough and the batter.", ["Salt and sugar slow the dough and the batter"]),
        ("Cooks differ in taste, flour and salt.", ["Cooks differ in taste, flour and salt"]),
        (
            "It is unclear whether salt slows dough, and whether yeast raises it.",
            ["It is unclear whether salt slows dough", "whether yeast raises it"],
        ),
        ("We predict that dough will rise.", ["dough will rise"]),
    ],
)
def test_clauses_have_a_verb_of_their_own(sentence: str, found: list[str]):
    assert clauses(sentence) == found


def test_lines_and_lists_are_split_and_questions_left_out():
    text = "1. Salt slows the dough.\n2. Does yeast raise it?\n- Heat raises the dough and dries it."
    assert projected_claims(text, 3) == ["Salt slows the dough", "Heat raises the dough and dries it"]
    assert projected_claims("Salt slows dough\nHeat raises dough", 2) == ["Salt slows dough", "Heat raises dough"]


@given(st.text())
def test_any_text_is_split(text: str):
    for claim in projected_claims(text, 3):
        assert claim.strip() == claim
        assert len(claim.split()) >= 3


def test_a_long_projection_is_read_up_to_its_limits():
    sentence = "Salt slows the dough. "
    assert 0 < len(projected_claims(sentence * 20_000, 3)) <= 200
    assert projected_claims("x" * MAX_ACTION_LENGTH + sentence, 3) == []
