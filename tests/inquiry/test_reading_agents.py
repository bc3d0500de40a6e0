"""Agents that answer by the results that they recognise, and attacks on the credit that proposals earn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from inquitree_gym.baselines import BaselineAgent, BayesAgent, CopyistAgent, CoverAgent, EchoAgent, GreedyAgent
from inquitree_gym.embeddings import ReaderEmbedder
from inquitree_gym.envs import InquiryBatchEnv
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.agents.answers import longest_match
from inquitree_gym.inquiry.agents.readers import (
    Showing,
    exact_sheet,
    majority_sheet,
    shown_result,
    told_level,
    told_limit,
)
from inquitree_gym.inquiry.env import InquiryEnv, unwrap_inquiry
from inquitree_gym.inquiry.exam import exam_of, sheet_of_world
from inquitree_gym.inquiry.menu import CONCLUDE, EXPLORE
from inquitree_gym.inquiry.observer import design_of
from inquitree_gym.inquiry.players import compare_players
from inquitree_gym.log import Episode
from inquitree_gym.rollout import play
from inquitree_gym.sheets import Sheet
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.worlds import in_world
from tests.worlds import read, world_document

TREES = ("paper2", "paper28", "paper12", "paper7")


class Quoting(CopyistAgent):
    """Enters every subtopic by its text, and repeats its question as the design."""

    name = "quoting"

    def choose(self, observation: str, texts: Sequence[str]) -> str:
        return texts[0] if texts[0] in self.subtopics else self.subtopics[self._current]


class Declining(EchoAgent):
    """Echoes hints into a subtopic, declines it, and enters it again with its question. Its designs are echoes."""

    name = "declining"
    _quote = ""

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        if info["state"] == "topic" and self._quote:
            return self._quote
        if info["state"] == "subtopic" and not info["hint_level"]:
            question = self.subtopics[longest_match(self.subtopics, observation)]
            if question != self._quote:
                self._quote = question
                return EXPLORE
            self._quote = ""
        return super().act(observation, info)


class DecliningDesigner(Declining):
    """Enters subtopics as `Declining`, and designs well: a showing's credit is that of its subtopic alone."""

    name = "declining-designer"

    def choose(self, observation: str, texts: Sequence[str]) -> str:
        return super().choose(observation, texts) if texts[0] in self.subtopics else texts[0]


class Unstuck(EchoAgent):
    """Echoes a hint at the topic once: a second time it would lead to the same subtopic, and on in a circle."""

    name = "unstuck"

    def reset(self, seed: int) -> None:
        super().reset(seed)
        self._said: set[str] = set()

    def choose(self, observation: str, texts: Sequence[str]) -> str:
        said = super().choose(observation, texts)
        if texts[0] not in self.subtopics:
            return said
        fresh = said not in self._said
        self._said.add(said)
        return said if fresh else "x"


@pytest.mark.parametrize("agent", [CopyistAgent, EchoAgent, Unstuck, Quoting, Declining, DecliningDesigner])
@pytest.mark.parametrize("tree_id", TREES)
def test_quoting_what_was_shown_earns_no_credit(agent: type[CopyistAgent], tree_id: str, reader: ReaderEmbedder):
    tree = load_tree(tree_id)
    for level in (0, 3):
        for limit in ("3n", "11n"):
            env = InquiryEnv(tree, embedder=reader, fake_level=level, max_turns=limit)
            for seed in range(3):
                episode = play(env, agent(tree), seed)
                assert {turn.event.credit for turn in episode.turns if turn.event.kind == "result"} == {0}
                assert episode.footer.episode_return == 0


@pytest.mark.parametrize("agent", [Declining, DecliningDesigner])
@pytest.mark.parametrize("tree_id", TREES)
def test_the_attack_declines_echoed_entries_and_quotes_their_questions(
    agent: type[Declining], tree_id: str, reader: ReaderEmbedder
):
    tree = load_tree(tree_id)
    episode = play(InquiryEnv(tree, embedder=reader, max_turns="11n"), agent(tree), 0)
    questions = {subtopic.id: subtopic.text for subtopic in tree.subtopics}
    hinted = next(turn.turn for turn in episode.turns if turn.event.kind == "declined")
    entry, _, quote = episode.turns[hinted - 2 : hinted + 1]
    assert entry.action in entry.observation, "a hint"
    assert (entry.event.node, quote.event.kind) == (quote.event.node, "subtopic")
    assert quote.action == questions[quote.event.node]


def shown_in(episode: Episode, tree: Tree) -> list[Showing]:
    """The results in the order of an episode, by its log."""
    ids = [study.id for study in tree.studies]
    world = in_world(tree, tuple(map(int, episode.header.setup.world)))
    found = []
    for turn in episode.turns:
        if turn.event.kind == "result":
            study = ids.index(turn.event.node)
            outcome = tree.studies[study].outcomes.index(world.studies[study].outcomes[turn.event.fake])
            found.append(Showing(study, outcome))
    return found


@pytest.mark.parametrize("agent", [CopyistAgent, CoverAgent, BayesAgent])
def test_every_result_is_recognised_by_its_text(agent: Any, reader: ReaderEmbedder):
    tree = load_tree("paper28")
    player = agent(tree)
    for limit in (14, 15, 40):
        episode = play(InquiryEnv(tree, embedder=reader, fake_level=5, max_turns=limit), player, limit)
        assert player._showings == shown_in(episode, tree) != []


def test_a_text_without_a_result_shows_none():
    tree = load_tree("paper2")
    study = tree.studies[0]
    for text in ("", study.text, study.outcomes[0][0], f"This was run before:\n\n{study.text}\n\nWhat next?"):
        assert shown_result(tree, text) is None
    assert shown_result(tree, f"Study: {study.text}\n\nResult: {study.outcomes[1][0]}") == Showing(0, 1)


def test_the_majority_counts_every_axis_that_a_result_reads():
    tree = read(world_document([2, 3], [[[0], [0, 1]], [[1]]], [[0], [1], [0, 1]]))
    exam = exam_of(tree)
    assert majority_sheet(tree, []).is_empty
    showings = [Showing(0, 1), Showing(1, 1 * 3 + 2), Showing(0, 0), Showing(2, 2)]
    assert majority_sheet(tree, showings) == sheet_of_world(exam, (1, 2))
    even = majority_sheet(tree, [Showing(0, 1), Showing(0, 0), Showing(2, 1)])
    assert (even.choices[:2], even.choices[2] is None) == ((None, 1), False)


def test_without_axes_an_item_goes_by_the_studies_that_it_needs():
    tree = load_tree("paper12")
    truths = [Showing(study, 0) for study, _ in enumerate(tree.studies)]
    assert majority_sheet(tree, truths).choices == (0,) * len(tree.conclusions)


def test_the_posterior_trusts_a_result_of_two_axes_more_on_each_of_them():
    tree = read(world_document([2, 2], [[[0], [0, 1], [1]]], [[0], [1]]))
    shown = [Showing(0, 0), Showing(1, 1 * 2 + 1), Showing(2, 1)]
    assert majority_sheet(tree, shown).choices == (None, 1)
    assert exact_sheet(tree, shown, 3).choices == (1, 1), "a fake changes one of the two"


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("agent", [CoverAgent, GreedyAgent, BayesAgent])
def test_players_reach_what_they_reach_in_simulations(agent: type[CoverAgent], level: int, reader: ReaderEmbedder):
    tree = load_tree("paper28")
    env = InquiryEnv(tree, embedder=reader, fake_level=level, max_turns=40)
    player = agent(tree)
    found = [play(env, player, seed).footer.episode_return for seed in range(60)]
    simulated = compare_players(design_of(tree), level, 40)[agent.name].score.mean
    error = float(np.std(found) / np.sqrt(len(found)))
    assert abs(fmean(found) - simulated) <= 3.3 * error + 0.01


@pytest.mark.parametrize("tree_id", ["paper2", "paper12"])
def test_cover_runs_every_study_once_where_turns_allow(tree_id: str, reader: ReaderEmbedder):
    tree = load_tree(tree_id)
    episode = play(InquiryEnv(tree, embedder=reader, max_turns=None), CoverAgent(tree), 1)
    ran = [turn.event.node for turn in episode.turns if turn.event.kind == "result"]
    assert sorted(ran) == sorted(study.id for study in tree.studies)
    assert episode.footer.episode_return == 1
    assert {turn.event.kind for turn in episode.turns}.isdisjoint({"wait", "recall", "subtopic_hint", "study_hint"})


def test_bayes_repeats_right_away_and_later_and_greedy_repeats_nothing(reader: ReaderEmbedder):
    tree = load_tree("paper12")
    again, kinds = {}, set()
    for agent in (GreedyAgent(tree), BayesAgent(tree)):
        for seed in range(4):
            episode = play(InquiryEnv(tree, embedder=reader, fake_level=4, max_turns="11n"), agent, seed)
            assert not {turn.event.kind for turn in episode.turns} & {"wait", "subtopic_hint", "study_hint"}
            ran = [turn.event.node for turn in episode.turns if turn.event.kind == "result"]
            again[agent.name] = again.get(agent.name, 0) + len(ran) - len(set(ran))
            kinds |= {turn.event.kind for turn in episode.turns if agent.name == "bayes"}
    assert again["greedy"] == 0 < again["bayes"]
    assert "recall" in kinds, "a study that was run before is run again by a decision to redo"


def test_bayes_concludes_when_nothing_helps_any_more(reader: ReaderEmbedder):
    tree = load_tree("paper2")
    for rules in ({"max_turns": None}, {"max_turns": None, "fake_level": 3}, {"rules": "paper", "max_turns": 60}):
        episode = play(InquiryEnv(tree, embedder=reader, **rules), BayesAgent(tree), 1)
        assert episode.footer.episode_return == 1 or "rules" in rules
        assert not any(turn.event.limit for turn in episode.turns) or "rules" in rules
    plain = read(world_document([2, 2], [[[0], [1]]], [[0], [1]]))
    hopeless = play(InquiryEnv(plain, embedder=reader, fake_level=5), BayesAgent(plain), 0)
    assert hopeless.turns[0].action == CONCLUDE, "a reading of one axis with two poles is as likely false as true"


@pytest.mark.parametrize(("opening", "limit"), [("24 turns", 24), ("1 turn", 1), ("", 10**9)])
def test_the_turn_limit_is_read_from_the_opening(opening: str, limit: int):
    assert told_limit(f"You have {opening} before you must conclude.") == limit


@pytest.mark.parametrize(("rules", "level"), [({"fake_level": 4}, 4), ({}, 0), ({"rules": "paper"}, None)])
def test_the_fake_level_is_read_from_the_opening(rules: dict[str, Any], level: int | None, reader: ReaderEmbedder):
    opening, _ = InquiryEnv("paper2", embedder=reader, **rules).reset(seed=0)
    assert told_level(opening) == level


def test_an_echo_repeats_hints_and_nothing_else(reader: ReaderEmbedder):
    tree = load_tree("paper2")
    episode = play(InquiryEnv(tree, embedder=reader, max_turns="11n"), EchoAgent(tree), 0)
    hints = {hint for node in (*tree.subtopics, *tree.studies) for hint in node.hints}
    told = [turn for turn in episode.turns if "Hint " in turn.observation]
    assert told
    assert all(turn.action in hints and turn.action in turn.observation for turn in told)


@pytest.mark.parametrize("name", ["paper1", "paper24"])
def test_an_echo_ends_without_a_turn_limit(name: str, reader: ReaderEmbedder):
    tree = load_tree(name)
    agent, env = EchoAgent(tree), InquiryEnv(tree, embedder=reader, max_turns=None)
    observation, info = env.reset(seed=0)
    agent.reset(0)
    for _ in range(9 * 4 * len(tree.subtopics)):
        observation, _, terminated, truncated, info = env.step(agent.act(observation, info))
        if terminated or truncated:
            break
    assert terminated


def test_agents_that_recognise_results_need_no_privileges():
    tree = load_tree("paper2")
    agents: list[BaselineAgent] = [
        kind(tree) for kind in (CopyistAgent, EchoAgent, CoverAgent, GreedyAgent, BayesAgent)
    ]
    assert not any(agent.needs_privileged for agent in agents)


def test_the_expected_exam_pays_the_mean_of_the_exam_with_less_variance(reader: ReaderEmbedder):
    tree = load_tree("paper28")
    rules: dict[str, Any] = {"embedder": reader, "fake_level": 3, "max_turns": 12}
    sure, drawn = InquiryEnv(tree, reward="exam-expected", **rules), InquiryEnv(tree, **rules)
    episodes = [(play(sure, CopyingCover(tree), seed), play(drawn, CopyingCover(tree), seed)) for seed in range(80)]
    expected, exam = (np.array([each.footer.episode_return for each in side]) for side in zip(*episodes, strict=True))
    assert [turn.action for turn in episodes[0][0].turns] == [turn.action for turn in episodes[0][1].turns]
    assert episodes[0][0].footer.judge["name"] == "exam-expected"
    assert abs((expected - exam).mean()) <= 3.3 * (expected - exam).std() / 80**0.5
    assert expected.std() < 0.6 * exam.std()


class CopyingCover(CoverAgent):
    """Answers by the majority of what it was shown, so that its sheet is not the best one."""

    def sheet(self) -> Sheet:
        return majority_sheet(self._tree, self._showings)


def test_without_fakes_the_expected_exam_is_the_exam_in_menus_too(reader: ReaderEmbedder):
    env = gym.make("InquiTree-paper2-menu-v0", reward="exam-expected", embedder=reader)
    rng, paid = np.random.default_rng(0), []
    for seed in range(5):
        info, done = env.reset(seed=seed)[1], False
        while not done:
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            _, reward, done, _, info = env.step(int(action))
        inner = unwrap_inquiry(env)
        paid.append((reward, inner.runtime.engine.exam_return(inner.state)))
    assert all(sure == pytest.approx(drawn) for sure, drawn in paid), "without fakes, both are the same"
    assert any(sure for sure, _ in paid)


@pytest.mark.parametrize("rules", [{"world": "actual"}, {"exam": "none"}, {"rules": "paper"}])
def test_the_expected_exam_needs_an_exam_in_drawn_worlds(rules: dict[str, Any], reader: ReaderEmbedder):
    with pytest.raises(OptionError, match="needs an exam and a world drawn from any, train, test"):
        InquiryEnv("paper2", embedder=reader, reward="exam-expected", **rules)
    env = InquiryEnv("paper2", embedder=reader, reward="exam-expected")
    with pytest.raises(OptionError, match="pass reward='exam'"):
        env.reset(options={"world": "actual"})


def test_array_environments_refuse_other_rewards_than_the_exam():
    with pytest.raises(OptionError, match="array environments pay the exam alone"):
        InquiryBatchEnv(2, tree="paper2", reward="exam-expected")
