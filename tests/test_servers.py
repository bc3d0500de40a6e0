"""The loopback server says in a stream what it says at once, and calls tools."""

from __future__ import annotations

import json

import pytest
from openai import OpenAI

from tests.servers import COMPLETION_TOKENS, Service, calling

TEXT = "THOUGHT: two  words.\nACTION: What is it?\n"


@pytest.fixture
def ask(service: Service):
    with OpenAI(base_url=service.address, api_key="none") as client:
        yield lambda **options: client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hello"}], **options
        )


@pytest.mark.parametrize("text", [TEXT, "  ", ""])
def test_a_stream_has_the_words_of_the_answer(service: Service, ask, text: str):
    service.reply = lambda body: text
    assert ask().choices[0].message.content == text
    *chunks, last, usage = ask(stream=True, stream_options={"include_usage": True})
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text
    assert last.choices[0].finish_reason == "stop"
    assert usage.usage.completion_tokens == COMPLETION_TOKENS


def test_a_tool_is_called_at_once_and_in_a_stream(service: Service, ask):
    service.reply = lambda body: calling("move", text="What is it?")
    (call,) = ask().choices[0].message.tool_calls
    *chunks, last = ask(stream=True)
    pieces = [piece for chunk in chunks for piece in chunk.choices[0].delta.tool_calls or ()]
    assert call.function.name == pieces[0].function.name == "move"
    assert call.function.arguments == "".join(piece.function.arguments for piece in pieces)
    assert json.loads(call.function.arguments) == {"text": "What is it?"}
    assert last.choices[0].finish_reason == "tool_calls"
