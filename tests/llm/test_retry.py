"""How long to wait, and what may be said of a fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.llm.litellm import scrub
from inquitree_gym.llm.retry import FIRST_WAIT, LONGEST_WAIT, next_wait, requested_wait

NOON = 1_767_960_000.0  # Fri, 09 Jan 2026 12:00:00 GMT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 2.5 "}, 2.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "Fri, 09 Jan 2026 12:01:30 GMT"}, 90.0),
        ({"retry-after": "Fri, 09 Jan 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "1.2.3"}, None),
        ({"retry-after": "99"}, 99.0),
        ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "soon"}, None),
        ({"retry-after-ms": "-5"}, 0.0),
    ],
)
def test_what_a_service_asks_to_wait(headers: dict[str, str], seconds: float | None):
    assert requested_wait(headers, NOON) == seconds


@given(retry=st.integers(0, 2_000), jitter=st.floats(0, 1, exclude_max=True))
def test_waits_grow_up_to_a_limit_and_are_spread(retry: int, jitter: float):
    own = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(retry, 20))
    assert own / 2 <= next_wait(retry, None, jitter) <= own
    assert next_wait(retry, None, 0.0) == own / 2


@given(asked=st.floats(0, 1_000), retry=st.integers(0, 9), jitter=st.floats(0, 1, exclude_max=True))
def test_never_less_is_waited_than_was_asked(asked: float, retry: int, jitter: float):
    assert asked <= next_wait(retry, asked, jitter) <= asked + FIRST_WAIT


SECRET = "a-key-of-no-known-form-1234"


@pytest.mark.parametrize("name", ["MY_API_KEY", "HF_TOKEN", "aws_secret_access", "DB_PASSWORD", "GOOGLE_CREDENTIALS"])
def test_values_of_secret_variables_are_scrubbed(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(name, SECRET)
    assert scrub(f"wrong key {SECRET}!") == f"wrong key [{name}]!"


def test_values_of_other_variables_and_short_ones_are_left(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GREETING", SECRET)
    monkeypatch.setenv("SHORT_KEY", "none")
    assert scrub(f"none {SECRET}") == f"none {SECRET}"


@pytest.mark.parametrize(
    "key",
    ["sk-proj-0123456789", "sk-ant-api03-abcdef_ghi", "AIzaSyA0123456789", "gsk_0123456789ab", "hf_abcdefghijkl",
     "sk-01234*****nyone"],
)  # fmt: skip
def test_what_looks_like_a_key_is_scrubbed(key: str):
    assert scrub(f"Incorrect API key provided: {key}. See") == "Incorrect API key provided: [key]. See"


def test_a_bearer_is_scrubbed_and_words_are_not():
    assert scrub("Authorization: Bearer abc.def, ask-me-whatever-you-like") == (
        "Authorization: Bearer [key] ask-me-whatever-you-like"
    )
