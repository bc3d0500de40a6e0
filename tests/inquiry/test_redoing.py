"""Redo until the result is true: a baseline plays as without fakes, but for the turns that redoing takes."""

from __future__ import annotations

import pytest

from inquitree_gym.baselines import LLMAgent, RandomAgent, RedoUntilTrue, RetrievalAgent, make_agent
from inquitree_gym.embeddings import ReaderEmbedder
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.agents.scripted import MAX_RUNS
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.trajectory import read_trajectory
from inquitree_gym.inquiry.vigilance import exposures
from inquitree_gym.llm import ChatModel
from inquitree_gym.log import Episode
from inquitree_gym.rollout import play
from inquitree_gym.trees import Tree
from tests.strategies import make_tree, readable


@pytest.fixture(scope="module")
def made() -> Tree:
    """A tree in which every study has fakes, one a subtopic."""
    return readable(make_tree([[], [0], [1], [], [3]], [1] * 5))


def own_actions(episode: Episode) -> list[str]:
    """The actions other than those of redoing."""
    redoing = [turn.event.decision == "redo" for turn in episode.turns]
    return [turn.action for turn, redone in zip(episode.turns, redoing, strict=True) if not redone]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["random", "retrieval"])
def test_it_plays_as_the_other_agent_does_without_fakes(name: str, seed: int, reader: ReaderEmbedder):
    rules = {"embedder": reader, "max_turns": None, "replication": "exact"}
    plain = InquiryEnv("paper8", **rules)
    tempting = InquiryEnv("paper8", fake_level=6, privileged=True, **rules)
    without = play(plain, make_agent(name, plain), seed)
    redoing = play(tempting, make_agent(f"{name}-redo", tempting), seed)
    assert own_actions(redoing) == list(without.actions)
    assert redoing.footer.episode_return == without.footer.episode_return
    shown = sum(turn.event.decision == "redo" for turn in redoing.turns)
    assert len(redoing.turns) == len(without.turns) + shown


def test_every_fake_is_redone_and_no_true_result(made: Tree):
    env = InquiryEnv(made, fake_level=5, privileged=True)
    paths = [read_trajectory(play(env, RedoUntilTrue(RandomAgent(made)), seed), made) for seed in range(6)]
    assert {path.hit_rate for path in paths} == {1.0}
    assert {path.false_alarm_rate for path in paths} == {0.0}


def test_the_turn_of_a_redone_study_is_not_the_other_agents(made: Tree):
    class Watched(RandomAgent):
        def __init__(self, tree: Tree) -> None:
            super().__init__(tree)
            self.asked: list[str] = []

        def act(self, observation, info):
            self.asked.append(info["state"])
            return super().act(observation, info)

    env = InquiryEnv(made, fake_level=7, privileged=True, redo_turn=True, max_turns=None)
    agent = Watched(made)
    episode = play(env, RedoUntilTrue(agent), 3)
    assert sum(turn.event.decision == "redo" for turn in episode.turns) > 5
    results = sum(not each.redone for each in exposures(episode, made))
    assert agent.asked.count("result") == results
    assert "study" not in agent.asked


def test_a_study_that_is_always_fake_is_given_up(made: Tree):
    episode = play(
        InquiryEnv(made, fake_level=10, privileged=True, max_turns=None), RedoUntilTrue(RandomAgent(made)), 0
    )
    assert episode.status == "concluded"
    runs = [turn.event.node for turn in episode.turns if turn.event.kind == "result"]
    assert len(runs) == MAX_RUNS * len(made.subtopics)


def test_it_needs_to_be_told_and_is_called_after_the_other(made: Tree, reader: ReaderEmbedder):
    agent = RedoUntilTrue(RandomAgent(made))
    assert agent.config == {"name": "random-redo"}
    assert agent.needs_privileged
    with pytest.raises(OptionError, match="the random-redo agent needs an environment made with privileged=True"):
        play(InquiryEnv(made), agent, 0)
    env = InquiryEnv(made, embedder=reader, privileged=True)
    made = make_agent("retrieval-redo", env)
    assert isinstance(made, RedoUntilTrue)
    assert made.config["name"] == f"{RetrievalAgent.name}-redo"


def test_an_agent_that_asks_a_model_is_refused():
    with pytest.raises(OptionError, match="play it at fake level 0 instead"):
        RedoUntilTrue(LLMAgent(ChatModel("gpt-4o-mini")))
