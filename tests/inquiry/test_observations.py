"""Observations as numbers, and the registered discrete view whole."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import FlattenObservation

from inquitree_gym import InquiryEnv, load_tree
from inquitree_gym.embeddings import tree_vectors
from inquitree_gym.embeddings.protocol import unit_rows
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.engine import Phase
from inquitree_gym.wrappers import EmbeddingObservation, MenuActions
from tests.inquiry.test_batch import LETTERS

TREE = load_tree("paper12")
N = len(TREE.subtopics)
TALLY = 3 * len(TREE.axes)


def walk(env: gym.Env, seed: int, turns: int = 60):
    """Step through an episode at random."""
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    yield observation, info
    for _ in range(turns):
        observation, _, over, _, info = env.step(int(rng.integers(env.action_space.n)))
        yield observation, info
        if over:
            return


def test_a_row_tells_phase_hint_visited_and_text(reader):
    rules = {"fake_level": 6, "max_turns": "11n", "feedback": "hint"}
    texts = MenuActions(InquiryEnv(TREE, **rules))
    env = EmbeddingObservation(MenuActions(InquiryEnv(TREE, **rules)))
    vectors = tree_vectors(TREE, reader)
    met = set()
    for seed in range(3):
        for (row, info), (text, _) in zip(walk(env, seed), walk(texts, seed), strict=True):
            state = env.unwrapped.state
            assert row.dtype == np.float32
            assert row in env.observation_space
            assert row[: len(Phase)].tolist() == [float(info["state"] == phase.name.lower()) for phase in Phase]
            assert row[len(Phase)] == info["hint_level"] / 4
            visited = row[len(Phase) + 1 : len(Phase) + 1 + N]
            assert visited.tolist() == [float(state.visited >> i & 1) for i in range(N)]
            np.testing.assert_allclose(row[-reader.dim :], vectors.of(text), atol=1e-5)
            met.add((info["state"], info["hint_level"]))
    assert {("topic", 3), ("subtopic", 2), ("result", 0)} <= met


def test_a_dict_holds_the_same_parts(reader):
    flat = EmbeddingObservation(MenuActions(InquiryEnv(TREE)))
    parts = EmbeddingObservation(MenuActions(InquiryEnv(TREE)), as_dict=True)
    for (row, _), (found, _) in zip(walk(flat, 5), walk(parts, 5), strict=True):
        assert list(found) == ["state", "hint_level", "visited", "tally", "text"]
        assert found in parts.observation_space
        np.testing.assert_array_equal(np.concatenate(list(found.values())), row)
    assert FlattenObservation(parts).observation_space.shape == flat.observation_space.shape


def test_a_shorter_text_keeps_angles_roughly(reader):
    whole = EmbeddingObservation(MenuActions(InquiryEnv(TREE)))
    short = EmbeddingObservation(MenuActions(InquiryEnv(TREE)), text_dim=96)
    assert short.observation_space.shape == (len(Phase) + 1 + N + TALLY + 96,)
    pairs = [(row[-384:], found[-96:]) for (row, _), (found, _) in zip(walk(whole, 2), walk(short, 2), strict=True)]
    # Angles alone: the length of a short row is about 1 only.
    long, brief = (unit_rows(np.stack(side)) for side in zip(*pairs, strict=True))
    assert np.abs(long @ long.T - brief @ brief.T).max() < 0.35
    assert np.corrcoef((long @ long.T).ravel(), (brief @ brief.T).ravel())[0, 1] > 0.9
    same = EmbeddingObservation(MenuActions(InquiryEnv(TREE)), text_dim=384)
    np.testing.assert_array_equal(same.reset(seed=2)[0], whole.reset(seed=2)[0])


def test_it_stands_on_free_text_too_and_other_trees_share_its_slots(reader):
    env = EmbeddingObservation(InquiryEnv(["paper2", "paper12"]), subtopics=12)
    for name in ("paper2", "paper12"):
        env.reset(seed=0, options={"tree": name})
        subtopic = next(s for s in load_tree(name).subtopics if not s.requires)
        row = env.step(subtopic.text)[0]
        visited = row[len(Phase) + 1 : len(Phase) + 13]
        assert visited.sum() == 1
        assert visited[[s.id for s in load_tree(name).subtopics].index(subtopic.id)] == 1
    env = EmbeddingObservation(InquiryEnv(TREE))
    env.reset(seed=0)
    with pytest.raises(OptionError, match="paper5 has 7 axes and the tally 6 slots"):
        env.reset(seed=0, options={"tree": "paper5"})
    assert env.step("")[0].shape == (len(Phase) + 1 + N + TALLY + reader.dim,), "the episode before goes on"
    assert env.unwrapped.tree == TREE
    with pytest.raises(OptionError, match="paper12 has 7 subtopics and the observation 5 slots"):
        EmbeddingObservation(InquiryEnv(["paper2", "paper12"]), subtopics=5)


@pytest.mark.parametrize("text_dim", [0, -3, 385, 2.0, True], ids=str)
def test_a_length_out_of_range_is_refused(text_dim, reader):
    with pytest.raises(OptionError, match="text_dim must be None or an integer from 1 to 384"):
        EmbeddingObservation(InquiryEnv(TREE), text_dim=text_dim)


@pytest.mark.parametrize("subtopics", [0, -1, 9.0, True], ids=str)
def test_a_number_of_slots_out_of_range_is_refused(subtopics, reader):
    with pytest.raises(OptionError, match=f"subtopics must be None or an integer from 1, got {subtopics}"):
        EmbeddingObservation(InquiryEnv(TREE), subtopics=subtopics)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version.*:UserWarning")
@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("InquiTree-menu-v0", {"tree": ["paper2", "paper8"], "size": (10, 24), "as_dict": True}),
        ("InquiTree-synthetic-menu-v0", {"difficulty": {"subtopics": (1, 2)}, "embedder": LETTERS}),
    ],
    ids=["several trees", "made trees"],
)
def test_the_checker_passes_for_trees_that_change(name: str, keywords: dict, reader):
    check_env(gym.make(name, **keywords), skip_render_check=True)


def test_every_option_of_the_view_reaches_its_part(reader):
    env = gym.make(
        "InquiTree-paper12-menu-v0",
        size=(9, 30),
        on_masked="raise",
        text_dim=32,
        as_dict=True,
        fake_level=10,
        max_turns=4,
    )
    assert env.action_space.n == 9 + 30 + 13
    observation, _ = env.reset(seed=1)
    assert {name: part.shape for name, part in observation.items()} == {
        "state": (7,), "hint_level": (1,), "visited": (9,), "tally": (36,), "text": (32,)
    }  # fmt: skip
    assert env.unwrapped.episode_rules.fake_level == 10
    assert env.unwrapped.turn_limit == 4
    assert env.get_wrapper_attr("action_masks")().sum() == N
    other = gym.make(env.spec)
    assert other.action_space == env.action_space
