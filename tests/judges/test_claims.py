"""Claims without an embedder: splitting, open alternatives, negation, copies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.judges.local import (
    ADDED_WORDS,
    TURNED_PLACES,
    is_copy,
    is_negated,
    is_open,
    split_claims,
    stems,
    turn,
)
from inquitree_gym.matching import MAX_ACTION_LENGTH

ITEM = "Small networks hold every heading only when their excitation is tuned with great precision."


def test_a_conclusion_is_split_at_numbers_bullets_and_sentences_before_them():
    text = "We found two things. They do agree.\n1. It rose in all. By a lot.\n(2) It fell at night.\n- And so on, too."
    assert split_claims(text) == [
        "We found two things.",
        "They do agree.",
        "It rose in all. By a lot.",
        "It fell at night.",
        "And so on, too.",
    ]


def test_headings_and_questions_claim_nothing():
    assert split_claims("# Findings\n1. Does it rise at night?\n2. It does.\n3. It rises at night.") == [
        "It rises at night."
    ]


@pytest.mark.parametrize(
    "claim",
    [
        "The dough rises by yeast, or steam lifts it.",
        "The map is kept by fixed cells, or else by changing ones.",
        "Timing matters here, though it is equally possible that heat does.",
        "Both kinds contribute, but it may just as well be one of them.",
        "Yeast drives the rise; or it is driven by it.",
        "Cells follow behaviour or possibly lead it.",
        "It reads from left to right, or the other way round.",
    ],
)
def test_a_claim_that_leaves_two_things_open(claim: str):
    assert is_open(claim)


@pytest.mark.parametrize(
    "claim",
    [
        "Yeast may make the dough rise.",
        "It rises with sugar, warmth, or time.",
        "In mice, rats or humans the signal is the same.",
        "The rise is seen in wheat and rye or in blends of the two.",
        "It could also explain the rise at night.",
        "Two accounts describe it equally well.",
        "Whether warm or cold, the dough rises.",
    ],
)
def test_a_claim_that_is_careful_or_lists_things_is_not_open(claim: str):
    assert not is_open(claim)


@pytest.mark.parametrize(
    ("text", "negated"),
    [
        ("It rises.", False), ("It does not rise.", True), ("It doesn't rise.", True), ("It doesn’t rise.", True),
        ("It never fails to rise.", False), ("There is no evidence that it rises.", True),
        ("Our data refute that it rises.", True), ("Nothing in it rises.", True), ("It hardly rises.", True),
        ("A note on knots and nodes.", False), ("Without salt it rises, and not without yeast.", True),
    ],
)  # fmt: skip
def test_an_odd_number_of_negations_negates(text: str, negated: bool):
    assert is_negated(text) == negated


def test_a_copy_holds_nearly_all_words_and_few_others():
    assert is_copy(ITEM, ITEM)
    assert is_copy(ITEM.upper(), ITEM)
    assert is_copy(f"There is no evidence that {ITEM.lower()}", ITEM)
    assert not is_copy(f"{ITEM} {'more ' * (ADDED_WORDS + 1)}", ITEM)
    assert not is_copy("Small networks hold every heading.", ITEM)
    assert not is_copy("Anything.", "…")


def test_words_are_the_same_from_their_beginning():
    assert stems("Predicts prediction PREDICTED; cat") == {"predi", "cat"}
    assert stems("") == frozenset()


@given(st.lists(st.text(st.characters(categories=("L",)), min_size=1, max_size=8), min_size=1, max_size=60))
def test_a_text_is_turned_by_one_word_at_a_time(words: list[str]):
    text = " ".join(words)
    turned = turn(text)
    assert 1 <= len(turned) <= TURNED_PLACES
    assert len(set(turned)) == len(turned) or "not" in words
    for each in turned:
        found = each.split()
        assert len(found) == len(words) + 1
        assert any(found[:i] + found[i + 1 :] == words for i, word in enumerate(found) if word == "not")


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str):
    for claim in split_claims(text):
        is_open(claim)
        is_negated(claim)
        is_copy(claim, text)


def test_only_what_is_read_is_split():
    assert (
        len(split_claims("It rises at night. " * MAX_ACTION_LENGTH))
        <= MAX_ACTION_LENGTH // len("It rises at night. ") + 1
    )
