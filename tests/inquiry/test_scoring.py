"""The scores of one episode, by hand and by the real judge."""

from __future__ import annotations

import pytest

from inquitree_gym.baselines import OracleAgent, RandomAgent, WorstCaseAgent
from inquitree_gym.embeddings import ReaderEmbedder
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.judges.quality import Verdict
from inquitree_gym.log import read_episode
from inquitree_gym.results.score import score_episode
from inquitree_gym.rollout import play
from inquitree_gym.trees import Tree, load_tree, parse_tree
from tests.inquiry.test_trajectory import CONCLUDE, END, EXPLORE, enter, episode_of, result
from tests.strategies import make_tree


class GivenJudge:
    """Gives the scores it was told to, and remembers what it was asked."""

    name = "given"
    version = 3

    def __init__(self, *scores: float | None) -> None:
        self._scores = scores
        self.asked: list[str] = []

    def judge(self, conclusion: str) -> tuple[Verdict, ...]:
        self.asked.append(conclusion)
        return tuple(Verdict(score, "given") for score in self._scores)


@pytest.fixture(scope="module")
def tree() -> Tree:
    """Three items: the first needs s1, the second s1 and s2 and s3, the third s3."""
    document = make_tree([[], [], []], [2, 1, 1], tree_id="needy").model_dump(mode="json")
    document["conclusions"][1]["needs"] = [["s1a", "s1b"], ["s2a"], ["s3a"]]
    return parse_tree(__import__("json").dumps(document).encode())


def test_quality_is_the_sum_of_evidence_times_score(tree: Tree):
    # s1 was proven by its second study, s2 was only seen as a fake, s3 was never entered.
    steps = [enter("s1"), result("s1b"), EXPLORE, enter("s2"), result("s2a", 1), CONCLUDE, END]
    judge = GivenJudge(0.6, 1.0, 1.0)
    scored = score_episode(episode_of(tree, *steps, fake_level=4, seed=17), tree, judge)
    assert scored.detail.quality == pytest.approx(1 * 0.6 + 1 / 3 * 1.0 + 0 * 1.0)
    assert scored.detail.quality_share == pytest.approx((0.6 + 1 / 3) / 3)
    assert scored.detail.items == 3
    assert judge.asked == ["1. It rose."]
    assert (scored.task, scored.agent, scored.cell["fake_level"], scored.seed, scored.judge) == (
        "needy", "made", 4, 17, "given",
    )  # fmt: skip
    assert [verdict.score for verdict in scored.detail.verdicts] == [0.6, 1.0, 1.0]


def test_a_judge_that_fails_leaves_the_episode_unscored(tree: Tree):
    scored = score_episode(
        episode_of(tree, enter("s1"), result("s1a"), CONCLUDE, END), tree, GivenJudge(1.0, None, 0.0)
    )
    assert scored.detail.quality is scored.detail.quality_share is None
    assert scored.detail.verdicts[0].score == 1.0
    assert scored.detail.trajectory.coverage == pytest.approx(1 / 3)


def test_an_episode_without_a_conclusion_is_unscored_and_costs_no_judgement(tree: Tree):
    judge = GivenJudge(1.0, 1.0, 1.0)
    scored = score_episode(episode_of(tree, enter("s1"), result("s1a")), tree, judge)
    assert scored.detail.quality is None
    assert (scored.detail.verdicts, judge.asked) == ((), [])


def test_nothing_proven_is_zero_and_not_absent(tree: Tree):
    scored = score_episode(episode_of(tree, enter("s1"), result("s1a", 2), CONCLUDE, END), tree, GivenJudge(1, 1, 1))
    assert scored.detail.quality == 0.0


@pytest.mark.parametrize(
    ("config", "label"),
    [
        ({"name": "llm", "model": "openai/x", "reasoning_effort": None}, "llm openai/x"),
        ({"name": "llm", "model": "openai/x", "reasoning_effort": "high"}, "llm openai/x (high)"),
        ({"name": "random", "reasoning_effort": "high"}, "random"),
        ({}, "unknown"),
    ],
)
def test_agents_that_ask_different_models_are_different_agents(tree: Tree, config: dict, label: str):
    assert score_episode(episode_of(tree, END, agent=config), tree, GivenJudge(0, 0, 0)).agent == label


@pytest.mark.parametrize("agent", ["oracle", "random", "worst-case"])
@pytest.mark.parametrize("level", [0, 6])
def test_the_score_from_the_log_is_the_reward_that_was_paid(agent: str, level: int, reader: ReaderEmbedder, tmp_path):
    paper = load_tree("paper12")
    player = {"oracle": OracleAgent(paper), "random": RandomAgent(paper), "worst-case": WorstCaseAgent()}[agent]
    env = InquiryEnv(paper, embedder=reader, privileged=True, fake_level=level, max_turns=40)
    paid = play(env, player, 8, file=tmp_path / "episode.jsonl").footer.episode_return
    scored = score_episode(read_episode(tmp_path / "episode.jsonl"), paper)
    assert scored.values["return"] == pytest.approx(paid)
    assert (scored.agent, scored.cell["fake_level"], scored.seed, scored.judge) == (agent, level, 8, "")
    if (agent, level) == ("oracle", 0):
        assert paid == 1
