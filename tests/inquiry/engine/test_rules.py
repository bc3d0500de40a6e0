"""Every rule is checked, and says what it takes."""

from __future__ import annotations

import pytest

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.engine import Rules


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("threshold", 1.5), ("threshold", "0.5"), ("threshold", True), ("threshold", float("nan")),
        ("fake_level", 11), ("fake_level", -1), ("fake_level", 2.5), ("fake_level", True), ("max_turns", 0),
        ("max_turns", "many"), ("max_turns", 1.0), ("max_turns", "default"), ("max_turns", True), ("max_turns", "0n"),
        ("max_turns", "3m"), ("max_turns", "n-1"), ("max_turns", ""), ("max_turns", "3n+"), ("max_turns", 10**10),
        ("decisions", "words"), ("bare_decisions", 1), ("redo_turn", 1),
        ("named_at_result", "visited"), ("evidence", "items"), ("feedback", None),
        ("reruns", "never"), ("replication", "other"),
    ],
)  # fmt: skip
def test_a_value_out_of_range_is_refused_by_name(name: str, value: object):
    with pytest.raises(OptionError, match=name):
        Rules(**{name: value})


def test_an_unknown_rule_is_refused_with_a_suggestion():
    with pytest.raises(OptionError, match=r"unknown option 'fake_levle' \(did you mean 'fake_level'\?\)"):
        Rules().override({"fake_levle": 3})


def test_override_changes_only_what_it_names():
    rules = Rules(fake_level=3, redo_turn=True)
    assert rules.override({"max_turns": 9}) == Rules(fake_level=3, redo_turn=True, max_turns=9)
    assert rules == Rules(fake_level=3, redo_turn=True)


def test_rules_survive_plain_values():
    rules = Rules(threshold=0.4, fake_level=2, max_turns=None, feedback="hint", reruns="match")
    assert Rules(**rules.as_dict()) == rules


@pytest.mark.parametrize(
    ("given", "kept", "turns"),
    [
        ("3n", "3n", 21), ("5n", "5n", 35), ("3n+3", "3n+3", 24), ("11n", "11n", 77), ("n", "n", 7), ("40", 40, 40),
        (" 3N + 3 ", "3n+3", 24), (40, 40, 40), ("none", None, None), (None, None, None),
    ],
)  # fmt: skip
def test_a_turn_limit_is_a_number_or_a_formula_in_the_number_of_subtopics(given: object, kept: object, turns: object):
    rules = Rules(max_turns=given)
    assert (rules.max_turns, rules.turn_limit(7)) == (kept, turns)
    assert rules == Rules(max_turns=kept)


def test_the_default_limit_is_3n_and_that_of_the_paper_what_the_longest_traversal_takes():
    assert Rules().turn_limit(7) == 21
    assert Rules.preset("paper").turn_limit(7) == 77 == Rules.preset("paper").most_turns(7)
