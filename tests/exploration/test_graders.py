"""Grades of answers against a table of answers graded by hand from the rules (SciExplore, A.5, A.9)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from inquitree_gym.exploration.gold import Gold
from inquitree_gym.exploration.graders import AnswerGrade, CitationGrade, grade

TABLE = json.loads((Path(__file__).parent / "data" / "answers.json").read_text(encoding="utf-8"))
GOLDS = {name: TypeAdapter(Gold).validate_python(gold) for name, gold in TABLE["golds"].items()}


def observed(gold, answer):
    given = grade(gold, answer)
    if isinstance(given, AnswerGrade):
        return given.verdict
    if isinstance(given, CitationGrade):
        return [[slot.right, slot.given - slot.right, slot.gold] for slot in given.slots]
    return {"keys": given.keys.right, "cells": given.attributes.right, "rows": given.rows.right, "format": given.format}


@pytest.mark.parametrize(("name", "answer", "expected", "why"), TABLE["answers"])
def test_a_grade_is_the_one_given_by_hand(name, answer, expected, why):
    assert observed(GOLDS[name], answer) == expected, why
