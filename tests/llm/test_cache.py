"""Replies kept on disk, against a real server on loopback."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.errors import CacheError, ServiceError
from inquitree_gym.llm import CachedChat, Completion, ReplyCache, run_sync
from tests.llm.test_model import HELLO, Ask, both, later, model_of, now
from tests.servers import COMPLETION_TOKENS, KEY, PROMPT_TOKENS, USED_UP, WAIT_AT_MOST, Answer, Service, failed, said


def cached(service: Service, folder: Path, **settings: Any) -> CachedChat:
    return CachedChat(model_of(service, **settings), ReplyCache(folder))


def hold(service: Service) -> threading.Event:
    """Hold the next answer back; what is returned tells that it was asked for."""
    arrived = threading.Event()

    def answer() -> Answer:
        arrived.set()
        return said("held")._replace(held=True)

    service.planned.append(answer)
    return arrived


@both
def test_a_question_is_asked_once_and_its_reply_comes_again_for_nothing(ask: Ask, service: Service, tmp_path: Path):
    service.planned.append(said("caf\u00e9 \ud83d"))  # half a surrogate pair, as a model may write it
    first = ask(cached(service, tmp_path), seed=3)
    again = ask(cached(service, tmp_path), seed=3)
    assert len(service.requests) == 1
    assert (first.cached, first.cost > 0) == (False, True)
    assert again == dataclasses.replace(first, cached=True, cost=0.0, seconds=0.0)
    assert again.text == "caf\u00e9 \ud83d"
    assert again.tokens == {"prompt": PROMPT_TOKENS, "completion": COMPLETION_TOKENS}


def test_a_reply_without_text_is_not_kept(service: Service, tmp_path: Path):
    service.planned.extend([USED_UP, said("at last")])
    texts = [now(cached(service, tmp_path)).text for _ in range(3)]
    assert (texts, len(service.requests)) == (["", "at last", "at last"], 2)


@pytest.mark.parametrize(
    "other", [{"model": "gpt-4o"}, {"temperature": 1.0}, {"max_tokens": 9}, {"messages": HELLO[1:]}, {"seed": 1}]
)
def test_whatever_decides_a_reply_is_part_of_the_question(other: dict[str, Any], service: Service, tmp_path: Path):
    now(cached(service, tmp_path), seed=0)
    seed, messages = other.pop("seed", 0), other.pop("messages", HELLO)
    run_sync(cached(service, tmp_path, **other).complete(messages, seed=seed))
    assert len(service.requests) == 2


def test_no_key_and_no_conversation_goes_into_the_cache(service: Service, tmp_path: Path):
    now(cached(service, tmp_path))
    (file,) = tmp_path.rglob("*.json")
    text = file.read_text(encoding="utf-8")
    assert KEY not in text
    assert HELLO[1]["content"] not in text
    assert json.loads(text)["asked"]["chat"]["model"] == "gpt-4o-mini"


@pytest.mark.parametrize(
    "damage",
    ['{"completion": {"text"', "{}", "[]", '{"completion": {"words": 1}}', '{"completion": {"text": 1}}', "\udcff"],
)
def test_a_damaged_entry_is_asked_again_and_mended(damage: str, service: Service, tmp_path: Path):
    now(cached(service, tmp_path))
    (file,) = tmp_path.rglob("*.json")
    file.write_bytes(damage.encode("utf-8", "surrogateescape"))
    assert not now(cached(service, tmp_path)).cached
    assert now(cached(service, tmp_path)).cached
    assert list(tmp_path.rglob("*.part")) == []


def test_what_cannot_be_kept_is_not_asked_for(service: Service, tmp_path: Path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(CacheError, match=r"cannot write replies to the cache .*file'.*--cache"):
        now(cached(service, tmp_path / "file"))
    assert service.requests == []


def test_a_reply_that_cannot_be_kept_is_used_and_the_next_is_not_asked_for(service: Service, tmp_path: Path):
    def fill(body: dict[str, Any]) -> str:
        for folder in tmp_path.iterdir():
            folder.rmdir()
            folder.write_text("in the way")
        return "paid for"

    service.reply = fill
    chat = cached(service, tmp_path)
    assert (reply := now(chat, seed=1)).text == "paid for"
    assert not reply.cached
    with pytest.raises(CacheError, match="cannot write replies to the cache"):
        now(chat, seed=2)
    assert len(service.requests) == 1


# Several at once


def test_of_equal_questions_in_several_threads_one_is_asked(service: Service, tmp_path: Path):
    chat = cached(service, tmp_path)
    found: list[Completion] = []
    arrived = hold(service)
    asks = [now, later] * 2
    threads = [threading.Thread(target=lambda ask=ask: found.append(ask(chat))) for ask in asks]
    for thread in threads:
        thread.start()
    assert arrived.wait(WAIT_AT_MOST)
    service.release()
    for thread in threads:
        thread.join()
    assert len(service.requests) == 1
    assert sorted(each.cached for each in found) == [False, True, True, True]


def test_when_the_one_who_asks_fails_the_next_asks(service: Service, tmp_path: Path):
    chat = cached(service, tmp_path)
    service.planned.append(failed(401))

    async def ask() -> list[Any]:
        return await asyncio.gather(*(chat.complete(HELLO) for _ in range(3)), return_exceptions=True)

    failure, second, third = asyncio.run(ask())
    assert isinstance(failure, ServiceError)
    assert (second.cached, third.cached, len(service.requests)) == (False, True, 2)


def test_when_the_one_who_asks_is_cancelled_the_next_asks_and_one_who_waits_can_go(service: Service, tmp_path: Path):
    chat = cached(service, tmp_path)
    arrived = hold(service)

    async def ask() -> Completion:
        first, going, third = (asyncio.create_task(chat.complete(HELLO)) for _ in range(3))
        assert await asyncio.to_thread(arrived.wait, WAIT_AT_MOST)
        going.cancel()
        await asyncio.wait([going])
        first.cancel()
        await asyncio.wait([first])
        assert first.cancelled()
        assert going.cancelled()
        return await third

    assert not asyncio.run(ask()).cached
    assert len(service.requests) == 2
