"""Thousands of inquiries as arrays take every turn as `SyncVectorEnv` over the single menu environment takes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym import load_tree
from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.inquiry.actions import menu_env
from inquitree_gym.inquiry.arrays import tables
from inquitree_gym.inquiry.arrays.env import InquiryBatchEnv
from inquitree_gym.seeds import hash_words, splitmix64
from inquitree_gym.trees import Tree
from tests.strategies import make_tree, with_paraphrases, with_rewordings

ID = "InquiTree-paper12-menu-v0"
PAPER = load_tree("paper12")
N, M = len(PAPER.subtopics), len(PAPER.studies)
REDO, EXPLORE, CONCLUDE, MACRO = range(N + M, N + M + 4)


def branched() -> Tree:
    """Four subtopics with up to three studies, and conclusions that need groups of results across subtopics."""
    tree = make_tree([[], [0], [0, 1], []], [2, 1, 3, 1])
    needs = [(("s1a",), ("s1b", "s3a")), (("s2a",),), (("s3a", "s3b"), ("s3c",)), (("s4a", "s1a"),)]
    items = [item.model_copy(update={"needs": found}) for item, found in zip(tree.conclusions, needs, strict=True)]
    return with_rewordings(tree.model_copy(update={"conclusions": tuple(items)}), 2)


TREES = {
    "branched": branched(),
    "chain": make_tree([[], [0], [1]], [1, 2, 1], tree_id="chain"),
    "paper2": load_tree("paper2"),
    "worded": with_paraphrases(
        make_tree([[], [], [1]], [2, 1, 1], tree_id="worded"),
        {
            "s1": ["A question about 33.", "Question number 3?"],
            "s1b": ["Protocol of s1a."],
            "s3a": ["Measure 44 and 9."],
        },
    ),
}
RULES = st.fixed_dictionaries(
    {},
    optional={
        "fake_level": st.sampled_from([3, 6, 10]),
        "max_turns": st.sampled_from([None, 1, 2, 7, 20]),
        "threshold": st.sampled_from([-1.0, 0.5, 0.9, 1.0]),
        "decisions": st.just("tokens"),
        "bare_decisions": st.just(False),
        "feedback": st.sampled_from(["hint", "reason"]),
        "reruns": st.sampled_from(["redo", "match"]),
        "replication": st.sampled_from(["exact", "varied"]),
        "redo_turn": st.booleans(),
        "named_at_result": st.sampled_from(["unvisited", "any"]),
        "evidence": st.sampled_from(["groups", "results"]),
    },
)


class Letters:
    """An embedder of one's own, cheap enough for large trees: counts of letters, digits and pairs of digits."""

    name, dim, threshold, digest = "letters", 136, 0.995, "3" * 64

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        wanted = [*map(chr, range(97, 123)), *map(str, range(10)), *(f"{i:02}" for i in range(100))]
        counts = np.array([[text.lower().count(each) for each in wanted] for text in texts], np.float32) + 1e-3
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


LETTERS = Letters()


def same(ours: Any, theirs: Any, where: str) -> None:
    """Assert that two observations, rewards or infos are equal: keys, types, shapes and values."""
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), where
        assert ours.keys() == theirs.keys(), where
        for key in theirs:
            same(ours[key], theirs[key], f"{where}, {key}")
        return
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), where
    if theirs.dtype == object:
        for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if isinstance(b, dict | np.ndarray):
                same(a, b, f"{where}, {number}")
            else:
                assert a == b, (where, number)
    elif theirs.dtype.kind == "f":
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6, err_msg=where)
    else:
        np.testing.assert_array_equal(ours, theirs, err_msg=where)


def pair(width: int, mode: AutoresetMode, **keywords: Any) -> tuple[InquiryBatchEnv, SyncVectorEnv]:
    """The batch environment, and Gymnasium's loop over single ones."""
    batch = gym.make_vec(ID, width, vectorization_mode="vector_entry_point", autoreset_mode=mode, **keywords)
    assert isinstance(batch, InquiryBatchEnv)
    keywords = {"tree": "paper12", **keywords}
    own = keywords.pop("trees", [keywords.pop("tree")] * width)
    sync = SyncVectorEnv([partial(menu_env, tree=one, **keywords) for one in own], autoreset_mode=mode)
    assert batch.single_action_space == sync.single_action_space
    assert batch.single_observation_space == sync.single_observation_space
    return batch, sync


def both(batch: VectorEnv, sync: VectorEnv, call: Callable[[VectorEnv], Any], where: str) -> tuple:
    """Do the same with both, compare what they return, and return it."""
    ours, theirs = call(batch), call(sync)
    for name, a, b in zip(("observations", "rewards", "terminated", "truncated"), ours[:-1], theirs[:-1], strict=False):
        same(a, b, f"{where}: {name}")
    same(ours[-1], theirs[-1], f"{where}: infos")
    if len(ours) == 5:
        np.testing.assert_allclose(ours[1], theirs[1], rtol=0, atol=1e-12)
    same(batch.action_masks(), np.stack(sync.call("action_masks")), f"{where}: masks")
    return ours


def drawn(rng: np.random.Generator, env: InquiryBatchEnv, diligence: float) -> np.ndarray:
    """Random actions, a share of them open ones."""
    masks = env.action_masks()
    open_ones = (rng.random(masks.shape) * masks).argmax(axis=1)
    any_ones = rng.integers(masks.shape[1], size=len(masks))
    return np.where(rng.random(len(masks)) < diligence, open_ones, any_ones)


def play(batch: InquiryBatchEnv, sync: SyncVectorEnv, rng: np.random.Generator, steps: int, diligence: float) -> int:
    """Step both, reset by hand what has to be, and return how many episodes ended."""
    ends = 0
    for number in range(steps):
        actions = drawn(rng, batch, diligence)
        over = both(batch, sync, lambda env, actions=actions: env.step(actions), f"step {number}")[2]
        ends += over.sum()
        if over.any() and batch.metadata["autoreset_mode"] == AutoresetMode.DISABLED:
            again = {"reset_mask": over}
            both(batch, sync, lambda env, again=again: env.reset(options=dict(again)), f"reset after step {number}")
    return int(ends)


@pytest.mark.e2e
@pytest.mark.parametrize("mode", list(AutoresetMode), ids=str)
@pytest.mark.parametrize("rules", ["default", "paper"])
def test_whole_episodes_of_a_paper_end_with_the_same_rewards(rules: str, mode: AutoresetMode, reader):
    batch, sync = pair(5, mode, fake_level=4, max_turns=30, rules=rules, exam="items")
    both(batch, sync, lambda env: env.reset(seed=7), "reset")
    total = np.zeros(5)
    ends, rng = play(batch, sync, np.random.default_rng(1), 150, 0.9), np.random.default_rng(2)
    assert ends >= 15
    for _ in range(40):
        actions = drawn(rng, batch, 1.0)
        _, rewards, over, _, _ = both(batch, sync, lambda env, actions=actions: env.step(actions), "step")
        total += rewards
        if over.any() and mode == AutoresetMode.DISABLED:
            both(batch, sync, lambda env, over=over: env.reset(options={"reset_mask": over.copy()}), "reset")
    assert np.abs(total).max() > 0.05, "answers that earn something"


def test_every_inquiry_may_have_a_tree_of_its_own_and_options_another_for_an_episode():
    keywords = {"trees": [TREES["chain"], TREES["branched"], TREES["chain"]], "size": (4, 17), "embedder": LETTERS}
    batch, sync = pair(3, AutoresetMode.SAME_STEP, max_turns=6, **keywords)
    both(batch, sync, lambda env: env.reset(seed=3), "reset")
    rng = np.random.default_rng(0)
    assert play(batch, sync, rng, 30, 0.7) > 3
    for options in ({"fake_level": 9}, {"tree": TREES["paper2"]}, {"tree": [TREES["chain"], TREES["branched"]]}):
        both(batch, sync, lambda env, options=options: env.reset(options=dict(options)), str(options))
        play(batch, sync, rng, 12, 0.7)


def test_an_episode_takes_its_tree_by_its_seed():
    trees = [load_tree("paper2"), load_tree("paper8"), TREES["chain"]]
    env = gym.make_vec("InquiTree-menu-v0", 64, tree=trees, embedder=LETTERS)
    env.reset(seed=11)
    expected = [splitmix64(11 + i, 3) % 3 for i in range(64)]
    topics = [tree.topic for tree in trees]
    assert all(topics[number] in text for number, text in zip(expected, env.texts(), strict=True))
    assert len(set(expected)) == 3


@pytest.mark.e2e
def test_trees_of_more_nodes_than_a_word_has_bits():
    # Chains of choices, so that prerequisites, targets and conclusions reach over the border of a word.
    needs = [[] if i % 5 == 0 else [i - 1, *([i - 5] if i > 60 else [])] for i in range(70)]
    big = make_tree(needs, [2 if i % 9 == 0 else 1 for i in range(70)], tree_id="big")
    rng = np.random.default_rng(5)
    for rules in ({"fake_level": 3}, {"feedback": "hint", "reruns": "match"}):
        batch, sync = pair(2, AutoresetMode.NEXT_STEP, tree=big, embedder=LETTERS, max_turns=110, **rules)
        both(batch, sync, lambda env: env.reset(seed=0), "reset")
        ends, beyond = 0, 0.0
        for _ in range(120):
            actions = drawn(rng, batch, 0.97)
            row, _, over, *_ = both(batch, sync, lambda env, actions=actions: env.step(actions), "step")
            ends, beyond = ends + over.sum(), max(beyond, row[:, 7 + 62 : 7 + 70].max())
        assert ends >= 2
        assert beyond == 1, "subtopics of the second word were visited"
        index = InquiryBatchEnv(2, tree=big, embedder=LETTERS, observation="index", **rules)
        assert index.single_observation_space.nvec.tolist()[1:3] == [2**62, 2**8]


def test_an_index_observation_names_text_and_visited_subtopics():
    keywords = {"tree": [TREES["branched"], TREES["paper2"]], "embedder": LETTERS, "fake_level": 5, "max_turns": 25}
    index, features = (
        InquiryBatchEnv(6, observation=kind, text_dim=9, **keywords) for kind in ("index", "features")
    )  # fmt: skip
    shown, infos = index.reset(seed=2)
    row, _ = features.reset(seed=2)
    rng = np.random.default_rng(3)
    for _ in range(60):
        assert shown.dtype == np.int64
        assert shown in index.observation_space
        assert row in features.observation_space
        assert [index.text_of(int(number)) for number in shown[:, 0]] == index.texts() == features.texts()
        np.testing.assert_allclose(index.features(shown), row, rtol=0, atol=1e-6)
        actions = drawn(rng, index, 0.7)
        shown, *ours, infos = index.step(actions)
        row, *theirs, others = features.step(actions)
        same([*ours, infos["turn"]], [*theirs, others["turn"]], "the rest")
    assert index.features(shown[None]).shape == (1, 6, features.single_observation_space.shape[0])
    with pytest.raises(OptionError, match=r"must lie in 0 to \d+, got -1"):
        index.text_of(-1)
    with pytest.raises(OptionError, match="chain is none of them; make the environment with all the trees"):
        index.reset(options={"tree": TREES["chain"]})
    with pytest.raises(OptionError, match='make the environment with observation="index"'):
        features.text_of(0)


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=str)
def test_what_agents_must_not_see_is_said_when_asked_for(mode: AutoresetMode):
    batch, sync = pair(3, mode, tree=TREES["branched"], embedder=LETTERS, privileged=True, fake_level=5, max_turns=9)
    _, infos = both(batch, sync, lambda env: env.reset(seed=1), "reset")
    assert infos["privileged"]["kind"].tolist() == ["start"] * 3
    assert play(batch, sync, np.random.default_rng(4), 40, 0.8) > 4


def test_observations_are_copied_unless_that_is_turned_off():
    fresh, kept = (
        InquiryBatchEnv(4, tree=TREES["chain"], embedder=LETTERS, observation="index", copy=copy)
        for copy in (True, False)
    )
    for as_dict in (False, True):
        features = InquiryBatchEnv(4, tree=TREES["chain"], embedder=LETTERS, as_dict=as_dict, copy=False)
        first, _ = features.reset(seed=0)
        again, *_ = features.step(np.zeros(4, int))
        assert first is again if not as_dict else all(np.shares_memory(first[name], again[name]) for name in first)
    first, _ = fresh.reset(seed=0)
    before = first.copy()
    again, *_ = fresh.step([0, 1, 2, 3])
    assert (first == before).all()
    assert (again != before).any()
    one, _ = kept.reset(seed=0)
    other, *_ = kept.step([0, 1, 2, 3])
    assert one is other
    assert (other == again).all()


def test_without_infos_only_the_last_observation_of_an_episode_is_told():
    env = InquiryBatchEnv(2, tree=TREES["chain"], embedder=LETTERS, infos=False, max_turns=1, autoreset_mode="SameStep")
    assert env.reset(seed=0)[1] == {}
    for _ in range(4):  # a proposal, the conclusion, and two of three items
        assert env.step([0, 0])[-1] == {}
    *_, infos = env.step([0, 0])
    assert infos.keys() == {"final_obs", "_final_obs"}
    assert infos["_final_obs"].tolist() == [True, True]
    assert infos["final_obs"][0][:7].tolist() == [0, 0, 0, 0, 0, 0, 1], "the phase after the end"


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5), st.lists(st.integers(0, 2**63), max_size=3))
def test_the_hash_is_that_of_the_engine(first: list[int], words: list[int]):
    hashes = hash_words(np.zeros(len(first), np.uint64), np.array(first, np.uint64))
    for word in words:
        hashes = hash_words(hashes, np.full(len(first), word))
    assert hashes.tolist() == [splitmix64(one, *words) for one in first]


def test_plays_and_conclusions_that_were_forgotten_are_read_again(monkeypatch):
    monkeypatch.setattr(tables, "MAX_CACHED_TREES", 2)
    batch, sync = pair(3, AutoresetMode.DISABLED, tree=TREES["branched"], embedder=LETTERS)
    both(batch, sync, lambda env: env.reset(seed=9), "reset")
    rng = np.random.default_rng(7)
    for turns in range(12, 24):
        mask = rng.random(3) < 0.4
        options = {"max_turns": turns, "fake_level": turns % 3, **({"reset_mask": mask} if mask.any() else {})}
        both(batch, sync, lambda env, options=options: env.reset(options=dict(options)), f"{turns} turns")
        play(batch, sync, rng, 8, 0.9)
    assert len(batch._pool.trees) <= 1 + 2 + 3


def test_actions_that_are_no_menu_actions_are_refused():
    env = InquiryBatchEnv(3, tree=TREES["chain"], embedder=LETTERS)
    env.reset(seed=0)
    last = env.single_action_space.n - 1
    for wrong in (np.zeros(3), np.zeros(3, bool), ["a", "b", "c"], np.zeros(2, int), 0, np.zeros((3, 1), int), None):
        with pytest.raises(ActionError, match=r"menu actions must be integers of shape \(3,\), got"):
            env.step(wrong)
    with pytest.raises(ActionError, match=r"menu actions must be integers of shape \(3,\), got .*inhomogeneous"):
        env.step([[0], [0, 1], 0])
    for wrong in ([0, last + 1, 0], np.array([0, -1, 0], np.int8), [0, -(2**62), 0]):
        with pytest.raises(ActionError, match=rf"a menu action must lie in 0 to {last}, got -?\d+ \(inquiry 1\)"):
            env.step(wrong)
    assert env.texts() == [env.texts()[0]] * 3, "nothing was stepped"
    for right in ([0, last, 1], (0, 1, 2), np.array([0, 1, 2], np.uint8)):
        env.step(right)
    env.action_space.seed(0)
    env.step(env.action_space.sample())


def test_masked_actions_are_refused_when_that_is_wanted():
    for rules in ({}, {"redo_turn": True, "feedback": "hint"}):
        env = InquiryBatchEnv(2, tree=TREES["chain"], embedder=LETTERS, on_masked="raise", max_turns=9, **rules)
        env.reset(seed=0)
        with pytest.raises(ActionError, match=r"action 3 of inquiry 1 is not open at topic; choose among the True"):
            env.step([0, 3])
        rng = np.random.default_rng(0)
        ends = 0
        for _ in range(40):
            ended = env.step(drawn(rng, env, 1.0))[2]
            ends += ended.sum()
            if ended.any():  # what an inquiry says that is over does not count
                env.step(np.where(ended, 0, drawn(rng, env, 1.0)))
        assert ends >= 4


def test_calls_at_the_wrong_time_are_refused():
    env = InquiryBatchEnv(2, tree=TREES["chain"], embedder=LETTERS, max_turns=1, autoreset_mode="Disabled")
    for call in (lambda: env.step([0, 0]), env.action_masks, env.texts):
        with pytest.raises(ResetNeeded, match=r"call reset\(\) first"):
            call()
    with pytest.raises(ResetNeeded, match=r"call reset\(\) first"):
        env.reset(options={"reset_mask": np.array([True, False])})
    env.reset(seed=0)
    for _ in range(5):
        env.step([0, 0])
    env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ResetNeeded, match="the episode of environment 1 is over; call reset"):
        env.step([0, 0])
    env.close()
    for call in (lambda: env.step([0, 0]), env.reset):
        with pytest.raises(ClosedEnvironmentError, match="was closed; make another one"):
            call()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        (
            {"trees": ["paper2"]},
            r"trees must be a sequence with one tree for each of the 2 environments, got \['paper2'\]",
        ),
        ({"trees": "ab"}, "trees must be a sequence with one tree for each of the 2 environments, got 'ab'"),
        ({"trees": 2}, "trees must be a sequence with one tree for each of the 2 environments, got 2"),
        ({"trees": [["paper2"], "paper8"]}, r"each of trees must be an id, a path or a Tree, got \['paper2'\]"),
        (
            {"tree": "paper2", "autoreset_mode": "Never"},
            'autoreset_mode must be one of "NextStep", "SameStep", "Disabled", got ',
        ),
        ({}, "pass tree, for all inquiries, or trees"),
        ({"tree": "paper2", "observation": "text"}, r"observation must be one of \('features', 'index'\), got 'text'"),
        ({"tree": "paper2", "observation": "index", "as_dict": True}, 'goes with observation="features"'),
        ({"tree": "paper2", "text_dim": 0}, "text_dim must be None or an integer from 1 to 384, got 0"),
        ({"tree": "paper2", "on_masked": "skip"}, "on_masked must be one of"),
        ({"tree": "paper2", "size": (1,)}, "size must be a pair of integers"),
        ({"tree": "paper2", "size": 9}, "size must be a pair of integers from 1, .* got 9"),
        ({"tree": ["paper2", "paper12"], "size": (4, 30)}, "paper12 has 7 subtopics .* the menu has 4 and 30 slots"),
        ({"tree": "paper2", "render_mode": "ansi"}, r"draws nothing; leave render_mode at None, and read texts\(\)"),
        ({"tree": "paper2", "fake_levle": 3}, "unknown option 'fake_levle' .did you mean 'fake_level'"),
        ({"tree": "paper2", "privileged": True, "infos": False}, "privileged is a part of the infos"),
    ],
)
def test_keywords_that_do_not_fit_are_refused(keywords: dict, message: str):
    with pytest.raises(OptionError, match=message):
        InquiryBatchEnv(2, **keywords)


def test_resets_that_do_not_fit_are_refused_and_leave_everything_as_it_was(monkeypatch):
    env = InquiryBatchEnv(2, tree=TREES["chain"], embedder=LETTERS, size=(3, 4), max_turns=5)
    env.reset(seed=0)
    env.step([0, 0])
    before = env.texts()
    for mask in ([True, False], np.array([1, 0]), np.array([True]), np.array([False, False])):
        with pytest.raises(OptionError, match=r"reset_mask must be a bool array of shape \(2,\), True somewhere"):
            env.reset(options={"reset_mask": mask})
    for seed in (-1, [1], [1, -2], [0, 1.5], 1.5, np.int64(5), "ab"):
        with pytest.raises((OptionError, gym.error.Error), match=r"[Ss]eed"):
            env.reset(seed=seed)
    with pytest.raises(OptionError, match="unknown option 'max_turn'"):
        env.reset(options={"max_turn": 3})
    with pytest.raises(OptionError, match="has 4 subtopics and 7 studies, and the menu has 3 and 4 slots"):
        env.reset(options={"tree": TREES["branched"]})
    monkeypatch.setattr(tables, "MAX_READINGS", 50)
    with pytest.raises(OptionError, match=r"must need at most 50 readings, got 200 for chain\. Play it"):
        env.reset(options={"fake_level": 1})
    assert env.texts() == before
    env.step([0, 0])
