"""Claims of a conclusion as text: splitting, and how many count."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.judging.claims import MAX_WORDS, MIN_CLAIM_WORDS, WORDS_PER_ITEM, counted_claims, split_claims
from inquitree_gym.text_limits import MAX_ACTION_LENGTH


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


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str):
    for claim in split_claims(text):
        assert claim == " ".join(claim.split())
        assert len(claim.split()) >= MIN_CLAIM_WORDS


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
