"""Draws are independent: fakes and agents of different trees, and the seed that an agent is told from its fakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inquitree_gym import InquiryEnv, load_tree, play
from inquitree_gym.baselines import RandomAgent
from inquitree_gym.decisions import read_decision
from inquitree_gym.engine import Engine, Phase, Reading, Rules, splitmix64
from inquitree_gym.errors import LogError
from inquitree_gym.log import read_episode, to_line
from inquitree_gym.scoring import clustered_mean
from inquitree_gym.trees import Tree, builtin_ids
from tests.strategies import make_tree

TREES = [load_tree(name) for name in builtin_ids()]
BLOCKS = 400


def engines(level: int, fake_key: int = 2) -> list[Engine]:
    return [Engine(tree, Rules(threshold=0.5, fake_level=level, fake_key=fake_key)) for tree in TREES]  # type: ignore[arg-type]


def coverage_of_fakes(level: int, fake_key: int) -> float:
    """Share of blocks of two seeds whose 95 % interval of the share of fakes holds the true share."""
    covered = 0
    played = engines(level, fake_key)
    for block in range(BLOCKS):
        shares = [
            (tree.id, float(np.mean([engine.fake_shown(seed, k, 1) > 0 for k in range(len(tree.studies))])))
            for tree, engine in zip(TREES, played, strict=True)
            for seed in (2 * block, 2 * block + 1)
        ]
        _, low, high, *_ = clustered_mean(shares)
        covered += low <= level / 10 <= high
    return covered / BLOCKS


@pytest.mark.parametrize("level", [3, 6])
def test_intervals_for_the_share_of_fakes_cover_the_truth(level: int):
    assert 0.93 <= coverage_of_fakes(level, 2) <= 0.97


def test_they_did_not_with_the_former_key():
    assert coverage_of_fakes(3, 1) < 0.5


COPIES = [make_tree([[], [0], [0], [1]], [1, 2, 1, 1], tree_id=f"copy{i}") for i in range(8)]
"""Trees that differ in their ids alone."""


def turns(tree: Tree, seed: int, fake_key: int) -> int:
    """Turns that the random agent takes if the engine reads every text as what it is."""
    engine, agent = Engine(tree, Rules(threshold=0.5, fake_key=fake_key)), RandomAgent(tree)  # type: ignore[arg-type]
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


def table_of_turns(trees: list[Tree], seeds: int, fake_key: int = 2) -> np.ndarray:
    """Turns of the random agent, shape (seeds, trees)."""
    return np.array([[turns(tree, seed, fake_key) for tree in trees] for seed in range(seeds)])


def test_the_random_agent_is_independent_on_trees_of_one_seed():
    found = table_of_turns(COPIES, BLOCKS)
    between = np.corrcoef(found.T)[np.triu_indices(len(COPIES), 1)]
    assert abs(between).max() < 4 / BLOCKS**0.5
    estimates = [clustered_mean((str(i), float(each)) for i, each in enumerate(row)) for row in found]
    assert 0.93 <= np.mean([low <= found.mean() <= high for _, low, high, *_ in estimates]) <= 0.97


def test_it_did_the_same_on_all_of_them_before():
    found = table_of_turns(COPIES[:2], 40, fake_key=1)
    assert (found[:, 0] == found[:, 1]).all()
    assert found.std() > 0


def guesses(told: int, engine: Engine, study: int, run: int) -> list[bool]:
    """Fakes as an agent would compute them that takes ``told`` for the seed, by both keys."""
    words = (told, told % 2**31, told << 1)
    keys = (engine.fake_keys[study], study)
    return [splitmix64(word, key, run) * 10 < engine.rules.fake_level << 64 for word in words for key in keys]


def advantage(fake_key: int, told: Callable[[Engine, int], int]) -> float:
    """Largest hit rate minus false-alarm rate of the guesses, over all trees."""
    draws = [
        (engine.fake_shown(seed, study, run) > 0, guesses(told(engine, seed), engine, study, run))
        for engine in engines(5, fake_key)
        for seed in range(40)
        for study in range(len(engine.fake_keys))
        for run in (1, 2)
    ]
    fake, guessed = (np.array(column) for column in zip(*draws, strict=True))
    return float(abs(guessed[fake].mean(axis=0) - guessed[~fake].mean(axis=0)).max())


@pytest.mark.e2e
def test_an_agent_that_hashes_what_it_is_told_does_no_better_than_chance():
    assert advantage(2, Engine.agent_seed) < 0.03
    assert advantage(2, lambda engine, seed: seed) == 1.0, "with the episode's seed it would know every fake"


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


def written_before(file: Path, turns: int) -> None:
    """Rewrite a log as it was before the rules that say how seeds are used, and tear it after some turns."""
    episode = read_episode(file)
    rules = {name: value for name, value in episode.header.rules.items() if name not in ("fake_key", "bare_decisions")}
    header = episode.header.model_copy(update={"rules": rules})
    file.write_text("".join(map(to_line, (header, *episode.turns[:turns]))))


def test_a_torn_log_from_before_goes_on_under_its_own_draws(tmp_path: Path):
    tree, former = load_tree("paper12"), {"fake_key": 1, "bare_decisions": False}
    whole = play(InquiryEnv(tree, fake_level=5, **former), RandomAgent(tree), 7, file=tmp_path / "log.jsonl")
    assert any(turn.event.fake for turn in whole.turns)
    env = InquiryEnv(tree, fake_level=5)
    assert play(env, RandomAgent(tree), 7).actions != whole.actions
    for turns in (0, 4, len(whole.turns) - 1):
        written_before(tmp_path / "log.jsonl", turns)
        again = play(env, RandomAgent(tree), 7, file=tmp_path / "log.jsonl")
        assert again.fingerprint == whole.fingerprint
        assert read_episode(tmp_path / "log.jsonl").actions == whole.actions


def test_a_torn_log_is_not_resumed_under_rules_that_differ(tmp_path: Path):
    tree, file = load_tree("paper12"), tmp_path / "log.jsonl"
    play(InquiryEnv(tree), RandomAgent(tree), 7, file=file)
    written_before(file, 4)
    with pytest.raises(LogError, match=r"'fake_key': 1.*'fake_key': 2"):
        play(InquiryEnv(tree), RandomAgent(tree), 7, file=file, options={"fake_key": 2})
    header = read_episode(file).header
    file.write_text(to_line(header.model_copy(update={"rules": header.rules | {"gravity": 9.81}})))
    with pytest.raises(LogError, match=r"cannot resume.*gravity"):
        play(InquiryEnv(tree), RandomAgent(tree), 7, file=file)
