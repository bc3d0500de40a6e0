"""Decisions in free text: tokens, phrases, and texts that only mention one."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.inquiry.decisions import (
    MAX_BARE_LENGTH,
    TOKENS,
    asks_to_repeat,
    bare_decision,
    declines,
    read_decision,
)
from inquitree_gym.inquiry.engine import Decision
from inquitree_gym.text_limits import MAX_ACTION_LENGTH
from inquitree_gym.trees import builtin_ids, load_tree

CASES = json.loads((Path(__file__).parents[1] / "data" / "decisions.json").read_text(encoding="utf-8"))["cases"]
KINDS = {"negated", "hypothetical", "quoted", "two_in_one", "reasoned_before_decided", "plain", "none"}
GAPS = st.text(" _-\t\n\u00a0\u2011", min_size=1, max_size=3)
ARTICLES = st.sampled_from(["", "the", "a", "an", "this", "that", "my"])
DECISIONS = {
    Decision.REDO: (("redo",), ("study",)),
    Decision.CONCLUDE: (("draw",), ("conclusion", "conclusions")),
    Decision.EXPLORE: (("explore",), ("new subtopic", "new subtopics")),
}


def right(cases: list[dict[str, str]]) -> float:
    """Return the share of labelled texts that are read as labelled."""
    return sum(read_decision(case["text"]).name.lower() == case["meaning"] for case in cases) / len(cases)


def test_the_table_has_every_meaning_and_kind_in_every_part():
    assert len(CASES) >= 150
    assert {case["kind"] for case in CASES} == KINDS
    assert set(Counter(case["part"] for case in CASES)) == {"design", "second", "held_out"}
    assert {case["meaning"] for case in CASES} == {"redo", "explore", "conclude", "none"}
    assert len({case["text"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("part", ["design", "second", "held_out"])
def test_texts_as_agents_write_them_are_read_right(part: str):
    assert right([case for case in CASES if case["part"] == part]) >= 0.98
    assert right(CASES) >= 0.99


@st.composite
def decisions(draw: st.DrawFn) -> tuple[str, Decision]:
    """A decision in one of the ways to write it."""
    decision = draw(st.sampled_from(list(DECISIONS)))
    verbs, objects = DECISIONS[decision]
    words = [draw(st.sampled_from(verbs)), draw(ARTICLES), *draw(st.sampled_from(objects)).split()]
    text = "".join(itertools.chain.from_iterable((word, draw(GAPS)) for word in words if word))[:-1]
    text = text.rstrip(" _-\t\n\u00a0\u2011")
    return draw(st.sampled_from([text, text.upper(), text.title(), text.swapcase()])), decision


BEFORE = st.sampled_from(["", "I would like to ", "**", "_", "(", "Decision: ", "לכן ", "🧪", "{{", "\0", "1. ", "`"])
AFTER = st.sampled_from(["", " and see", "**", "_", ")", ".", "_2", " לכן", "🧪", "}}", "\0", "\ud800", "\n\n", "'s"])


@given(decisions(), BEFORE, AFTER)
def test_a_decision_is_read_however_it_is_written(written: tuple[str, Decision], before: str, after: str):
    text, decision = written
    assert read_decision(f"{before}{text}{after}") == decision


@given(
    st.lists(st.sampled_from(list(TOKENS)), min_size=2, max_size=4), st.sampled_from([" or ", " / ", ". ", ", not "])
)
def test_the_last_token_wins_whatever_stands_between(tokens: list[str], between: str):
    assert read_decision(between.join(tokens).upper()) == TOKENS[tokens[-1]]


@given(st.lists(decisions(), min_size=2, max_size=4))
def test_the_last_phrase_wins(written: list[tuple[str, Decision]]):
    if not any(token in text.lower() for text, _ in written for token in TOKENS):
        assert read_decision(". ".join(text for text, _ in written)) == written[-1][1]


@pytest.mark.parametrize("text", ["redo the study", "redo study", "Draw a conclusion.", "explore new subtopic", "hm"])
def test_only_tokens_count_where_phrases_do_not(text: str):
    assert read_decision(text, tokens_only=True) == bare_decision(text, tokens_only=True) == Decision.NONE


@pytest.mark.parametrize(
    "text",
    [
        "", "study", "redostudy", "undredo the study", "redo the studying", "redo their study", "draw a picture",
        "overdraw conclusions", "explore subtopic", "explore the old subtopic", "re do study",
        "I would test whether mice that met the odour know it again",
        "Does the response come back when the drug is given again?",
        "Run the same animals through the maze after a month to see whether they find the platform again",
        "Which cells fire when a mouse returns to a place and takes the same turn once more?",
        "What makes some readers finish a sentence before it ends?",
        "How do people come to a new conclusion when the facts change?",
        "Ask volunteers to repeat the words that they remember",
    ],
)  # fmt: skip
def test_other_words_and_proposals_are_no_decision(text: str):
    assert read_decision(text) == Decision.NONE


@pytest.mark.parametrize(
    ("text", "told"),
    [(text, True) for text in (
        "Let me see that once more", "Once MORE, please", "do it again", "I want to repeat the measurement",
        "repeating is wise", "redo it", "I re-did this", "It should be redone", "rerun", "re-run the analysis",
        "retest", "re-measure the rates", "replicate", "double-check", "Double check this", "verify the effect",
        "another time",
    )] + [(text, False) for text in (
        "", "What speaks against the map?", "Does redox state change the rate?", "Is the testing order balanced?",
        "Once trained, do mice do more?", "How are very small changes measured?",
    )],
)  # fmt: skip
def test_a_wish_to_repeat_is_told_from_other_words(text: str, told: bool):
    assert asks_to_repeat(text) == told


@pytest.mark.parametrize("piece", ["redo ", "draw a ", "explore-new_", "redo_the_", "again", "re-", "\0", "_", " "])
def test_long_texts_of_half_decisions_are_read_to_the_end(piece: str):
    text = piece * (MAX_ACTION_LENGTH // len(piece))
    assert read_decision(text) == Decision.NONE
    assert read_decision(f"{text}\nredo study") == Decision.REDO


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("draw_conclusion", Decision.CONCLUDE), ("Draw conclusion.", Decision.CONCLUDE),
        ("**draw conclusion**", Decision.CONCLUDE), ("ACTION: draw conclusion", Decision.CONCLUDE),
        ("I would like to draw my conclusion now.", Decision.CONCLUDE),
        ("I'm ready to conclude.", Decision.CONCLUDE), ("explore_new_subtopic", Decision.EXPLORE),
        ("Let's explore a new subtopic instead.", Decision.EXPLORE), ("go back to the topic", Decision.EXPLORE),
        ("redo the study", Decision.REDO),
    ],
)  # fmt: skip
def test_a_text_that_says_nothing_else_is_a_bare_decision(text: str, decision: Decision):
    assert bare_decision(text) == decision


@pytest.mark.parametrize(
    "text",
    [
        "Do rats draw conclusions from what they see?", "How do people draw conclusions about others?",
        "explore a new subtopic: which cells are needed?", "Measure how quickly mice explore a new part of the maze",
        "Repeat the measurement in old mice", "I do not want to draw a conclusion",
        "If I could, I would draw a conclusion", "Let the volunteers draw a conclusion from ten words",
        "draw conclusion" + " " * MAX_BARE_LENGTH, "",
    ],
)  # fmt: skip
def test_a_proposal_is_no_bare_decision(text: str):
    assert bare_decision(text) == Decision.NONE


@pytest.mark.parametrize("tree_id", builtin_ids())
def test_no_text_of_a_shipped_tree_is_a_bare_decision_or_declines(tree_id: str):
    tree = load_tree(tree_id)
    texts = [text for node in (*tree.subtopics, *tree.studies) for text in (node.text, *node.hints)]
    assert not [text for text in (tree.topic, *texts) if bare_decision(text) or declines(text)]
    questions = [text for subtopic in tree.subtopics for text in (subtopic.text, *subtopic.paraphrases)]
    assert not [text for text in (tree.topic, *questions) if read_decision(text)]


@pytest.mark.parametrize(
    ("text", "told"),
    [(text, True) for text in (
        "not what I meant", "This is not what I meant.", "That's not what I meant",
        "No, that is not the question I asked.", "Sorry, that isn't what I had in mind.",
        "This isn’t what I wanted.", "Wrong subtopic.", "that is not my question",
    )] + [(text, False) for text in (
        "", "what I meant", "this is what I meant", "Measure what I meant by salt", "my question", "the right idea",
    )],
)  # fmt: skip
def test_a_subtopic_that_was_not_meant_is_declined(text: str, told: bool):
    assert declines(text) == told
