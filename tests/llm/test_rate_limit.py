"""Rates, by a clock that is set by hand, and against a real server on loopback."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.errors import OptionError
from inquitree_gym.llm import Completion, RateLimit, RateLimitedChat, Reservation, estimated_tokens
from inquitree_gym.llm.retry import FIRST_REPLY
from tests.llm.test_budget import Watch
from tests.llm.test_model import HELLO, Ask, both, model_of, now
from tests.servers import Service

PROMPT = sum(map(estimated_tokens, HELLO))


def reply(prompt: int, completion: int, retries: int = 0) -> Completion:
    return Completion("so", "stop", {"prompt": prompt, "completion": completion}, 0.0, retries=retries)


@given(rate=st.integers(1, 600), pauses=st.lists(st.floats(0, 200, allow_nan=False), min_size=1, max_size=60))
def test_no_minute_has_more_requests_than_the_rate(rate: int, pauses: list[float]):
    clock = Watch()
    pace = RateLimit(requests_per_minute=rate, clock=clock)
    starts = []
    for pause in pauses:
        starts.append(clock.time + pace.reserve(10).wait)
        clock.time += pause
    assert starts == sorted(starts)
    for index, start in enumerate(starts):
        in_the_minute = sum(start <= other < start + 60 * (1 - 1e-9) for other in starts[index:])
        assert in_the_minute <= rate


def test_a_queue_goes_at_the_full_rate_and_who_comes_after_it_waits_for_nothing():
    clock = Watch()
    pace = RateLimit(requests_per_minute=30, clock=clock)
    assert [pace.reserve(1).wait for _ in range(4)] == [0, 2, 4, 6]
    clock.time = 7.5
    assert pace.reserve(1).wait == pytest.approx(0.5)
    clock.time = 100.0
    assert [pace.reserve(1).wait for _ in range(2)] == [0, 2]  # what was left unused is not made up for


@given(
    sizes=st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 3000), st.integers(1, 5000)), min_size=5, max_size=50)
)
def test_tokens_stay_within_the_rate_however_wrong_the_estimates_are(sizes: list[tuple[int, int, int]]):
    clock = Watch()
    pace = RateLimit(tokens_per_minute=6000, clock=clock)
    used = 0
    for prompt, completion, estimate in sizes:
        slot = pace.reserve(estimate)
        clock.time += slot.wait
        # All that was asked for before this one has had its time.
        assert used <= clock.time * 100 + 1e-3
        used += prompt + completion
        pace.settle(slot, reply(prompt, completion))


def test_what_a_request_took_less_or_more_moves_those_after_it():
    for completion, wait in ((50, 1.0), (5950, 60.0)):
        clock = Watch()
        pace = RateLimit(tokens_per_minute=6000, clock=clock)
        slot = pace.reserve(100)
        assert slot == Reservation(0.0, 100 + FIRST_REPLY)
        pace.settle(slot, reply(50, completion))
        assert pace.reserve(100).wait == pytest.approx(wait)


def test_the_mean_of_the_replies_is_reserved_once_there_are_some():
    pace = RateLimit(tokens_per_minute=6000, clock=Watch())
    for completion in (10, 30):
        pace.settle(pace.reserve(100), reply(100, completion))
    assert pace.reserve(7).tokens == 7 + 20


def test_tokens_that_were_not_counted_stay_reserved():
    pace = RateLimit(tokens_per_minute=6000, clock=Watch())
    slot = pace.reserve(100)
    pace.settle(slot, Completion("so", "stop", {}, None))
    assert pace.reserve(100).wait == pytest.approx((100 + FIRST_REPLY) / 100)


def test_threads_share_a_pace():
    pace = RateLimit(requests_per_minute=60, clock=Watch())
    waits: list[float] = []
    threads = [
        threading.Thread(target=lambda: waits.extend([pace.reserve(1).wait for _ in range(100)])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(waits) == list(range(400))


@pytest.mark.e2e
@both
def test_requests_wait_for_their_turn(ask: Ask, service: Service):
    clock = Watch()
    chat = RateLimitedChat(model_of(service), RateLimit(requests_per_minute=20, clock=clock), clock)
    for _ in range(3):
        ask(chat)
    assert clock.waits == [3, 6]  # by this clock no time has passed
    assert len(service.requests) == 3
    assert chat.config == model_of(service).config


def test_episodes_on_one_loop_share_a_pace(service: Service):
    clock = Watch()
    pace = RateLimit(tokens_per_minute=60_000, clock=clock)

    async def ask() -> None:
        chats = [RateLimitedChat(model_of(service), pace, clock) for _ in range(3)]
        await asyncio.gather(*(chat.complete(HELLO) for chat in chats))

    asyncio.run(ask())
    reserved = (PROMPT + FIRST_REPLY) / 1000
    assert sorted(clock.waits) == pytest.approx([reserved, 2 * reserved])


def test_one_that_waits_can_be_cancelled(service: Service):
    chat = RateLimitedChat(model_of(service), RateLimit(requests_per_minute=0.001))
    now(chat)

    async def ask() -> None:
        waiting = asyncio.create_task(chat.complete(HELLO))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()

    asyncio.run(ask())
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("rates", "told"),
    [
        ({}, "a rate limit needs requests_per_minute or tokens_per_minute"),
        ({"requests_per_minute": 0}, "requests_per_minute must be a number above 0, got 0"),
        ({"tokens_per_minute": -5.0}, "tokens_per_minute must be a number above 0, got -5.0"),
        ({"tokens_per_minute": float("nan")}, "tokens_per_minute must be a number above 0, got nan"),
    ],
)
def test_a_rate_is_a_positive_number(rates: dict[str, Any], told: str):
    with pytest.raises(OptionError, match=told):
        RateLimit(**rates)
