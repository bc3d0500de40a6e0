"""The judge of the reward: by name and by protocol, asked, logged and replayed, on a real server on loopback."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from inquitree_gym.baselines import OracleAgent
from inquitree_gym.embeddings import Embedder
from inquitree_gym.envs import InquiryBatchEnv, InquiryEnv, InquiryVectorEnv
from inquitree_gym.errors import BudgetError, JudgeError, OptionError, RewardError
from inquitree_gym.inquiry.judges.llm import LLMJudge
from inquitree_gym.inquiry.judges.quality import Verdict
from inquitree_gym.judging.judgement import AsyncJudge, Judgement
from inquitree_gym.llm import Budget, ChatModel, ReplyCache
from inquitree_gym.log import Episode, Reply, read_episode
from inquitree_gym.rollout import play
from inquitree_gym.trees import Tree
from inquitree_gym.wrappers import LogEpisodes
from tests.inquiry.judges.test_llm import Grader
from tests.inquiry.test_readers import meet
from tests.servers import COMPLETION_TOKENS, PROMPT_TOKENS, Service, failed
from tests.strategies import make_tree

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def tree() -> Tree:
    return make_tree([[], [0], [0]], [2, 1, 1], tree_id="three")


@pytest.fixture
def judge(service: Service, tmp_path: Path) -> LLMJudge:
    service.reply = Grader(lambda place, text, asked: 0.6)
    return new_judge(service, tmp_path / "cache")


def new_judge(service: Service, cache: Path, **settings: Any) -> LLMJudge:
    chat = ChatModel("gpt-4o-mini", base_url=service.address, retries=0)
    return LLMJudge(chat, cache=ReplyCache(cache), **settings)


def open_env(tree: Tree, embedder: Embedder, judge: str | AsyncJudge) -> InquiryEnv:
    """An environment for the oracle."""
    return InquiryEnv(tree, embedder=embedder, judge=judge, exam="none", privileged=True)


def grades(episode: Episode) -> list[Reply]:
    return [reply for reply in episode.replies if reply.role == "judge"]


def conclude(env: InquiryEnv, text: str = "1. It is so.") -> float:
    env.reset(seed=0)
    env.step("draw_conclusion")
    return env.step(text)[1]


class Own:
    """Judge of one's own: full marks for a word, and nothing about the last item."""

    name = "own"

    def __init__(self, count: int | None = None) -> None:
        self.config: dict[str, Any] = {"version": 4, "word": "so"}
        self._count = count

    async def judge(self, tree: Tree, conclusion: str) -> Judgement:
        count = len(tree.conclusions) if self._count is None else self._count
        return Judgement((*(Verdict(float("so" in conclusion), "the word"),) * (count - 1), Verdict(None, "lost")))


def test_the_judge_sets_the_reward_and_every_reply_is_logged(tree, reader, service, judge, tmp_path):
    episode = play(open_env(tree, reader, judge), OracleAgent(tree), 3, file=tmp_path / "a.jsonl")
    assert read_episode(tmp_path / "a.jsonl") == episode
    assert episode.footer.episode_return == pytest.approx(0.6)
    assert len(grades(episode)) == len(service.requests) == 2
    last = episode.turns[-1]
    assert [reply.turn for reply in grades(episode)] == [last.turn] * 2
    assert last.tokens == {"prompt": 2 * PROMPT_TOKENS, "completion": 2 * COMPLETION_TOKENS}
    assert episode.judge == {"name": "llm:gpt-4o-mini", **judge.config}


@pytest.mark.parametrize(("rules", "share"), [("default", 1.0), ("paper", (1 / 2 + 1 + 1) / 3)])
def test_the_papers_judge_gives_one_of_three_grades_and_the_rules_weigh_them(
    tree: Tree, reader: Embedder, service: Service, tmp_path: Path, rules: str, share: float
):
    service.reply = Grader(lambda place, text, asked: 0.6)
    judge = new_judge(service, tmp_path / "cache", orders=1, variants=False)
    env = InquiryEnv(tree, embedder=reader, judge=judge, exam="none", privileged=True, rules=rules)
    episode = play(env, OracleAgent(tree), 3)  # which runs one of the first item's two studies
    assert episode.footer.episode_return == pytest.approx(0.6 * share)
    assert episode.judge["name"] == "llm-paper:gpt-4o-mini"
    assert len(service.requests) == 1
    verdicts = asyncio.run(judge.judge(tree, episode.actions[-1])).payload
    assert {verdict.score for verdict in verdicts} == {0.6}


def test_a_cap_is_no_reward_of_zero_either(tree: Tree, reader: Embedder, service: Service, tmp_path: Path):
    service.reply = Grader(lambda place, text, asked: 1)
    judge = new_judge(service, tmp_path, budget=Budget(max_total_tokens=1))
    with pytest.raises(BudgetError, match="not asked: the budget is used up"):
        conclude(open_env(tree, reader, judge))


def test_an_unreadable_verdict_adds_nothing_and_is_logged_with_its_fault(tree, reader, service, judge):
    service.reply = Grader(lambda place, text, asked: "?" if "number 1" in text else 1)
    episode = play(open_env(tree, reader, judge), OracleAgent(tree), 3)
    items = len(tree.conclusions)
    assert episode.footer.episode_return == pytest.approx((items - 1) / items)
    assert {reply.fault for reply in grades(episode)} == {"no verdict that can be read"}


def test_a_judge_may_be_an_object_of_ones_own(tree: Tree, reader: Embedder):
    env = LogEpisodes(open_env(tree, reader, Own()))
    episode = play(env, OracleAgent(tree), 0)
    items = len(tree.conclusions)
    spoken = "so" in episode.actions[-1]
    assert episode.footer.episode_return == pytest.approx(spoken * (items - 1) / items)
    assert episode.judge == {"name": "own", "version": 4, "word": "so"}
    with pytest.raises(JudgeError, match=r"a judgement of three must have 3 verdicts, .* got 2"):
        conclude(open_env(tree, reader, Own(2)))


def test_a_vector_environment_judges_at_the_same_time_or_takes_no_step(tree, reader, service, judge):
    meet(service, 2, Grader(lambda place, text, asked: 1))
    env = InquiryVectorEnv(2, tree=tree, embedder=reader, judge=judge, exam="none", max_turns=1)
    env.reset(seed=0)
    env.step(["whatever", "something"])
    _, rewards, ended, _, _ = env.step(["1. One.", "1. Another."])
    assert (list(ended), list(rewards), len(service.requests)) == ([True, True], [0, 0], 4)  # nothing was seen
    env.reset(seed=0)
    env.step(["whatever", "something"])
    before = [each.state for each in env.envs]
    service.planned.append(failed(500))
    with pytest.raises(RewardError):
        env.step(["1. A third.", "1. Another."])
    assert [each.state for each in env.envs] == before


def test_names_of_judges_and_what_is_none(tree, reader, service, tmp_path, monkeypatch):
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path))
    monkeypatch.setenv("OPENAI_BASE_URL", service.address)
    service.reply = Grader(lambda place, text, asked: 1)
    for name, requests in (("llm:openai/gpt-4o-mini", 2), ("llm-paper:openai/gpt-4o-mini", 3)):
        made = gym.make("InquiTree-v0", tree=tree, embedder=reader, judge=name, exam="none")
        conclude(made.unwrapped)
        assert (made.unwrapped.judging.judge.name, len(service.requests)) == (name, requests)
    for wrong in ("llm", "gpt-4o", "local"):
        with pytest.raises(OptionError, match="no judge is called"):
            InquiryEnv(tree, embedder=reader, judge=wrong)
    with pytest.raises(OptionError, match="have the members of AsyncJudge, got 3"):
        InquiryEnv(tree, embedder=reader, judge=3)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="array environments pay the exam alone"):
        InquiryBatchEnv(2, tree=tree, judge="llm:gpt-4o")  # type: ignore[call-arg]
