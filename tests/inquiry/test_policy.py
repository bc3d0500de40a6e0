"""A policy of the discrete view plays free text just as it would play the discrete view."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym import InquiryEnv, Rules, load_tree, play
from inquitree_gym.baselines import PolicyAgent
from inquitree_gym.embeddings import tree_vectors
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.engine import Phase

TREE = load_tree("paper8")


def episode_phase(row: np.ndarray) -> Phase:
    return Phase(int(row[: len(Phase)].argmax()))


@pytest.mark.e2e
@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**31), level=st.integers(0, 10), turns=st.sampled_from([3, 9, "3n", "11n"]),
    masked=st.booleans(), feedback=st.sampled_from(["hint", "reason"]), redo_turn=st.booleans(),
    replication=st.sampled_from(["exact", "varied"]),
)  # fmt: skip
def test_it_sees_what_the_discrete_view_shows_and_says_what_it_would_say(
    seed, level, turns, masked, feedback, redo_turn, replication, reader
):
    rules = {"feedback": feedback, "redo_turn": redo_turn, "replication": replication}
    menu = gym.make("InquiTree-paper8-menu-v0", fake_level=level, max_turns=turns, **rules)
    seen: list[tuple[np.ndarray, np.ndarray]] = []

    def policy(row: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> int:
        seen.append((row, mask))
        return int((rng.random(len(mask)) * (mask if masked else 1)).argmax())

    agent = PolicyAgent(tree_vectors(TREE, reader), policy, rules=Rules(**rules))
    episode = play(InquiryEnv(TREE, fake_level=level, max_turns=turns, **rules), agent, seed)

    row, _ = menu.reset(seed=seed)
    rng = np.random.default_rng(menu.unwrapped.agent_seed)
    total, turns_played = 0.0, iter(episode.turns)
    for found, open_then in seen:
        mask = menu.get_wrapper_attr("action_masks")()
        phase = episode_phase(row)
        if phase >= Phase.CONCLUSION:  # of what was entered as the limit struck, no text tells
            visited = slice(len(Phase) + 1, len(Phase) + 6)
            found[visited] = row[visited]
        np.testing.assert_allclose(found, row, atol=1e-5)
        np.testing.assert_array_equal(open_then, mask)
        action = int((rng.random(len(mask)) * (mask if masked else 1)).argmax())
        if phase != Phase.EXAM:  # which it answers item by item, and hands in at once
            assert next(turns_played).action == menu.get_wrapper_attr("menu").texts[action]
        row, reward, over, _, _ = menu.step(action)
        total += float(reward)
    assert over
    assert episode.footer.episode_return == pytest.approx(total)


def test_layouts_it_was_trained_with_reach_the_policy(reader):
    rows = []

    def first(row, mask, rng) -> int:
        rows.append((row, mask))
        return int(mask.argmax())

    agent = PolicyAgent(tree_vectors(TREE, reader), first, name="mine", size=(9, 30), text_dim=24)
    play(InquiryEnv(TREE), agent, 0)
    assert rows[0][0].shape == (7 + 1 + 9 + 36 + 24,)
    assert rows[0][1].shape == (9 + 30 + 13,)
    assert agent.config == {"name": "mine", "size": [9, 30, 12], "text_dim": 24}
    assert not agent.needs_privileged


def test_a_tree_that_does_not_fit_is_refused(reader):
    with pytest.raises(OptionError, match="paper8 has 5 subtopics"):
        PolicyAgent(tree_vectors(TREE, reader), lambda row, mask, rng: 0, size=(2, 30))
    with pytest.raises(OptionError, match="text_dim must be None or an integer"):
        PolicyAgent(tree_vectors(TREE, reader), lambda row, mask, rng: 0, text_dim=0)
