"""The estimate before a run, held against what real runs ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.cli.plan import _REPLY_TEXT, REPLY_TOKENS, estimate
from inquitree_gym.llm import Usage, estimated_tokens
from inquitree_gym.runner import StudyConfig, run_study
from inquitree_gym.runner.check import make_study
from inquitree_gym.trees import load_tree
from tests.servers import Rote, Service

TREES = ("paper2", "paper17")


def study_of(service: Service, *agents: str, trees: tuple[str, ...] = TREES, **more: Any) -> StudyConfig:
    model = {"model": "gpt-4o-mini", "base_url": service.address, **more.pop("model", {})}
    return make_study(agents=agents, models=[model], trees=trees, **{"seeds": 2, **more})


def asked(service: Service) -> int:
    return sum(estimated_tokens(message) for messages in service.chats for message in messages)


def test_a_reply_is_taken_to_be_as_long_as_is_said():
    assert abs(estimated_tokens({"role": "assistant", "content": _REPLY_TEXT}) - REPLY_TOKENS) <= 8


@pytest.mark.parametrize("agent", ["llm", "sceptic"])
def test_the_least_is_what_a_perfect_model_is_asked(service: Service, tmp_path: Path, agent: str):
    service.reply = Rote(*map(load_tree, TREES))
    study = study_of(service, agent, seeds=1, max_turns="11n")
    run_study(study, tmp_path)
    (found,) = estimate(study, study.specs())
    assert found.episodes == 2
    assert found.least.replies == len(service.requests)
    assert found.least.completion_tokens == REPLY_TOKENS * len(service.requests)
    replies = len(service.requests) * (REPLY_TOKENS + 10) * found.least.replies // found.episodes
    prompt = found.least.prompt_tokens
    assert asked(service) < prompt < asked(service) + replies, "only replies may be of another length"


@pytest.mark.parametrize(("context", "prompts"), [(32_000, None), (1_500, None), (32_000, "paper")])
def test_the_most_is_to_the_token_what_a_hopeless_model_is_asked(
    service: Service, tmp_path: Path, context: int, prompts: str | None
):
    service.reply = lambda body: _REPLY_TEXT
    # Its one reply would decline every subtopic if bare decisions were read.
    model, rules = {"context": context, "belief": context > 2_000}, {"bare_decisions": False}
    settings = {"rules": rules, "prompts": prompts, "model": model}
    study = study_of(service, "llm", trees=("paper2",), seeds=1, max_turns=20, **settings)
    run_study(study, tmp_path)
    (found,) = estimate(study, study.specs())
    assert found.most == Usage(
        len(service.requests), prompt_tokens=asked(service), completion_tokens=REPLY_TOKENS * len(service.requests)
    )
    assert found.most.replies == 23
    system = service.requests[0].body["messages"][0]["content"]
    assert ("at most five sentences" in system) == (prompts == "paper")


def test_only_what_is_left_to_do_counts_and_only_what_asks_the_model(service: Service):
    study = study_of(service, "llm", "random", trees=("paper2",), fake_level=(0, 3), seeds=3)
    cells = list(study.specs())
    (whole,), (half,), (none,) = (
        estimate(study, some) for some in (cells, [cell for cell in cells if cell.cell != (("fake_level", 0),)], [])
    )
    assert (whole.episodes, half.episodes, none.episodes) == (6, 3, 0)
    assert whole.least == half.least * 2
    assert whole.most == half.most * 2
    assert (none.least, none.most, none.dollars) == (Usage(), Usage(), (0.0, 0.0))


def test_the_price_is_that_of_the_list_or_unknown(service: Service):
    known, unknown = (
        estimate(study, study.specs())[0]
        for study in (study_of(service, "llm"), study_of(service, "llm", model={"model": "my-own"}))
    )
    assert unknown.dollars is None
    assert known.dollars is not None
    for dollars, load in zip(known.dollars, (known.least, known.most), strict=True):
        assert dollars == pytest.approx(load.prompt_tokens * 0.15e-6 + load.completion_tokens * 0.6e-6)


@pytest.mark.parametrize(("limit", "least", "most"), [("11n", 14, 47), ("3n", 14, 15), (5, 7, 8), ("none", 14, 47)])
def test_a_turn_limit_cuts_both_ways(service: Service, limit: object, least: int, most: int):
    (found,) = estimate(*_one(study_of(service, "llm", trees=("paper2",), seeds=1, max_turns=limit)))
    assert (found.least.replies, found.most.replies) == (least, most)


def _one(study: StudyConfig) -> tuple[StudyConfig, Any]:
    return study, study.specs()
