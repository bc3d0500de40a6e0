"""Draws are independent: fakes and agents of different trees, and the seed that an agent is told from its fakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from inquitree_gym import InquiryEnv, load_tree, play
from inquitree_gym.baselines import RandomAgent
from inquitree_gym.inquiry.decisions import read_decision
from inquitree_gym.inquiry.engine import Engine, Phase, Reading, Rules
from inquitree_gym.results.statistics import clustered_mean
from inquitree_gym.seeds import splitmix64
from inquitree_gym.trees import Tree, builtin_ids
from tests.strategies import make_tree

TREES = [load_tree(name) for name in builtin_ids()]
BLOCKS = 400


def engines(level: int) -> list[Engine]:
    return [Engine(tree, Rules(threshold=0.5, fake_level=level)) for tree in TREES]


def coverage_of_fakes(level: int) -> float:
    """Share of blocks of two seeds whose 95 % interval of the share of fakes holds the true share."""
    covered = 0
    played = engines(level)
    for block in range(BLOCKS):
        shares = [
            (tree.id, float(np.mean([engine.fake_shown(seed, k, 1) > 0 for k in np.flatnonzero(engine.fakes_of)])))
            for tree, engine in zip(TREES, played, strict=True)
            for seed in (2 * block, 2 * block + 1)
        ]
        _, low, high, *_ = clustered_mean(shares)
        covered += low <= level / 10 <= high
    return covered / BLOCKS


@pytest.mark.parametrize("level", [3, 6])
def test_intervals_for_the_share_of_fakes_cover_the_truth(level: int):
    assert 0.93 <= coverage_of_fakes(level) <= 0.97


COPIES = [make_tree([[], [0], [0], [1]], [1, 2, 1, 1], tree_id=f"copy{i}") for i in range(8)]
"""Trees that differ in their ids alone."""


def turns(tree: Tree, seed: int) -> int:
    """Turns that the random agent takes if the engine reads every text as what it is."""
    rules = Rules(threshold=0.5, max_turns=None, feedback="hint")  # without a hint, turns have a long tail
    engine, agent = Engine(tree, rules), RandomAgent(tree)
    agent.reset(engine.agent_seed(seed))
    state = engine.start(seed).state
    while state.phase != Phase.CONCLUSION:
        shown = tree.subtopics[state.subtopic].text if state.phase == Phase.SUBTOPIC else ""
        action = agent.act(shown, {"state": state.phase.name.lower()})
        nodes = tree.studies if state.phase == Phase.SUBTOPIC else tree.subtopics
        named = [i for i, node in enumerate(nodes) if node.text == action]
        reading = Reading(named[0], 1.0) if named else Reading(decision=read_decision(action))
        state = engine.advance(state, reading).state
    return state.turn


def table_of_turns(trees: list[Tree], seeds: int) -> np.ndarray:
    """Turns of the random agent, shape (seeds, trees)."""
    return np.array([[turns(tree, seed) for tree in trees] for seed in range(seeds)])


def test_the_random_agent_is_independent_on_trees_of_one_seed():
    found = table_of_turns(COPIES, BLOCKS)
    between = np.corrcoef(found.T)[np.triu_indices(len(COPIES), 1)]
    assert abs(between).max() < 4 / BLOCKS**0.5
    estimates = [clustered_mean((str(i), float(each)) for i, each in enumerate(row)) for row in found]
    assert 0.93 <= np.mean([low <= found.mean() <= high for _, low, high, *_ in estimates]) <= 0.97


def guesses(told: int, engine: Engine, study: int) -> list[bool]:
    """First showings as an agent would compute them that takes ``told`` for the seed, by name of the study or place."""
    words = (told, told % 2**31, told << 1)
    keys = (engine.fake_keys[study], study)
    return [splitmix64(word, key, 1) * 10 < engine.rules.fake_level << 64 for word in words for key in keys]


def advantage(told: Callable[[Engine, int], int]) -> float:
    """Largest hit rate minus false-alarm rate of the guesses, over all trees."""
    draws = [
        (engine.fake_shown(seed, study, 1) > 0, guesses(told(engine, seed), engine, study))
        for engine in engines(5)
        for seed in range(80)
        for study, fakes in enumerate(engine.fakes_of)
        if fakes
    ]
    fake, guessed = (np.array(column) for column in zip(*draws, strict=True))
    return float(abs(guessed[fake].mean(axis=0) - guessed[~fake].mean(axis=0)).max())


@pytest.mark.e2e
def test_an_agent_that_hashes_what_it_is_told_does_no_better_than_chance():
    assert advantage(Engine.agent_seed) < 0.03
    assert advantage(lambda engine, seed: seed) == 1.0, "with the episode's seed it would know every fake"


class Curious(RandomAgent):
    """Keeps everything that it is told."""

    def reset(self, seed: int) -> None:
        super().reset(seed)
        self.told: list[Any] = [seed]

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        self.told += [observation, repr(info)]
        return super().act(observation, info)


def test_no_agent_is_told_the_seed_of_its_episode():
    env, agent, seed = InquiryEnv("paper12", fake_level=3), Curious(load_tree("paper12")), 748_392_615
    for number in (seed, 2**63 + seed):
        assert play(env, agent, number).header.seed == number
        assert 0 <= agent.told[0] < 2**63
        assert not [each for each in agent.told if str(number) in str(each)]
    play(env, agent, seed)
    first = agent.told[0]
    play(env, agent, seed, options={"tree": "paper8"})
    assert agent.told[0] != first, "the agent's seed depends on the tree"
