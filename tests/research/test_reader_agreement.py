"""Agreement of a reader with the embedder on labelled proposals, with a model on a real server on loopback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.inquiry.llm_matcher import LLMReader
from inquitree_gym.llm import ChatModel, ReplyCache
from research.blind.readings import blind_sets
from research.proposals import MatchingCase, matching_cases
from research.reader_agreement import app, measure_agreement
from tests.contract.command_line import Done, run_tool
from tests.servers import Body, Service

pytestmark = pytest.mark.weights


@pytest.fixture(scope="module")
def cases() -> list[MatchingCase]:
    sets = [each for each in blind_sets() if each.tree in ("paper12", "paper24")]
    return [case for case in matching_cases(sets) if case.origin == "played"][::4]


@pytest.fixture
def reader(service: Service, tmp_path: Path) -> LLMReader:
    return LLMReader(ChatModel("gpt-4o-mini", base_url=service.address, retries=0), cache=ReplyCache(tmp_path))


def know(cases: list[MatchingCase]):
    """Answer with the label of each proposal."""
    labels = {case.text: case.target if case.kind == "right" else "none" for case in cases}

    def reply(body: Body) -> str:
        said = body["messages"][1]["content"].partition("The text:\n\n")[2].split("\n", 1)[1].rsplit("\n===", 1)[0]
        return labels[said]

    return reply


def test_a_reader_that_knows_the_labels_has_perfect_shares(
    cases: list[MatchingCase], service: Service, reader: LLMReader
):
    service.reply = know(cases)
    local = load_embedder(DEFAULT_EMBEDDER)
    assert local.threshold is not None
    found = measure_agreement(cases, reader, local, threshold=local.threshold)
    assert (found.asked.understood.mean, found.asked.misread.mean, found.asked.nearest_study.mean) == (1, 0, 1)
    assert found.asked.foreign.mean == 0
    assert found.asked.proposals == found.local.proposals == len(cases)
    assert (found.reader, found.embedder, found.unread) == ("llm:gpt-4o-mini", local.name, 0)
    assert found.kappa is not None
    assert 0 < found.kappa < found.same < 1
    assert len(service.requests) == len({(case.text, tuple(node.id for node in case.candidates)) for case in cases})


def test_the_tool_prints_shares_and_kappa(service: Service, tmp_path: Path):
    service.reply = lambda body: "none"
    flags = ("--base-url", service.address, "--cache", tmp_path)

    def run(*more: object) -> Done:
        return run_tool(app, *more, *flags)

    status, out, _ = run("llm:gpt-4o-mini", "--papers", "18", "--json")
    found = json.loads(out)
    assert status == 0
    assert (found["asked"]["refused"]["mean"], found["unread"]) == (1, 0)
    assert found["paid"]["replies"] == len(service.requests) > 5
    status, out, err = run(
        "llm:gpt-4o-mini", "--papers", "paper18", "--max-concurrency", 2, "--embedder", "hashed-words"
    )
    assert status == 0
    assert "hashed-words" in out
    assert "llm:gpt-4o-mini" in out
    assert "understood" in out
    assert "κ" in err
    assert "replies paid for: 0" in err
    assert run("gpt-4o-mini").status == run("llm:gpt-4o-mini", "--papers", "99").status == 2
    status, _, err = run("llm:gpt-4o-mini", "--papers", "8", "--origin", "written", "--max-total-tokens", 200)
    assert status == 2
    assert "the cap of 200 tokens is reached" in err
