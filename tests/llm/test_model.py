"""Chat models over litellm, against a real server on loopback that speaks OpenAI's protocol, with every fault."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import logging
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from inquitree_gym.errors import MissingExtraError, OptionError, ServiceError
from inquitree_gym.llm import MAX_REPLY, ChatModel, Completion, Usage, run_sync
from inquitree_gym.llm.chat import complete_with_text
from tests.servers import (
    COMPLETION_TOKENS,
    DRIPPING,
    FILTERED,
    KEY,
    PASSING,
    PROMPT_TOKENS,
    REFUSED,
    SERVER_FAULT,
    SLOW,
    USED_UP,
    Answer,
    Hourglass,
    Service,
    failed,
    raw,
    said,
)

pytestmark = pytest.mark.e2e

HELLO = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
PRICE = PROMPT_TOKENS * 0.15e-6 + COMPLETION_TOKENS * 0.60e-6
"""Of a plain answer by gpt-4o-mini, US dollars."""


def now(model: ChatModel, **options: Any) -> Completion:
    return run_sync(model.complete(HELLO, **options))


def later(model: ChatModel, **options: Any) -> Completion:
    return asyncio.run(model.complete(HELLO, **options))


both = pytest.mark.parametrize("ask", [now, later])
Ask = Callable[..., Completion]


def model_of(service: Service, model: str = "gpt-4o-mini", **settings: Any) -> ChatModel:
    return ChatModel(model, **{"base_url": service.address, "clock": Hourglass(), **settings})


def waits(model: ChatModel) -> list[float]:
    assert isinstance(model.clock, Hourglass)
    return model.clock.waits


# Asking


@both
def test_a_reply_and_what_it_took(ask: Ask, service: Service):
    service.planned.append(said("Hello yourself"))
    reply = ask(model_of(service))
    assert dataclasses.replace(reply, seconds=0, cost=0) == Completion(
        "Hello yourself", "stop", {"prompt": PROMPT_TOKENS, "completion": COMPLETION_TOKENS}, 0
    )
    assert reply.cost == pytest.approx(PRICE)
    assert reply.seconds > 0
    (request,) = service.requests
    assert request.path == "/v1/chat/completions"
    assert request.body == {"model": "gpt-4o-mini", "messages": HELLO, "temperature": 0.0, "max_tokens": 4096}


def test_reasoning_is_counted_apart_and_priced_as_part_of_the_reply(service: Service):
    service.planned.append(said("Hello yourself", reasoning=300))
    reply = now(model_of(service, max_tokens=900))
    assert reply.tokens == {"prompt": PROMPT_TOKENS, "completion": COMPLETION_TOKENS + 300, "reasoning": 300}
    assert reply.cost == pytest.approx(PRICE + 300 * 0.60e-6)
    assert (Usage.of(reply) + Usage(reasoning_tokens=5)).reasoning_tokens == 305
    assert Usage.of(now(model_of(service))).reasoning_tokens is None


@pytest.mark.parametrize(
    ("model", "largest"),
    [("gpt-4o-mini", 128_000 * 9 // 10 - 16_384), ("gpt-4", 8192 * 9 // 10 - 4096), ("my-own-model", None)],
)
def test_the_largest_request_leaves_room_for_the_reply_and_is_told_without_a_request(
    model: str, largest: int | None, service: Service
):
    assert model_of(service, model, max_tokens=999).largest_request == largest
    assert not service.requests


@pytest.mark.parametrize("reply", [USED_UP, said("<think>Perhaps, but then", "length"), said(" ", "max_tokens")])
def test_a_reply_without_text_is_asked_for_again_a_bounded_number_of_times(reply: Answer, service: Service):
    kept: list[Completion] = []
    model = model_of(service, max_tokens=777)
    service.planned.extend([reply, said("at last")])
    found = run_sync(complete_with_text(model, HELLO, seed=3, keep=kept.append))
    assert (found.text, [each.used_up for each in kept]) == ("at last", [True, False])
    assert [request.body["seed"] for request in service.requests] == [3, 3]
    service.planned.extend([reply, reply])
    with pytest.raises(ServiceError, match=r"2 times and used up its 777 tokens.*raise max_tokens") as told:
        run_sync(complete_with_text(model, HELLO))
    assert not told.value.concerns_all
    assert len(service.requests) == 4


@pytest.mark.parametrize(
    "reply", [said(""), FILTERED, said("Perhaps", "length"), said("<think>so</think>Yes", "length")]
)
def test_any_other_reply_is_taken_as_it_is(reply: Answer, service: Service):
    service.planned.append(reply)
    assert not run_sync(complete_with_text(model_of(service), HELLO)).used_up
    assert len(service.requests) == 1


@both
def test_every_setting_is_sent(ask: Ask, service: Service):
    settings = {"temperature": 0.7, "reasoning_effort": "low", "seed": 11, "max_tokens": 99}
    ask(model_of(service, "my-own-model", **settings), seed=12)
    assert service.requests[0].body == {"model": "my-own-model", "messages": HELLO, **settings}


@both
@pytest.mark.parametrize("seed", [0, 7])
def test_a_seed_given_with_the_messages_is_sent_where_none_is_set(seed: int, ask: Ask, service: Service):
    ask(model_of(service), seed=seed)
    assert service.requests[0].body["seed"] == seed


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("openai/gpt-4o-mini", "gpt-4o-mini"),
        ("llama3", "llama3"),
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("openai/openai/gpt-oss-20b", "openai/gpt-oss-20b"),
        ("hosted_vllm/some/model", "some/model"),
        ("lm_studio/model", "model"),
    ],
)
def test_a_server_of_ones_own_is_asked_for_a_model_by_its_name(model: str, asked: str, service: Service):
    now(model_of(service, model))
    assert service.requests[0].body["model"] == asked


@pytest.mark.parametrize(
    ("model", "settings", "dropped"),
    [
        ("gpt-4o-mini", {}, ()),
        ("gpt-4o-mini", {"reasoning_effort": "high"}, ("reasoning_effort",)),
        ("o3-mini", {"reasoning_effort": "high"}, ("temperature",)),
        ("o3-mini", {"temperature": 1}, ()),
        ("anthropic/claude-sonnet-4-5", {}, ("seed",)),
    ],
)
def test_what_a_provider_does_not_take_is_dropped_and_said_so(model: str, settings: Any, dropped: tuple[str, ...]):
    found = ChatModel(model, **settings)
    assert found.dropped == dropped
    assert found.config["dropped"] == list(dropped)


def test_the_configuration_is_what_decides_the_replies(service: Service):
    model = model_of(service, "llama3", temperature=0.5, seed=4, max_tokens=50, timeout=9, retries=1)
    assert model.config == {
        "model": "llama3", "base_url": service.address, "temperature": 0.5, "reasoning_effort": None, "seed": 4,
        "max_tokens": 50, "dropped": [],
    }  # fmt: skip


# Answers


@both
@pytest.mark.parametrize(
    ("answer", "text", "finish_reason"),
    [
        (FILTERED, "", "content_filter"),
        (REFUSED, "I cannot help with that.", "refusal"),
        (said("and so", "length"), "and so", "length"),
        (said("", "stop"), "", "stop"),
        (said("x", "of_its_own"), "x", "of_its_own"),
        (raw("caf\xe9 \u2028", "utf-8"), "caf\xe9 \u2028", "stop"),
        (raw("caf\xe9", "utf-16"), "caf\xe9", "stop"),
        (said("half \ud800 a pair"), "half \ud800 a pair", "stop"),
    ],
)
def test_an_odd_answer_is_an_answer(answer: Answer, text: str, finish_reason: str, ask: Ask, service: Service):
    service.planned.append(answer)
    reply = ask(model_of(service))
    assert (reply.text, reply.finish_reason, reply.retries) == (text, finish_reason, 0)
    assert reply.tokens["prompt"] == PROMPT_TOKENS
    assert len(service.requests) == 1


@both
def test_an_enormous_reply_is_cut_and_counted(ask: Ask, service: Service):
    service.planned.append(said("x" * (MAX_REPLY + 5_000_000)))
    reply = ask(model_of(service))
    assert (len(reply.text), reply.cut) == (MAX_REPLY, 5_000_000)


@both
@pytest.mark.parametrize("model", ["llama3", "openai/nobody-knows-it", "hosted_vllm/x", "lm_studio/x"])
def test_an_unknown_price_is_none_and_not_zero(model: str, ask: Ask, service: Service):
    found = model_of(service, model)
    reply = ask(found)
    assert (reply.tokens["prompt"], reply.cost) == (PROMPT_TOKENS, None)
    assert found.price(1_000, 1_000) is None


@pytest.mark.parametrize(("model", "cost"), [("ollama/llama3", 0.0), ("ollama/nobody-knows-it", None)])
def test_zero_is_a_price_where_it_is_listed(model: str, cost: float | None):
    reply = {"model": "x", "response": "hi", "done": True, "prompt_eval_count": 10, "eval_count": 5}
    with Service() as own:  # litellm asks an Ollama server for more, at times of its own
        own.planned.append(Answer(200, reply))
        found = model_of(own, model, base_url=own.address.removesuffix("/v1"))
        assert dataclasses.astuple(now(found))[:4] == ("hi", "stop", {"prompt": 10, "completion": 5}, cost)
        assert own.requests[0].path == "/api/generate"
        assert found.price(1_000, 1_000) == cost


# Faults


@both
@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_a_fault_that_passes_is_tried_again(fault: Answer, ask: Ask, service: Service):
    service.planned.extend([fault, fault])
    model = model_of(service)
    reply = ask(model)
    assert (reply.finish_reason, reply.retries) == ("stop", 2)
    assert len(service.requests) == 3
    assert waits(model) == ([7.5, 7.5] if "Retry-After" in fault.headers else [0.75, 1.5])


@both
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_fault_that_lasts_ends_after_the_retries(retries: int, ask: Ask, service: Service):
    service.planned.extend([SERVER_FAULT] * 10)
    model = model_of(service, retries=retries)
    with pytest.raises(ServiceError, match=r"'gpt-4o-mini' was asked .* the server tripped; run the same") as caught:
        ask(model)
    assert (caught.value.status, caught.value.transient) == (500, True)
    assert len(service.requests) == 1 + retries
    assert len(waits(model)) == retries


@both
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (failed(400, "no such setting"), "no such setting; check the settings of the model"),
        (failed(401, "wrong"), "wrong; check the key in the provider's environment variable"),
        (failed(403, "not for you"), "not for you; check that the key may use this model"),
        (failed(404, "no model"), "no model; check the name of the model and the address of the server"),
        (failed(422, "odd"), "odd; check the settings"),
        (failed(429, "spent", code="insufficient_quota"), "spent; the quota is used up"),
        (
            failed(400, "This model's maximum context length is 9 tokens", code="context_length_exceeded"),
            "give the agent a smaller context",
        ),
    ],
)
def test_a_refused_request_is_not_tried_again(answer: Answer, told: str, ask: Ask, service: Service):
    service.planned.append(answer)
    model = model_of(service)
    with pytest.raises(ServiceError, match=f"was asked once and gave no answer: .*{told}") as caught:
        ask(model)
    assert (caught.value.status, caught.value.transient) == (answer.status, False)
    assert (len(service.requests), waits(model)) == (1, [])


@both
@pytest.mark.parametrize("name", ["Retry-After", "retry-after"])
def test_a_service_that_asks_for_too_long_a_wait_is_given_up(name: str, ask: Ask, service: Service):
    service.planned.append(failed(429, "come back tomorrow", headers={name: "86400"}))
    model = model_of(service)
    with pytest.raises(ServiceError, match="it asks to wait 86400 seconds; run the same command again after") as caught:
        ask(model)
    assert caught.value.transient
    assert (len(service.requests), waits(model)) == (1, [])


@both
@pytest.mark.parametrize("slow", [SLOW, DRIPPING])
def test_a_slow_service_is_given_up_and_tried_again(slow: Answer, ask: Ask, service: Service):
    service.planned.append(slow)
    reply = ask(model_of(service, timeout=0.5))
    assert reply.retries == 1


def test_an_answer_that_never_comes_is_told_and_may_come_later(service: Service):
    service.planned.extend([DRIPPING] * 2)
    with pytest.raises(ServiceError, match=r"2 times and gave no answer: no complete response within 0\.3 sec") as e:
        now(model_of(service, timeout=0.3, retries=1))
    copy = pickle.loads(pickle.dumps(e.value))
    assert (str(copy), copy.status, copy.transient) == (str(e.value), 408, True)


def test_a_cancelled_request_is_not_tried_again(service: Service):
    asked, go = threading.Event(), threading.Event()
    service.planned.append(lambda: asked.set() or (go.wait(60) and SERVER_FAULT))
    model = model_of(service)

    async def cancel() -> None:
        task = asyncio.create_task(model.complete(HELLO))
        while not asked.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()
        assert (await model.complete(HELLO)).retries == 0

    asyncio.run(cancel())
    assert len(service.requests) == 2


def test_many_are_asked_at_the_same_time(service: Service):
    everyone = threading.Barrier(16)
    service.planned.extend([lambda: everyone.wait(60) and None] * 16)
    model = model_of(service)

    async def all_at_once() -> list[Completion]:
        return await asyncio.gather(*(model.complete(HELLO) for _ in range(16)))

    assert len(asyncio.run(all_at_once())) == 16


def test_loops_that_come_and_go_leave_nothing_open(service: Service):
    model = model_of(service)
    for _ in range(12):
        assert later(model).retries == 0
    gc.collect()  # what is left open warns now, and warnings are errors here
    assert now(model).retries == 0


# Keys


@pytest.mark.parametrize("key", ["a1b2c", "no-form-that-is-known"])
def test_the_key_that_was_sent_is_not_repeated_whatever_its_length_and_variable(
    key: str, service: Service, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PLAIN_NAME", key)
    service.planned.append(failed(401, f"the credential '{key}' is wrong"))
    with pytest.raises(ServiceError, match=r"the credential '\[key\]' is wrong") as caught:
        now(model_of(service, api_key_env="PLAIN_NAME"))
    assert key not in str(caught.value)


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "PLAIN_NAME"])
def test_a_key_that_a_service_repeats_is_not_kept(
    variable: str, service: Service, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    own = None if variable == "OPENAI_API_KEY" else variable
    monkeypatch.setenv(variable, "zq9x7")
    service.planned.append(failed(401, "Incorrect API key provided: zq9x7"))
    with pytest.raises(ServiceError, match=r"Incorrect API key provided: \[key\]"):
        now(model_of(service, api_key_env=own))
    monkeypatch.setenv(variable, "zq9x7-and-more")
    service.planned.append(said("You sent zq9x7-and-more.", "\x1b[31mzq9x7-and-more"))
    reply = now(model_of(service, api_key_env=own))
    assert (reply.text, reply.finish_reason) == ("You sent [key].", "\x1b[31m[key]")
    assert capfd.readouterr() == ("", "")


@both
def test_the_key_goes_into_the_header_and_nowhere_else(
    ask: Ask, service: Service, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
):
    caplog.set_level(logging.DEBUG)
    model = model_of(service, retries=1)
    ask(model)
    for answer in (failed(401, f"Incorrect API key provided: {KEY}"), *[failed(500, f"{KEY} tripped")] * 2):
        service.planned.append(answer)
    errors = []
    for _ in range(2):
        with pytest.raises(ServiceError) as caught:
            ask(model)
        errors.append(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
    assert service.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    kept = [repr(model), str(vars(model)), str(model.config), repr(pickle.dumps(model)), *map(str, errors)]
    assert KEY not in "\n".join([*kept, caplog.text, *capfd.readouterr()])


def test_a_variable_of_ones_own_may_hold_the_key(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MY_KEY", "mine-and-mine-alone")
    now(model_of(service, api_key_env="MY_KEY"))
    assert service.requests[0].headers["Authorization"] == "Bearer mine-and-mine-alone"
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(OptionError, match="set the environment variable MY_KEY to the API key"):
        now(model_of(service, api_key_env="MY_KEY"))


def test_without_a_key_the_variable_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(OptionError, match="'gpt-4o-mini' needs a key: set the environment variable OPENAI_API_KEY"):
        now(ChatModel("gpt-4o-mini"))


def test_a_key_that_is_not_there_is_known_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "MY_KEY"):
        monkeypatch.delenv(name, raising=False)
    local = "http://localhost:9/v1"
    lacks = {
        name: ChatModel(**settings).missing_key()
        for name, settings in {
            "openai": {"model": "gpt-4o-mini"},
            "named": {"model": "llama3", "base_url": local, "api_key_env": "MY_KEY"},
            "anthropic": {"model": "anthropic/claude-sonnet-4-5"},
            "gemini": {"model": "gemini/gemini-2.5-flash"},
            "own server": {"model": "llama3", "base_url": local},
            "its protocol": {"model": "anthropic/claude-sonnet-4-5", "base_url": local},
            "no key at all": {"model": "ollama/llama3"},
        }.items()
    }
    assert {name: lack and lack.certain for name, lack in lacks.items()} == {
        "openai": True, "named": True, "anthropic": False, "gemini": False,
        "own server": None, "its protocol": None, "no key at all": None,
    }  # fmt: skip
    assert "set the environment variable OPENAI_API_KEY" in lacks["openai"].message
    assert lacks["anthropic"].message.endswith("finds no key for 'anthropic/claude-sonnet-4-5' in ANTHROPIC_API_KEY")
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    assert ChatModel("gemini/gemini-2.5-flash").missing_key() is None
    with pytest.raises(OptionError, match="knows no provider"):
        ChatModel("no-such-model").missing_key()


# Settings


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"model": " "}, "model must be the name of a model"),
        ({"model": None}, "model must be the name of a model, got None"),
        ({"temperature": "hot"}, "temperature must be a number from 0 or None, got 'hot'"),
        ({"temperature": float("nan")}, "temperature must be a number"),
        ({"timeout": float("inf")}, "timeout must be a number of seconds above 0, got inf"),
        ({"timeout": "1"}, "timeout must be a number"),
        ({"reasoning_effort": 3}, "reasoning_effort must be a word or None, got 3"),
        ({"base_url": 8000}, "base_url must be http"),
        ({"temperature": -0.1}, "temperature must be a number from 0 or None, got -0.1"),
        ({"reasoning_effort": ""}, "reasoning_effort must be a word or None"),
        ({"seed": -1}, "seed must be an integer from 0 or None, got -1"),
        ({"seed": True}, "seed must be an integer"),
        ({"max_tokens": 0}, "max_tokens must be an integer from 1 or None, got 0"),
        ({"timeout": 0}, "timeout must be a number of seconds above 0, got 0"),
        ({"retries": -1}, "retries must be an integer from 0, got -1"),
        ({"retries": None}, "retries must be an integer from 0, got None"),
        ({"base_url": "localhost:8000"}, "base_url must be http"),
        ({"base_url": "http://"}, "base_url must be http"),
        ({"base_url": "http://[::1"}, "base_url must be http"),
        ({"seed": -1, "retries": -1}, "seed must be .*; retries must be"),
    ],
)
def test_settings_out_of_range_are_told_all_at_once(settings: dict[str, Any], told: str):
    with pytest.raises(OptionError, match=told):
        ChatModel(**{"model": "gpt-4o-mini", **settings})


@pytest.mark.parametrize(
    "address",
    [
        "http://me:hunter22@host/v1", "https://host/v1?api-key=hunter22", "https://host/v1#hunter22",
        "https://host/v1\r\nAuthorization: hunter22",
    ],
)  # fmt: skip
def test_an_address_with_a_secret_is_refused_and_not_repeated(address: str):
    with pytest.raises(OptionError, match="without user, password, query or fragment") as caught:
        ChatModel("gpt-4o-mini", base_url=address)
    assert "hunter22" not in str(caught.value)


def test_a_model_of_no_known_provider_needs_an_address():
    with pytest.raises(OptionError, match=r"knows no provider for the model 'llama3'; write it as provider/model"):
        now(ChatModel("llama3"))


@pytest.mark.parametrize("missing", ["litellm", "openai"])
def test_without_litellm_the_extra_is_named(missing: str, service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=r"pip install -c constraints.txt '\.\[llm\]'"):
        now(model_of(service))


ALONE = """
import asyncio, os, sys
from inquitree_gym.llm import ChatModel, run_sync
assert "litellm" not in sys.modules
model = ChatModel("gpt-4o-mini", base_url=sys.argv[1])
hello = [{"role": "user", "content": "Hello"}]
asyncio.run(model.complete(hello))
print(run_sync(model.complete(hello)).text, flush=True)
print("end", file=sys.stderr, flush=True)
if not (child := os.fork()):
    print(run_sync(model.complete(hello)).text, flush=True)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_process_says_nothing_of_its_own_ends_by_itself_and_may_fork(service: Service):
    service.planned.extend([said("one"), said("two"), said("three")])
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", ALONE, service.address],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, ["two", "three"]), done.stderr
    assert done.stderr.startswith("end\n"), "litellm tells of a fork, and Python of threads, and neither before it"


def test_a_server_that_was_never_there_is_asked_once_and_its_address_is_told():
    with Service() as service:
        address = service.address
    model = ChatModel("openai/anything", base_url=address, clock=Hourglass(), retries=3)
    with pytest.raises(ServiceError) as caught:
        now(model)
    assert str(caught.value).startswith(
        f"the model 'openai/anything' was asked once and gave no answer: no connection to {address}: refused"
    )
    assert "start the server, or correct the address, and run the same command again" in str(caught.value)
    assert (caught.value.concerns_all, waits(model)) == (True, [])


def test_a_server_that_went_away_may_come_back():
    with Service() as service:
        model = model_of(service, retries=3)
        now(model)
    with pytest.raises(
        ServiceError, match=f"was asked 4 times and gave no answer: no connection to {service.address}"
    ) as caught:
        now(model)
    assert (caught.value.concerns_all, len(waits(model))) == (False, 3)
