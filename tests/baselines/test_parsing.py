"""Replies in parts: only the part that is asked for acts, and what breaks the form is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.baselines.conversation import move_fault, read_move
from inquitree_gym.inquiry.agents.llm import opinion_fault, read_opinion, split_belief

GOOD = {
    "THOUGHT: I wonder.\nACTION: Measure it.": "Measure it.",
    "ACTION: Measure it.": "Measure it.",
    "thought: I wonder.\naction: Measure it.": "Measure it.",
    "THOUGHT: one\ntwo\n\nthree\nACTION: Measure it.\n": "Measure it.",
    "THOUGHT: x\nACTION:\n1. This rose.\n2. That fell.": "1. This rose.\n2. That fell.",
    "ACTION: Measure it.\nTHOUGHT: or not": "Measure it.",
    "**THOUGHT:** I wonder.\n**ACTION:** Measure it.": "Measure it.",
    "**Thought**: x\n**Action**: Measure it.": "Measure it.",
    "## THOUGHT\nx\n## ACTION\nMeasure it.": "Measure it.",
    "> ACTION: Measure it.": "Measure it.",
    "  ACTION :  Measure it.": "Measure it.",
    "ACTION\uff1a Measure it.": "Measure it.",
    "<think>ACTION: not this\nACTION: nor this</think>\nTHOUGHT: x\nACTION: Measure it.": "Measure it.",
    "not opened ACTION: x </think> ACTION: Measure it.": "Measure it.",
    "THOUGHT: is an ACTION: within a line one?\nACTION: Measure it.": "Measure it.",
    "ACTION: Action potentials rise; the action: none.": "Action potentials rise; the action: none.",
    "ACTION: Measure\nActionable: no\nIn action\nit.": "Measure\nActionable: no\nIn action\nit.",
    "preamble\nACTION: Measure it.": "Measure it.",
}


@pytest.mark.parametrize(("reply", "move"), GOOD.items())
def test_the_action_alone_acts(reply: str, move: str):
    assert (move_fault(reply), read_move(reply)) == ("", move)


BELIEFS = {
    "BELIEF: fake 0.8": 0.8, "BELIEF: true 0.75": 0.25, "BELIEF: fake": 1.0, "Belief: True.": 0.0,
    "**BELIEF:** FAKE (0.6)": 0.6, "> BELIEF： fake, 1.0": 1.0, "BELIEF: fake .5": 0.5, "BELIEF: fake 1": 1.0,
    "BELIEF: fake 0.2\nBELIEF: true 1": 0.0, "BELIEF: fake 80%": None, "BELIEF: fake 8": None,
    "BELIEF: fake or true": None, "BELIEF: faked": None, "BELIEF: fake\nBELIEF: unsure": None, "BELIEF:": None,
    "": None,
}  # fmt: skip


@pytest.mark.parametrize(("line", "belief"), BELIEFS.items())
def test_a_belief_is_read_and_is_no_part_of_the_move(line: str, belief: float | None):
    for reply in (f"THOUGHT: x\n{line}\nACTION: Measure it.", f"THOUGHT: x\nACTION: Measure it.\n{line}"):
        rest, stated = split_belief(reply)
        assert stated == (None if belief is None else pytest.approx(belief))
        assert (move_fault(rest), read_move(rest)) == ("", "Measure it.")


def test_only_a_line_of_its_own_outside_the_thinking_is_a_belief():
    for reply in ("ACTION: my BELIEF: fake", "<think>BELIEF: fake</think>\nACTION: redo", "ACTION: beliefs: fake"):
        assert split_belief(reply)[1] is None
    assert split_belief("ACTION: redo\nBELIEF: fake\nthe study") == ("ACTION: redo\nthe study", 1.0)


@given(st.text())
def test_a_belief_is_a_probability_in_any_text(reply: str):
    belief = split_belief(f"BELIEF: fake {reply}")[1]
    assert belief is None or 0 <= belief <= 1


BAD = {
    "": "it is empty",
    " \n\t": "it is empty",
    "Measure it.": "no part of it begins with ACTION:",
    "THOUGHT: Measure it.": "no part of it begins with ACTION:",
    "My ACTION: Measure it.": "no part of it begins with ACTION:",
    "ACTION:": "its ACTION part is empty",
    "THOUGHT: x\nACTION:  \n\nTHOUGHT: y": "its ACTION part is empty",
    "ACTION: one\nACTION: two": "2 parts of it begin with ACTION:",
    "ACTION:\nACTION: two\n**Action:** three": "3 parts of it begin with ACTION:",
    "<think>x</think>": "no part of it begins with ACTION:",
}


@pytest.mark.parametrize(("reply", "fault"), BAD.items())
def test_a_reply_that_breaks_the_form_is_told_how_and_acts_whole(reply: str, fault: str):
    assert (move_fault(reply), read_move(reply)) == (fault, reply)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(str.strip).filter(bool)
FREE = TEXT.filter(lambda text: move_fault(f"ACTION: {text}") == "")


@given(thought=TEXT, action=FREE)
def test_whatever_is_thought_the_action_is_read_or_the_fault_told(thought: str, action: str):
    reply = f"THOUGHT: {thought}\nACTION: {action}"
    if "</think>" in reply.lower():
        return
    assert (read_move(reply) == read_move(f"ACTION: {action}")) == (move_fault(reply) == "")


@given(st.text())
def test_any_text_is_read(reply: str):
    assert read_move(reply) == reply if move_fault(reply) else read_move(reply)
    assert read_opinion(reply) == reply if opinion_fault(reply) else read_opinion(reply)


@pytest.mark.parametrize(
    ("reply", "opinion"),
    [
        ("REASON: too good.\nVERDICT: DOUBTFUL", "DOUBTFUL. too good."),
        ("VERDICT: valid.\nREASON: as known", "VALID. as known"),
        ("VERDICT: **VALID**", "VALID."),
        ("REASON: a\nREASON: b\nVERDICT: Valid, I think", "VALID. a b"),
        ("<think>VERDICT: VALID</think>VERDICT: DOUBTFUL", "DOUBTFUL."),
    ],
)
def test_an_opinion_is_verdict_and_reason(reply: str, opinion: str):
    assert (opinion_fault(reply), read_opinion(reply)) == ("", opinion)


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("", "it is empty"),
        ("It looks fine.", "no part of it begins with VERDICT:"),
        ("VERDICT: INVALID", "its VERDICT is neither VALID nor DOUBTFUL"),
        ("VERDICT: not VALID", "its VERDICT is neither VALID nor DOUBTFUL"),
        ("VERDICT: VALID\nVERDICT: DOUBTFUL", "2 parts of it begin with VERDICT:"),
    ],
)
def test_an_opinion_that_breaks_the_form_is_passed_on_whole(reply: str, fault: str):
    assert (opinion_fault(reply), read_opinion(reply)) == (fault, reply)
