"""Embeddings through litellm, against a real server on loopback that speaks OpenAI's protocol."""

from __future__ import annotations

import logging
import pickle
import sys
import threading
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from inquitree_gym.embeddings import LiteLLMEmbedder
from inquitree_gym.errors import EmbedderError, MissingExtraError, OptionError
from tests.servers import DIM, KEY, SERVER_FAULT, TOO_MANY, Answer, Service, entries, vector
from tests.strategies import make_tree


def unit(texts: list[str]) -> np.ndarray:
    rows = np.array([vector(text) for text in texts])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def service(service: Service) -> Service:
    service.headers = {"retry-after-ms": "1"}  # the client waits as long as it is told, so no test has to
    return service


def embedder_of(service: Service, **options: Any) -> LiteLLMEmbedder:
    return LiteLLMEmbedder(**{"base_url": service.address, "retries": 1} | options)


def test_rows_are_unit_vectors_in_the_order_of_the_texts(service: Service):
    texts = ["one", "two", "three", "two"]
    vectors = embedder_of(service).embed(texts)
    assert (vectors.dtype, vectors.shape) == (np.float32, (4, DIM))
    assert vectors == pytest.approx(unit(texts), abs=1e-6)
    assert service.requests[0].path == "/v1/embeddings"
    # An older litellm names what it leaves to the service, as null.
    sent = {name: value for name, value in service.requests[0].body.items() if value is not None}
    assert sent == {"model": "text-embedding-3-small", "input": texts}


@pytest.mark.parametrize(
    ("model", "asked"), [("openai/text-embedding-3-large", "text-embedding-3-large"), ("openai/my-own", "my-own")]
)
def test_another_model_is_asked_for_by_name(model: str, asked: str, service: Service):
    embedder = embedder_of(service, model=model)
    embedder.embed(["one"])
    assert service.requests[0].body["model"] == asked
    assert embedder.name == f"litellm:{model}"


def test_more_than_256_texts_go_in_several_requests(service: Service):
    texts = [f"text {i}" for i in range(600)]
    vectors = embedder_of(service).embed(texts)
    assert [len(request.body["input"]) for request in service.requests] == [256, 256, 88]
    assert vectors == pytest.approx(unit(texts), abs=1e-6)


@pytest.mark.parametrize("fault", [SERVER_FAULT, TOO_MANY])
def test_a_passing_fault_is_tried_again_as_often_as_wished(fault: Answer, service: Service):
    service.planned.extend([fault, fault])
    assert embedder_of(service, retries=2).embed(["one"]) == pytest.approx(unit(["one"]), abs=1e-6)
    assert len(service.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refusal_is_not_tried_again_and_nothing_is_printed(
    status: int, service: Service, capsys: pytest.CaptureFixture[str]
):
    service.planned.append(Answer(status, {"error": {"message": "no such thing here", "type": "invalid"}}))
    with pytest.raises(EmbedderError, match=r"'text-embedding-3-small'.*no such thing here"):
        embedder_of(service, retries=3).embed(["one"])
    assert len(service.requests) == 1
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("retries", [0, -1])
def test_fewer_retries_than_one_are_refused_because_litellm_takes_none_for_two(retries: int):
    with pytest.raises(OptionError, match=f"from 1, got {retries}"):
        LiteLLMEmbedder(retries=retries)


def test_a_service_that_takes_too_long_is_given_up(service: Service):
    released = threading.Event()
    service.planned.extend([lambda: released.wait(60) and None] * 2)
    try:
        with pytest.raises(EmbedderError, match=r"(?i)'text-embedding-3-small'.*time"):
            embedder_of(service, timeout=0.2).embed(["one"])
    finally:
        released.set()


def test_a_missing_key_is_an_embedder_error_that_names_it(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(EmbedderError, match="OPENAI_API_KEY"):
        embedder_of(service).embed(["one"])


TWICE_THE_FIRST = entries([[1.0], [2.0]])
TWICE_THE_FIRST["data"][1]["index"] = 0
WRONG = {
    "too few": entries([[1.0]]),
    "too many": entries([[1.0], [1.0], [1.0]]),
    "none": entries([]),
    "no data": {"data": None},
    "ragged": entries([[1.0], [1.0, 2.0]]),
    "without numbers": entries([[], []]),
    "not finite": entries([[float("nan")], [1.0]]),
    "no vector": entries([None, [1.0]]),
    "one text twice": TWICE_THE_FIRST,
    "a login page": b"<html>please log in</html>",
}


@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_answer_is_an_embedder_error(answer: Any, service: Service):
    service.planned.append(Answer(200, answer))
    with pytest.raises(EmbedderError, match="text-embedding-3-small") as caught:
        embedder_of(service).embed(["one", "two"])
    if not isinstance(answer, bytes):
        assert "asked for 2 embeddings" in str(caught.value)
        assert "Check that model and address serve embeddings" in str(caught.value)


def test_batches_of_different_lengths_are_an_embedder_error(service: Service):
    service.planned.append(Answer(200, entries([[1.0, 2.0]] * 256)))
    with pytest.raises(EmbedderError, match=rf"vectors of lengths \[2, {DIM}\]"):
        embedder_of(service).embed(["one"] * 257)


def test_the_key_goes_into_the_header_and_nowhere_else(
    service: Service, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
):
    caplog.set_level(logging.DEBUG)
    embedder = embedder_of(service)
    embedder.embed(["one"])
    service.planned.append(Answer(401, {"error": {"message": f"wrong key {KEY}", "type": "invalid"}}))
    with pytest.raises(EmbedderError) as caught:
        embedder.embed(["two"])
    assert service.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    kept = [repr(embedder), embedder.name, embedder.digest, str(vars(embedder)), repr(pickle.dumps(embedder))]
    assert KEY not in "\n".join([*kept, str(caught.value), caplog.text, *capfd.readouterr()])


def test_the_digest_tells_routes_apart_and_not_keys(service: Service, monkeypatch: pytest.MonkeyPatch):
    routes = [{}, {"base_url": None}, {"model": "openai/text-embedding-3-large"}]
    assert len({embedder_of(service, **route).digest for route in routes}) == len(routes)
    before = embedder_of(service).digest
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    assert embedder_of(service, retries=5, timeout=1).digest == before


def test_an_environment_reads_actions_through_the_service(service: Service, tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path))
    tree = make_tree([[], []], [1, 1])
    env = gym.make("InquiTree-v0", tree=tree, embedder=embedder_of(service), threshold=0.9)
    env.reset(seed=5)
    assert not env.step("something else")[4]["accepted"]
    assert env.step(tree.subtopics[1].text)[4]["accepted"]
    assert len(service.requests) == 2, (
        "the tree's texts go in one request, the action in another, the tree's own in none"
    )


@pytest.mark.parametrize("missing", ["litellm", "openai"])
def test_without_litellm_the_extra_is_named(missing: str, service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=r"pip install -c constraints.txt '\.\[llm\]'"):
        embedder_of(service).embed(["one"])
