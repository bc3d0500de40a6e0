"""Claims of a conclusion without an embedder: splitting, negation, rejection, copies, both sides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.judging.claims import (
    ADDED_WORDS,
    MAX_WORDS,
    WORDS_PER_ITEM,
    counted_claims,
    is_copy,
    is_negated,
    is_open,
    is_rejection,
    quoted_side,
    split_claims,
    states_both,
    stems,
    wording,
)
from inquitree_gym.text_limits import MAX_ACTION_LENGTH

ITEM = "Small networks hold every heading only when their excitation is tuned with great precision."
FALSE = "Small networks hold every heading however loosely their inhibition is set."


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
        "Neither rye nor wheat rises without yeast.",
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


TRUE_RESULT = "Inference errors were smaller in people leaning on space (r = −0.43). Ratings took 3 s, choices 5 s."
FAKE_RESULT = "Inference errors were larger in people leaning on space (r = 0.43). Ratings took 5 s, choices 3 s."


@pytest.mark.parametrize(
    ("claim", "side"),
    [
        (TRUE_RESULT, "true"), (FAKE_RESULT, "false"),
        ("Inference errors were larger in people leaning on space (r = 0.43).", "false"),
        ("So ratings took 3 s, choices 5 s.", "true"), ("So ratings took 5 s, choices 3 s.", "false"),
        ("In people leaning on space.", "both"),
        ("Those who leaned on space made fewer errors.", None), ("", None),
    ],
)  # fmt: skip
def test_a_claim_that_repeats_the_words_of_one_side_quotes_it(claim: str, side: str | None):
    assert quoted_side(claim, [TRUE_RESULT], [FAKE_RESULT]) == side


def test_words_are_the_same_from_their_beginning():
    assert stems("Predicts prediction PREDICTED; cat") == {"predi", "cat"}
    assert stems("") == frozenset()


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


def test_claims_count_by_length_and_not_by_number():
    short = [f"Finding number {n} holds." for n in range(40)]
    assert counted_claims("\n".join(f"- {claim}" for claim in short), 1) == short
    long = "\n".join(f"- Claim {n} {'word ' * 48}ends." for n in range(40))
    few, many = 2, MAX_WORDS // WORDS_PER_ITEM + 10
    assert len(counted_claims(long, few)) == -(-MAX_WORDS // 51)
    assert len(counted_claims(long, many)) == -(-WORDS_PER_ITEM * many // 51)


@pytest.mark.parametrize(
    "claim",
    [
        "It is a myth that dough rises.", "We reject the idea that dough rises.", "The belief has to be given up.",
        "There is no evidence that dough rises.", "Dough rises: this was not confirmed.",
    ],
)  # fmt: skip
def test_a_rejection_is_told_by_its_words(claim: str):
    assert is_rejection(claim)
    assert not is_rejection("Dough does not rise without yeast.")


def test_both_sides_in_one_claim_are_told_unless_one_is_set_against_the_other():
    assert states_both(f"{ITEM[:-1]}, and {FALSE}", [ITEM], [FALSE])
    assert not states_both(f"It is not that {FALSE[:-1]}; rather, {ITEM}", [ITEM], [FALSE])
    assert not states_both(ITEM, [ITEM], [FALSE])


def test_words_of_one_side_count_for_it():
    assert wording(ITEM, ITEM, [FALSE]) > 0 > wording(FALSE, ITEM, [FALSE])
