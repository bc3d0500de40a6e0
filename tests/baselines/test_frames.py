"""Frames around a move: reasoning before it and inventions after it, in time that grows with the length alone."""

from __future__ import annotations

from typing import Any

import pytest

from inquitree_gym.baselines.conversation import is_finished, move_fault, read_move
from inquitree_gym.errors import ActionError
from inquitree_gym.inquiry.agents.llm import read_opinion, split_belief
from inquitree_gym.inquiry.llm_matcher import read_choice
from inquitree_gym.inquiry.probe import read_verdict
from inquitree_gym.integrations.session import check_move
from inquitree_gym.llm import Completion, strip_thinking
from inquitree_gym.llm.chat import End, end_of
from inquitree_gym.projection.judges.requests import read_ratings
from tests.frames import FRAMES

MANY = 200_000
MOVE = "Measure it."


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("move", ["b", "1. This rose.\n2. That fell."])
def test_the_move_alone_acts_whatever_is_around_it(frame: Any, move: str):
    reply = frame(move)
    assert (move_fault(reply), read_move(reply), check_move(reply)) == ("", move, move)


@pytest.mark.parametrize("nothing", ["None", "N/A", "n/a.", "nothing", "**None**"])
def test_a_move_that_names_none_is_no_move(nothing: str):
    assert move_fault(f"THOUGHT: hm\nACTION: {nothing}") == "its ACTION part names no move"
    for text in (nothing, f"ACTION: {nothing}", f"<think>hm</think>{nothing}"):
        with pytest.raises(ActionError, match="names no move"):
            check_move(text)
    assert move_fault(f"ACTION: {nothing} of the beetles") == ""


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ('{"action": "a", "action": "b"}', "2 parts of it begin with ACTION:"),
        ('{"action": "a"}\n{"action": "b"}', "2 parts of it begin with ACTION:"),
        ('{"thought": "a", "action": null}', "its ACTION part is empty"),
        ('{"thought": "a", "action": "b', "no part of it begins with ACTION:"),
        ("1. ACTION: a\n2. ACTION: b", "2 parts of it begin with ACTION:"),
        ("<think>ACTION: a", "no part of it begins with ACTION:"),
        ("ACTION: a</think>", "no part of it begins with ACTION:"),
    ],
)
def test_a_frame_without_one_move_is_told(reply: str, fault: str):
    assert move_fault(reply) == fault


def test_what_looks_like_a_frame_inside_a_move_stays():
    for move in (
        "Observation: salt raised the dough.", '{"text": 1}', "12", "null",
        "Use ```x``` there", "Ask why\n```\na\n```\nand how", "Say <think> aloud",
    ):  # fmt: skip
        assert (check_move(move), read_move(f"THOUGHT: x\nACTION: {move}")) == (move, move)
    assert read_move("ACTION: Look:\n- Action: none") == "Look:\n- Action: none"
    assert read_move("THOUGHT: either\n- Action: redo\nACTION: go on") == "go on"


def test_all_readers_leave_out_the_same_reasoning():
    for before in ("<thinking>{}</thinking>", "[THINK]{}[/THINK]", "{}</reasoning>", "analysis{}assistantfinal"):
        assert read_choice(before.format("s1") + "s2", ["s1", "s2"]) == ("s2", "")
        assert read_verdict(before.format("VERDICT: VALID ") + "VERDICT: INVALID") is True
        assert read_opinion(before.format("VERDICT: VALID\n") + "VERDICT: DOUBTFUL") == "DOUBTFUL."
        assert split_belief(before.format("\nBELIEF: fake\n") + "\nBELIEF: true")[1] == 0
        assert read_ratings(before.format("RATING P1-A: 1 ") + "RATING P1-A: -1", ["P1-A"], "real")[0][0] == -1
        assert Completion(before.format("x"), "length", {}, None).used_up
        assert not Completion(before.format("x") + "y", "length", {}, None).used_up


@pytest.mark.parametrize(
    "piece",
    ["<think>", "</think>", "<think></think>", "[THINK]", "<|channel|>", "<|channel|>analysis", "</s>", "<|end|>", "{",
     '{"action":', '{"a":1}', "}", "ACTION", "ACTION:", "\nACTION: x", "- ", "1. ", " ", "*", "\n", "`", "\n```",
     "\nObservation", "None ", "/", "["],
)  # fmt: skip
def test_a_very_long_reply_is_read_at_once(piece: str):
    for reply in (piece * (MANY // len(piece)), "ACTION: " + piece * (MANY // len(piece)), " " * MANY + piece):
        assert len(strip_thinking(reply)) <= len(reply)
        assert isinstance(move_fault(reply), str)
        assert isinstance(is_finished(reply), bool)


ENDS: dict[End, list[str]] = {
    "complete": ["stop", "end_turn", "STOP", "tool_calls", "FinishReason.STOP", "", "unknown"],
    "cut": ["length", "max_tokens", "MAX_TOKENS", "FinishReason.MAX_TOKENS", "max_output_tokens"],
    "context": ["model_length", "model_context_window_exceeded"],
    "filtered": ["content_filter", "FinishReason.SAFETY", "content_filtered"],
    "refused": ["refusal"],
}


@pytest.mark.parametrize(("word", "end"), [(word, end) for end, words in ENDS.items() for word in words])
def test_a_word_of_a_service_tells_how_a_reply_ended(word: str, end: End):
    assert end_of(word) == Completion("", word, {}, None).end == end


@pytest.mark.parametrize(
    ("reply", "finished"),
    [
        ("ACTION: How steady is a fly's sense of hea", False),
        ("Okay, so the user wants … Let me think about", False),
        ("ACTION:\n1. This rose.\n2. That f", False),
        ("ACTION: go\nTHOUGHT: as it", True),
        ("ACTION: go\nObservation: it", True),
        ("ACTION: go<|im_end|>\n<|im_st", True),
        ("```\nACTION: go\n```\nThis", True),
        ('{"action": "go"}\nThis', True),
        ('{"action": "go', False),
        ("ACTION: a\nACTION: b\nTHOUGHT:", False),
    ],
)
def test_a_move_is_finished_if_something_follows_it(reply: str, finished: bool):
    assert is_finished(reply) == finished
