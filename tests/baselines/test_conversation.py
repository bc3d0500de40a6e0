"""Conversations that stay within a number of tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.baselines.conversation import CUT, NOTHING, SHARE, Conversation, assistant, system, user
from inquitree_gym.inquiry.prompts import AGENT_TEMPLATE_NAMES, inquiry_prompts
from inquitree_gym.llm import Message
from inquitree_gym.llm.chat import BYTES_PER_TOKEN, estimated_tokens

PROMPTS = inquiry_prompts(names=AGENT_TEMPLATE_NAMES)
OPENING = [system("The rules."), user("The opening.")]


def conversation(exchanges: int, context: int, head: list[Message] | None = None) -> Conversation:
    talk = Conversation(OPENING if head is None else head, context, PROMPTS)
    for number in range(exchanges):
        talk.add_reply(f"move {number} " + "x" * 80)
        talk.add_user(f"answer {number} " + "y" * 80)
    return talk


def tokens(messages: list[Message]) -> int:
    return sum(map(estimated_tokens, messages))


@given(exchanges=st.integers(0, 12), context=st.integers(100, 900))  # fewer would cut its texts
def test_head_and_newest_exchange_stay_and_the_rest_fits(exchanges: int, context: int):
    whole = conversation(exchanges, 10**9).messages()
    messages = conversation(exchanges, context).messages()
    dropped = (len(whole) - len(messages)) // 2
    assert messages[2:] == whole[2 + 2 * dropped :]
    assert len(messages) == len(whole) - 2 * dropped
    kept = tokens([*whole[:2], *messages[2:]])
    assert kept <= context or len(messages) == min(len(whole), 4)
    if dropped:
        assert kept + tokens(whole[2 * dropped : 2 + 2 * dropped]) > context
        assert f"{dropped} earlier exchange{'s' * (dropped > 1)} left out" in messages[1]["content"]


def test_a_head_of_one_message_keeps_the_newest_question():
    talk = Conversation([system("Judge.")], 1, PROMPTS)
    for number in range(3):
        talk.add_user(f"question {number}")
        if number < 2:
            talk.add_reply(f"verdict {number}")
    first, last = talk.messages()
    assert first["content"].startswith("Judge.\n\n[2 earlier exchanges")
    assert last == user("question 2")


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_reply_is_not_sent_as_such(text: str):
    talk = Conversation(OPENING, 100, PROMPTS)
    talk.add_reply(text)
    assert talk.messages()[-1] == assistant(text) == {"role": "assistant", "content": NOTHING}


@pytest.mark.parametrize(
    ("text", "estimate"), [("", 4), ("a", 5), ("abcd", 5), ("abcde", 6), ("ö" * 4, 6), ("\ud800", 5), ("x" * 400, 104)]
)
def test_tokens_are_estimated_by_bytes(text: str, estimate: int):
    assert estimated_tokens(user(text)) == estimate


def test_what_is_sent_once_counts_and_is_not_remembered():
    talk = conversation(6, 10_000)
    whole = talk.messages()
    more = assistant("no form"), user("Once more.")
    assert talk.messages(*more) == [*whole, *more]
    assert talk.messages() == whole
    tight = conversation(6, tokens(whole))
    assert tight.messages() == whole
    assert tight.messages(*more)[2:] == [*whole[4:], *more]
    assert conversation(6, 100).messages(*more)[2:] == [*whole[-2:], *more]


@given(text=st.text(), context=st.integers(1, 200))
def test_a_text_of_a_model_takes_no_more_than_its_share(text: str, context: int):
    talk = Conversation(OPENING, context, PROMPTS)
    short = talk.shorten(text)
    most = context * BYTES_PER_TOKEN // SHARE
    if len(text.encode("utf-8", "replace")) <= most:
        assert short == text
    else:
        assert short.startswith(CUT)
        kept = short.removeprefix(CUT)
        assert len(kept.encode("utf-8", "replace")) <= most
        assert text.encode("utf-8", "replace").endswith(kept.encode("utf-8", "replace"))
    talk.add_reply(text)
    assert talk.messages()[-1] == assistant(short)
