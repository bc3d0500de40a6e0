"""Faults of a tree file read as plain sentences with a place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inquitree_gym.errors import TreeError
from inquitree_gym.trees import dump_tree, parse_tree
from tests.strategies import make_tree

PLAIN = json.loads(dump_tree(make_tree([[], [0]], [1, 1])))


def faults(document: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(TreeError) as caught:
        parse_tree(json.dumps(document).encode())
    return tuple(map(str, caught.value.faults))


@pytest.mark.parametrize(
    ("hints", "message"),
    [([], "has 0 hints, needs 4"), (["a"], "has 1 hint, needs 4"), (list("abcde"), "has 5 hints, needs 4")],
)
def test_a_hint_ladder_of_another_length_says_how_many_hints_it_needs(hints: list[str], message: str):
    document = json.loads(json.dumps(PLAIN))
    document["subtopics"][0]["studies"][0]["hints"] = hints
    assert faults(document) == (f"s1 › s1a › hints: {message}",)


@pytest.mark.parametrize(
    ("value", "described"),
    [
        (None, "null"),
        (True, "true"),
        (2.5, "the number 2.5"),
        ("two", "the text 'two'"),
        ([2], "a list"),
        ({}, "an object"),
    ],
)
def test_a_value_of_another_type_is_named(value: Any, described: str):
    assert faults(PLAIN | {"version": value}) == (f"version: needs a whole number, not {described}",)


def test_no_message_speaks_of_the_validator():
    document = json.loads(json.dumps(PLAIN))
    document |= {"version": 0, "topic": "", "colour": 1, "conclusions": []}
    document["subtopics"][0] |= {"hints": ["x"], "studies": [], "id": "S1", "name": "x" * 61}
    del document["paper"]["title"]
    told = faults(document)
    assert len(told) == 9
    assert not any(word in fault for fault in told for word in ("Tuple", "String", "Input", "Field", "pattern"))
