"""Numbers from chats, judges, readers and agents of one's own are checked where they come in."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from inquitree_gym import InquiryEnv
from inquitree_gym.baselines.agent import stated_by
from inquitree_gym.embeddings import WordsEmbedder
from inquitree_gym.errors import AgentError, JudgeError, LogError, ReaderError, ServiceError
from inquitree_gym.inquiry.judges.quality import Verdict
from inquitree_gym.inquiry.judging import judge
from inquitree_gym.inquiry.llm_matcher import ReaderAnswer
from inquitree_gym.judging.judgement import Judgement
from inquitree_gym.llm import Completion, ReplyCache, Usage
from inquitree_gym.log import JsonlWriter, read_episode
from inquitree_gym.wrappers import LogEpisodes
from tests.log.test_files import HEADER, turn
from tests.strategies import make_tree

TREE = make_tree([[], [0]], [1, 2])
NAN, INF = float("nan"), float("inf")
NO_AMOUNTS = pytest.mark.parametrize("amount", [NAN, INF, -INF, -1, True, "1", np.int64(1)], ids=repr)
PLAIN = Completion("a", "stop", {"prompt": 1, "completion": 2}, 0.1)


@NO_AMOUNTS
def test_what_a_reply_takes_is_a_finite_number_from_0(amount: Any):
    for changes in ({"cost": amount}, {"seconds": amount}, {"tokens": {"prompt": amount}}):
        with pytest.raises(ServiceError, match=r"^the (cost|seconds|prompt) of a reply must be a finite number from 0"):
            dataclasses.replace(PLAIN, **changes)
    for name in ("cost", "seconds", "prompt_tokens", "replies"):
        with pytest.raises(ServiceError, match=rf"^the {name} of a reply must be"):
            Usage(**{name: amount})
    assert dataclasses.replace(PLAIN, cost=None, tokens={}).cost is None


@pytest.mark.parametrize("name", ["cost", "seconds"])
def test_a_cached_reply_with_a_number_that_is_none_is_asked_for_again(name: str, tmp_path: Path):
    cache = ReplyCache(tmp_path)
    cache.put("ab", {}, PLAIN)
    assert cache.get("ab") == dataclasses.replace(PLAIN, cached=True, cost=0.0)
    (file,) = tmp_path.rglob("*.json")
    stored = json.loads(file.read_text())
    stored["completion"][name] = NAN
    file.write_text(json.dumps(stored))
    assert cache.get("ab") is None


@pytest.mark.parametrize("value", [NAN, INF, -0.1, 1.1, True, "1"], ids=repr)
def test_a_stated_probability_lies_between_0_and_1(value: Any):
    for agent in (SimpleNamespace(belief=value), SimpleNamespace(stated={"belief": value})):
        with pytest.raises(AgentError, match=r"^the probability 'belief' must be in \[0, 1\], got "):
            stated_by(agent)
    assert stated_by(SimpleNamespace(belief=1, stated={"other": 0.0})) == {"other": 0.0, "belief": 1}


class Grader:
    """A judge of one's own that gives every item one score."""

    name = "grader"

    def __init__(self, score: Any) -> None:
        self.score, self.config = score, {"version": 1}

    async def judge(self, tree: Any, conclusion: str) -> Judgement:
        return Judgement((Verdict(self.score, "so"),) * len(tree.conclusions))


@pytest.mark.parametrize("score", [NAN, INF, -0.1, 1.1], ids=repr)
def test_a_score_of_a_judge_lies_between_0_and_1_and_the_step_can_be_taken_again(score: float, tmp_path: Path):
    with pytest.raises(JudgeError, match="a judgement of made is out of range"):
        judge(TREE, "All of it rises.", Grader(score))
    grader = Grader(score)
    env = LogEpisodes(InquiryEnv(TREE, embedder=WordsEmbedder(), judge=grader, exam="none"), file=tmp_path / "a.jsonl")
    env.reset(seed=1)
    env.step("draw_conclusion")
    for _ in range(2):
        with pytest.raises(JudgeError, match="out of range"):
            env.step("All of it rises.")
    grader.score = 1.0
    assert env.step("All of it rises.")[2]
    assert read_episode(tmp_path / "a.jsonl").status == "concluded"


class Chooser:
    """A reader of one's own that gives one answer."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.config = answer, {"name": "chooser"}

    async def choose(self, request: Any) -> Any:
        return self.answer


@pytest.mark.parametrize("answer", [NAN, "s1", None, ReaderAnswer(0), ReaderAnswer(NAN)], ids=repr)  # type: ignore[arg-type]
def test_a_choice_of_a_reader_is_an_id_or_none(answer: Any):
    env = InquiryEnv(TREE, embedder=WordsEmbedder(), reader=Chooser(answer))
    env.reset(seed=1)
    state = env.state
    with pytest.raises(ReaderError, match=r"^a reader must give a ReaderAnswer with the id of a candidate or None"):
        env.step("What then?")
    with pytest.raises(ReaderError, match=r"^a reader must give"):
        asyncio.run(env.ask_ahead("What then?"))  # type: ignore[arg-type]
    assert env.state == state
    env.asked.reader.answer = ReaderAnswer("s1")
    assert env.step("What then?")[-1]["accepted"]


@pytest.mark.parametrize("number", [NAN, INF])
def test_a_log_is_strict_json(number: float, tmp_path: Path):
    file = tmp_path / "a.jsonl"
    with JsonlWriter(file, header=HEADER) as log:
        log.write(turn(1))
        with pytest.raises(LogError, match=r"^a Turn must hold finite numbers alone, got .* Mend its origin"):
            log.write(turn(2, reward=number))
        with pytest.raises(LogError, match="is closed"):
            log.write(turn(2))
    assert len(read_episode(file).turns) == 1
    with pytest.raises(LogError, match=r"^a Header must hold"):
        JsonlWriter(tmp_path / "b.jsonl", header=HEADER.model_copy(update={"agent": {"temperature": number}}))
    assert [each.name for each in tmp_path.iterdir()] == ["a.jsonl"]
