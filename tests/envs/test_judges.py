"""The judge of the reward: by name and by protocol, asked, logged and replayed, on a real server on loopback."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from inquitree_gym.baselines import OracleAgent, ReplayAgent
from inquitree_gym.embeddings import Embedder
from inquitree_gym.envs import InquiryBatchEnv, InquiryEnv, InquiryVectorEnv, SyntheticEnv
from inquitree_gym.errors import BudgetError, JudgeError, OptionError, RewardError
from inquitree_gym.judges import AsyncJudge, Judgement, LLMJudge, Verdict
from inquitree_gym.judges.local import VERSION
from inquitree_gym.llm import Budget, ChatModel, ReplyCache
from inquitree_gym.log import Episode, Reply, read_episode
from inquitree_gym.rollout import aplay, play
from inquitree_gym.trees import Tree
from inquitree_gym.wrappers import LogEpisodes
from tests.judges.test_llm import Grader
from tests.servers import COMPLETION_TOKENS, PROMPT_TOKENS, Body, Service, failed, said
from tests.strategies import make_tree

pytestmark = pytest.mark.e2e

AT_MOST = 60.0
"""Seconds after which a test that hangs gives up."""


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
    return InquiryEnv(tree, embedder=embedder, judge=judge, privileged=True)


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


def test_the_judge_sets_the_reward_and_every_reply_is_logged(
    tree: Tree, minilm: Embedder, service: Service, judge: LLMJudge, tmp_path: Path
):
    episode = play(open_env(tree, minilm, judge), OracleAgent(tree), 3, file=tmp_path / "a.jsonl")
    assert read_episode(tmp_path / "a.jsonl") == episode
    assert episode.footer.episode_return == pytest.approx(0.6)
    assert play(open_env(tree, minilm, "local"), OracleAgent(tree), 3).footer.episode_return == 1
    assert len(grades(episode)) == len(service.requests) == 2
    last = episode.turns[-1]
    assert [reply.turn for reply in grades(episode)] == [last.turn] * 2
    assert last.tokens == {"prompt": 2 * PROMPT_TOKENS, "completion": 2 * COMPLETION_TOKENS}
    assert episode.judge == {"name": "llm:gpt-4o-mini", **judge.config}


@pytest.mark.parametrize(("rules", "share"), [("default", 1.0), ("paper", (1 / 2 + 1 + 1) / 3)])
def test_the_papers_judge_gives_one_of_three_grades_and_the_rules_weigh_them(
    tree: Tree, minilm: Embedder, service: Service, tmp_path: Path, rules: str, share: float
):
    service.reply = Grader(lambda place, text, asked: 0.6)
    judge = new_judge(service, tmp_path / "cache", orders=1, variants=False)
    env = InquiryEnv(tree, embedder=minilm, judge=judge, privileged=True, rules=rules)
    episode = play(env, OracleAgent(tree), 3)  # which runs one of the first item's two studies
    assert episode.footer.episode_return == pytest.approx(0.6 * share)
    assert episode.judge["name"] == "llm-paper:gpt-4o-mini"
    assert len(service.requests) == 1
    verdicts = asyncio.run(judge.judge(tree, episode.actions[-1])).verdicts
    assert {verdict.score for verdict in verdicts} == {0.6}


def test_a_replay_asks_nothing_again(tree: Tree, minilm: Embedder, service: Service, judge: LLMJudge, tmp_path: Path):
    episode = play(open_env(tree, minilm, judge), OracleAgent(tree), 3)
    again = play(open_env(tree, minilm, new_judge(service, tmp_path / "cache")), ReplayAgent(episode.actions), 3)
    assert (len(service.requests), again.fingerprint) == (2, episode.fingerprint)
    assert all(reply.cached for reply in grades(again))


def test_a_torn_episode_keeps_what_was_paid(
    tree: Tree, minilm: Embedder, service: Service, judge: LLMJudge, tmp_path: Path
):
    file = tmp_path / "torn.jsonl"
    whole = play(open_env(tree, minilm, judge), OracleAgent(tree), 3, file=file)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]))  # its last turn is there, its footer is not
    resumed = play(open_env(tree, minilm, new_judge(service, tmp_path / "empty")), OracleAgent(tree), 3, file=file)
    assert (resumed.fingerprint, len(service.requests)) == (whole.fingerprint, 2)
    file.write_bytes(b"".join(lines[:-2]))  # the replies are there, their turn is not
    resumed = play(open_env(tree, minilm, new_judge(service, tmp_path / "cache")), OracleAgent(tree), 3, file=file)
    assert (resumed.fingerprint, len(service.requests)) == (whole.fingerprint, 2)


def test_a_service_that_fails_is_no_reward_of_zero(
    tree: Tree, minilm: Embedder, service: Service, judge: LLMJudge, tmp_path: Path
):
    file = tmp_path / "died.jsonl"
    service.planned.extend([lambda: None, failed(500)])
    with pytest.raises(RewardError, match="the judge could not grade a conclusion: the model 'gpt-4o-mini'"):
        play(open_env(tree, minilm, judge), OracleAgent(tree), 3, file=file)
    assert read_episode(file).status == "failed"
    episode = play(open_env(tree, minilm, judge), OracleAgent(tree), 3, file=file)
    assert episode.footer.episode_return == pytest.approx(0.6)
    assert len(service.requests) == 3, "the reply that came is not asked for again"


def test_a_step_that_failed_can_be_taken_again(tree: Tree, minilm: Embedder, service: Service, judge: LLMJudge):
    env = InquiryEnv(tree, embedder=minilm, judge=judge)
    env.reset(seed=0)
    env.step("draw_conclusion")
    service.planned.append(failed(401, "wrong key"))
    with pytest.raises(RewardError) as caught:
        env.step("1. It is so.")
    assert (caught.value.status, caught.value.concerns_all, env.state.phase.name) == (401, True, "CONCLUSION")
    assert env.step("1. It is so.")[2]


def test_a_cap_is_no_reward_of_zero_either(tree: Tree, minilm: Embedder, service: Service, tmp_path: Path):
    service.reply = Grader(lambda place, text, asked: 1)
    judge = new_judge(service, tmp_path, budget=Budget(max_total_tokens=1))
    with pytest.raises(BudgetError, match="not asked: the budget is used up"):
        conclude(InquiryEnv(tree, embedder=minilm, judge=judge))


def test_an_unreadable_verdict_adds_nothing_and_is_logged_with_its_fault(
    tree: Tree, minilm: Embedder, service: Service, judge: LLMJudge
):
    service.reply = Grader(lambda place, text, asked: "?" if "number 1" in text else 1)
    episode = play(open_env(tree, minilm, judge), OracleAgent(tree), 3)
    items = len(tree.conclusions)
    assert episode.footer.episode_return == pytest.approx((items - 1) / items)
    assert {reply.fault for reply in grades(episode)} == {"no verdict that can be read"}


def test_a_judge_may_be_an_object_of_ones_own(tree: Tree, minilm: Embedder):
    env = LogEpisodes(InquiryEnv(tree, embedder=minilm, judge=Own(), privileged=True))
    episode = play(env, OracleAgent(tree), 0)
    items = len(tree.conclusions)
    spoken = "so" in episode.actions[-1]
    assert episode.footer.episode_return == pytest.approx(spoken * (items - 1) / items)
    assert episode.judge == {"name": "own", "version": 4, "word": "so"}
    with pytest.raises(JudgeError, match="returned 2 verdicts on the 3 items of three"):
        conclude(InquiryEnv(tree, embedder=minilm, judge=Own(2)))


def test_the_local_judge_is_named_in_the_log_with_its_version(tree: Tree, minilm: Embedder, tmp_path: Path):
    file = tmp_path / "local.jsonl"
    episode = play(open_env(tree, minilm, "local"), OracleAgent(tree), 0, file=file)
    assert episode.judge == {"name": "local", "version": VERSION}
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    former = lines[-1].replace(f',"judge":{{"name":"local","version":{VERSION}}}', "")
    assert former != lines[-1]
    file.write_text("".join([*lines[:-1], former]), encoding="utf-8")
    old = read_episode(file)
    assert (old.footer.judge, old.judge) == (None, {"name": "local", "version": 1})
    assert old.fingerprint == episode.fingerprint
    file.write_text("".join(lines[:-1]), encoding="utf-8")
    assert read_episode(file).judge is None


def meet(service: Service, number: int) -> None:
    """Answer the next requests only when so many are there at the same time."""
    barrier = threading.Barrier(number, timeout=AT_MOST)
    grade = Grader(lambda place, text, asked: 1)

    def answer(body: Body) -> str:
        if len(service.requests) <= number:
            barrier.wait()
        return grade(body)

    service.reply = answer


def test_concurrent_episodes_are_judged_at_the_same_time(minilm: Embedder, service: Service, judge: LLMJudge):
    trees = [make_tree([[]] * n, [1] * n, tree_id=f"t{n}") for n in (2, 3, 4)]
    meet(service, len(trees))

    async def all_at_once() -> list[Episode]:
        async with asyncio.timeout(AT_MOST):
            return await asyncio.gather(*(aplay(open_env(t, minilm, judge), OracleAgent(t), 0) for t in trees))

    episodes = asyncio.run(all_at_once())
    assert [episode.footer.episode_return for episode in episodes] == [1, 1, 1]
    assert [len(grades(episode)) for episode in episodes] == [2, 2, 2]


def test_a_vector_environment_judges_at_the_same_time_or_takes_no_step(
    tree: Tree, minilm: Embedder, service: Service, judge: LLMJudge
):
    meet(service, 2)
    env = InquiryVectorEnv(2, tree=tree, embedder=minilm, judge=judge, max_turns=1)
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


def test_a_judge_that_nobody_asks_costs_no_embedding(tree: Tree, minilm: Embedder, judge: LLMJudge):
    env = InquiryVectorEnv(1, tree=tree, embedder=minilm, judge=judge)
    env.reset(seed=0)
    env.step(["draw_conclusion"])
    (one,) = env.envs
    assert list(one.uncached_texts("1. A claim that is to be judged by a model.")) == []


def test_names_of_judges_and_what_is_none(
    tree: Tree, minilm: Embedder, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path))
    monkeypatch.setenv("OPENAI_BASE_URL", service.address)
    service.reply = Grader(lambda place, text, asked: 1)
    for name, requests in (("llm:openai/gpt-4o-mini", 2), ("llm-paper:openai/gpt-4o-mini", 3)):
        made = gym.make("InquiTree-v0", tree=tree, embedder=minilm, judge=name)
        conclude(made.unwrapped)
        assert (made.unwrapped.judging.judge.name, len(service.requests)) == (name, requests)
    for wrong in ("llm", "gpt-4o", "local "):
        with pytest.raises(OptionError, match="no judge is called"):
            InquiryEnv(tree, embedder=minilm, judge=wrong)
    with pytest.raises(OptionError, match="has the members of AsyncJudge, not 3"):
        InquiryEnv(tree, embedder=minilm, judge=3)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="unknown option 'judge'"):
        InquiryBatchEnv(2, tree=tree, judge="local")  # type: ignore[call-arg]


def test_every_view_in_text_and_menu_takes_a_judge(tree: Tree, minilm: Embedder):
    own = Own()
    synthetic = SyntheticEnv(embedder=minilm, judge=own)
    menu = gym.make("InquiTree-menu-v0", tree=tree, embedder=minilm, judge=own)
    synthetic_menu = gym.make("InquiTree-synthetic-menu-v0", embedder=minilm, judge=own)
    vector = gym.make_vec("InquiTree-synthetic-v0", 2, embedder=minilm, judge=own)
    inquiries = [synthetic, menu.unwrapped, synthetic_menu.unwrapped, *vector.unwrapped.envs]
    assert all(env.unwrapped.judging.judge is own for env in inquiries)


def test_half_read_answers_are_not_paid_for_again(tree: Tree, minilm: Embedder, service: Service, judge: LLMJudge):
    service.planned.append(said("I would rather not."))
    env = InquiryEnv(tree, embedder=minilm, judge=judge)
    assert (conclude(env), conclude(env), len(service.requests)) == (0, 0, 2)
