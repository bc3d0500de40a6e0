"""Caps on cost, tokens and time, against a real server on loopback."""

from __future__ import annotations

import asyncio
import dataclasses
import pickle
import threading
from typing import Any

import pytest

from inquitree_gym.errors import BudgetError, OptionError
from inquitree_gym.llm import Budget, BudgetedChat, Completion, RateLimit, RateLimitedChat, Usage
from tests.llm.test_model import HELLO, PRICE, Ask, both, model_of, now
from tests.servers import COMPLETION_TOKENS, PROMPT_TOKENS, Hourglass, Service, said

TOKENS = PROMPT_TOKENS + COMPLETION_TOKENS


class Watch(Hourglass):
    """A clock that is set by hand."""

    time = 0.0

    def now(self) -> float:
        return self.time


@both
@pytest.mark.parametrize(
    ("caps", "told"),
    [
        (
            {"max_cost": 1.5 * PRICE},
            "is reached: 2 replies cost $0.0001; no further request is made. Run the same command",
        ),
        ({"max_total_tokens": TOKENS + 1}, f"the cap of {TOKENS + 1} tokens is reached: 2 replies took {2 * TOKENS}"),
    ],
)
def test_nothing_is_asked_once_a_cap_is_reached(ask: Ask, caps: dict[str, Any], told: str, service: Service):
    budget = Budget(**caps)
    chat = BudgetedChat(model_of(service), budget)
    assert budget.exceeded is None
    ask(chat)
    ask(chat)
    with pytest.raises(BudgetError) as refused:
        ask(chat)
    assert told in str(refused.value)
    assert len(service.requests) == 2
    assert budget.usage == Usage(
        2,
        prompt_tokens=2 * PROMPT_TOKENS,
        completion_tokens=2 * COMPLETION_TOKENS,
        cost=budget.usage.cost,
        seconds=budget.usage.seconds,
    )
    assert budget.usage.cost == pytest.approx(2 * PRICE)
    assert budget.usage.tokens == 2 * TOKENS
    assert chat.config == model_of(service).config


def test_time_is_capped_from_when_the_budget_is_made(service: Service):
    clock = Watch()
    clock.time = 1000.0
    budget = Budget(max_seconds=60, clock=clock)
    chat = BudgetedChat(model_of(service), budget)
    clock.time += 59.9
    now(chat)
    clock.time += 0.1
    with pytest.raises(BudgetError, match="the cap of 60 seconds is reached: 60 have passed"):
        now(chat)
    assert budget.seconds == pytest.approx(60)


def test_a_budget_goes_on_in_another_process():
    clock = Watch()
    budget = Budget(max_total_tokens=4, max_seconds=60, clock=clock)
    clock.time = 59.0
    budget.add(Completion("x", "stop", {"prompt": 1, "completion": 1}, 0.5))
    there = pickle.loads(pickle.dumps(budget))
    assert (there.usage, there.seconds, there.exceeded) == (
        Usage(1, prompt_tokens=1, completion_tokens=1, cost=0.5),
        59.0,
        None,
    )
    there.add(Completion("x", "stop", {"prompt": 1, "completion": 1}, 0.5))
    there.clock.time += 1.0
    assert "4 tokens is reached" in there.exceeded
    assert budget.exceeded is None


def test_requests_under_way_are_still_paid(service: Service):
    budget = Budget(max_total_tokens=1)
    chat = BudgetedChat(model_of(service), budget)

    async def ask() -> list[Any]:
        return await asyncio.gather(*(chat.complete(HELLO) for _ in range(3)))

    asyncio.run(ask())
    assert budget.usage.replies == len(service.requests) == 3
    with pytest.raises(BudgetError):
        now(chat)


def test_a_cached_reply_is_not_paid_for():
    reply = Completion("x", "stop", {"prompt": 5, "completion": 5}, 1.0, cached=True)
    assert Usage.of(reply) == Usage(cached=1)
    assert Usage.of(dataclasses.replace(reply, cached=False)) == Usage(
        1, prompt_tokens=5, completion_tokens=5, cost=1.0
    )


def test_a_cap_on_cost_needs_a_price(service: Service):
    nameless = model_of(service, "nobody-knows")
    for chat in (nameless, RateLimitedChat(nameless, RateLimit(1))):
        with pytest.raises(OptionError, match=r"no price for 'nobody-knows'.*cap the tokens instead"):
            BudgetedChat(chat, Budget(max_cost=1))
    BudgetedChat(nameless, Budget(max_total_tokens=1))


def test_a_cap_on_tokens_that_the_service_does_not_count_cannot_be_held(service: Service):
    plain = said("so")
    service.planned.append(plain._replace(body=plain.body | {"usage": None}))
    budget = Budget(max_total_tokens=10**6)
    chat = BudgetedChat(model_of(service), budget)
    now(chat)
    with pytest.raises(BudgetError, match="cannot be enforced: 1 reply came without a count of tokens"):
        now(chat)
    assert dataclasses.replace(budget.usage, seconds=0) == Usage(1, unpriced=1, uncounted=1)


def test_threads_share_a_budget():
    budget = Budget(max_total_tokens=10**9)
    reply = Completion("x", "stop", {"prompt": 1, "completion": 1}, 0.5)
    threads = [threading.Thread(target=lambda: [budget.add(reply) for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert budget.usage == Usage(2000, prompt_tokens=2000, completion_tokens=2000, cost=1000.0)


@pytest.mark.parametrize(
    "caps",
    [{"max_cost": 0}, {"max_cost": -1.0}, {"max_total_tokens": 0}, {"max_seconds": 0}, {"max_cost": float("nan")}],
)
def test_a_cap_is_a_positive_number(caps: dict[str, Any]):
    with pytest.raises(OptionError, match="must be a number above 0"):
        Budget(**caps)
