"""Lines that report or misremember results, and how well they are told apart."""

from __future__ import annotations

import pytest

from inquitree_gym.judging.sense import Statement
from inquitree_gym.trees import builtin_ids, load_tree
from research.judge.direction import Case, TokenStates, auc_by_tree, load_lines, token_contrast


def test_every_author_wrote_a_right_and_a_wrong_line_about_every_study():
    studies = [(name, study.id) for name in builtin_ids() for study in load_tree(name).studies]
    for each in load_lines():
        for right in (True, False):
            assert sorted((line.tree, line.study) for line in each.lines if line.right is right) == sorted(studies)


def test_the_area_is_taken_per_tree():
    statement = Statement(("Dough rises.",), ("Dough falls.",))
    senses = {"paper1": (1.0, 0.0), "paper2": (0.0, 1.0), "paper3": (5.0, 4.0)}
    cases = [
        Case(tree, "v1", "Dough.", right, statement, sense)
        for tree, pair in senses.items()
        for right, sense in zip((True, False), pair, strict=True)
    ]
    assert auc_by_tree(cases, lambda case: case.sense).mean == pytest.approx(2 / 3)


@pytest.mark.weights
def test_tokens_tell_which_side_a_line_takes():
    statement = Statement(("The rate rose in darkness.",), ("The rate fell in darkness.",))
    states = TokenStates()
    up, down = (
        token_contrast(states, Case("paper1", "v1", text, True, statement, 0.0))
        for text in ("Without light the rate rose.", "Without light the rate fell.")
    )
    assert up > 0 > down
