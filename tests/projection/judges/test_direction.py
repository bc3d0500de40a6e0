"""Directions as words tell them, and clauses as verbs do."""

from __future__ import annotations

import pytest

from inquitree_gym.projection.judges.clauses import projected_claims
from inquitree_gym.projection.judges.direction import agreement, is_hedged, is_undirected


@pytest.mark.parametrize(
    ("claim", "true", "agrees"),
    [
        ("Warmer ovens darken the crust more.", "More heat strengthens the colour.", 1),
        ("With less heat the colour fades.", "More heat strengthens the colour.", 1),
        ("More heat weakens the colour.", "More heat strengthens the colour.", -1),
        ("Bakers make fewer mistakes with more practice.", "More practice reduces errors.", 1),
        ("Practice makes mistakes worse.", "Practice reduces errors.", -1),
        ("The loaf is brown.", "More heat strengthens the colour.", 0),
    ],
)
def test_words_agree_as_their_product_does(claim: str, true: str, agrees: int):
    assert agreement(claim, true) == agreement(true, claim) == agrees


@pytest.mark.parametrize(
    ("claim", "is_vague"),
    [
        ("The amount of salt will influence the taste.", True),
        ("Salt and taste are related.", True),
        ("Salt and taste are related positively.", False),
        ("Salt affects the rise by slowing it.", False),
        ("Neither salt nor sugar has any effect.", False),
    ],
)
def test_a_change_without_a_direction_is_undirected(claim: str, is_vague: bool):
    assert is_undirected(claim) is is_vague


@pytest.mark.parametrize(
    "claim", ["Salt raises or lowers the rise.", "Whether salt matters is open.", "It may or may not rise."]
)
def test_a_choice_of_directions_is_a_hedge(claim: str):
    assert is_hedged(claim)


def test_a_list_of_clauses_is_split_and_its_subject_is_carried_over():
    sentence = (
        "With the oven set right even a small loaf keeps its shape, longer baking ought to thicken the crust, salt "
        "should slow the rise and soften the crumb, and the tin makes no difference"
    )
    assert projected_claims(sentence, 5) == [
        "With the oven set right even a small loaf keeps its shape",
        "longer baking ought to thicken the crust",
        "salt should slow the rise",
        "salt soften the crumb",
        "the tin makes no difference",
    ]
