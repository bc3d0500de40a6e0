"""Acting by number is saying the text behind it."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from inquitree_gym import InquiryEnv, load_tree
from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.wrappers import MenuActions

TREE = load_tree("paper12")
N, M = len(TREE.subtopics), len(TREE.studies)
REDO, EXPLORE, CONCLUDE, NOTHING = range(N + M, N + M + 4)
LAST = NOTHING + 9


@pytest.fixture
def env(reader) -> MenuActions:
    return MenuActions(InquiryEnv(TREE, fake_level=5, privileged=True))


def test_every_action_is_played_as_the_text_it_stands_for(env: MenuActions):
    text_env = InquiryEnv(TREE, fake_level=5, privileged=True, exam="items")
    rng = np.random.default_rng(3)
    for seed in range(6):
        assert unmasked(env.reset(seed=seed)) == text_env.reset(seed=seed)
        over = False
        while not over:
            action = rng.integers(env.action_space.n)
            text = env.menu.texts[action]
            stepped = env.step(action)
            assert unmasked(stepped) == text_env.step(text)
            over = stepped[2]


def unmasked(returned: tuple) -> tuple:
    """What `reset` or `step` returned, its info without the mask."""
    *rest, info = returned
    return *rest, {name: value for name, value in info.items() if name != "action_mask"}


@pytest.mark.parametrize("rules", [{}, {"redo_turn": True}, {"feedback": "hint"}], ids=str)
def test_every_info_holds_a_fresh_mask_of_the_actions_that_the_state_allows(rules: dict, reader):
    env = MenuActions(InquiryEnv(TREE, fake_level=5, **rules))
    for seed in range(2):
        _, info = env.reset(seed=seed)
        while info["state"] != "end":
            mask, before = info["action_mask"], env.action_masks()
            assert (type(mask), mask.dtype, mask.shape) == (np.ndarray, np.int8, (N + M + 13,))
            np.testing.assert_array_equal(mask, before)
            mask[:] = 7  # a caller's own copy: nothing else sees this
            np.testing.assert_array_equal(env.action_masks(), before)
            info = env.step(env.action_space.sample(before.astype(np.int8)))[-1]
        assert info["action_mask"].tolist() == [0] * NOTHING + [1] + [0] * 9


WHOLE_NUMBERS = [
    3, np.int64(3), np.int32(3), np.uint8(3), np.array(3), np.array(3, np.int16), np.array([3])[0],
]  # fmt: skip


@pytest.mark.parametrize("action", WHOLE_NUMBERS, ids=repr)
def test_an_action_may_be_whatever_stands_for_a_whole_number(action, reader):
    assert MenuActions(InquiryEnv(TREE)).action_space.contains(action)
    assert_is_played_as_three(action)


def assert_is_played_as_three(action):
    env, other = (MenuActions(InquiryEnv(TREE)) for _ in range(2))
    env.reset(seed=0)
    other.reset(seed=0)
    assert unmasked(env.step(action)) == unmasked(other.step(3))


def test_a_size_makes_one_space_for_trees_of_any_size_below_it(reader):
    sizes = [MenuActions(InquiryEnv(name), size=(10, 20)).action_space.n for name in ("paper2", "paper12")]
    assert sizes == [43, 43]
    assert (
        MenuActions(InquiryEnv(["paper2", "paper12", "paper4"])).action_space.n
        == 10 + max(len(load_tree(name).studies) for name in ("paper2", "paper12", "paper4")) + 13
    )


def test_an_empty_slot_says_nothing(reader):
    env = MenuActions(InquiryEnv(TREE, privileged=True), size=(N + 2, M))
    env.reset(seed=0)
    assert not env.action_masks()[N]
    info = env.step(N + 1)[-1]
    assert (info["privileged"]["candidate"], info["hint_level"]) == (-1, 1)


def test_a_tree_that_does_not_fit_is_refused_at_reset_and_the_episode_before_it_goes_on(reader):
    env = MenuActions(InquiryEnv("paper2"))
    env.reset(seed=0)
    env.step(0)
    for asked in ("paper12", ["paper2", "paper12"]):
        with pytest.raises(OptionError, match=r"paper12 has 7 subtopics .* make it with size=\(7, \d+\) or more"):
            env.reset(seed=0, options={"tree": asked})
    assert (env.unwrapped.tree.id, env.step(0)[-1]["turn"]) == ("paper2", 2)
    assert env.reset(seed=0, options={"tree": "paper2"})[1]["state"] == "topic"
    with pytest.raises(OptionError, match=r"paper12 has 7 subtopics .* and the menu has 4 and 30 slots"):
        MenuActions(InquiryEnv(["paper2", "paper12"]), size=(4, 30))


def test_a_masked_action_is_refused_where_that_is_asked_for(reader):
    env = MenuActions(InquiryEnv(TREE), on_masked="raise")
    env.reset(seed=0)
    with pytest.raises(ActionError, match=f"action {CONCLUDE} is not open at topic; choose among the True ones"):
        env.step(CONCLUDE)
    assert env.step(next(i for i, s in enumerate(TREE.subtopics) if not s.requires))[-1]["accepted"], (
        "nothing was spent"
    )
    assert MenuActions(InquiryEnv(TREE)).reset(seed=0)[1]["turn"] == 0


@pytest.mark.parametrize(
    ("action", "told"),
    [(1.0, "integer, got float"), (True, "got bool"), ("3", "got str"), (None, "got NoneType"),
     (np.array([1]), "got ndarray"), (np.array(1.0), "got ndarray"), (np.array(True), "got ndarray"),
     (np.float32(1), "got float32"), (np.bool_(True), "got bool"), ([1], "got list"),
     (np.array(LAST + 1), f"got {LAST + 1}"), (-1, f"lie in 0 to {LAST}, got -1"), (LAST + 1, f"got {LAST + 1}")],
    ids=str,
)  # fmt: skip
def test_actions_of_another_kind_are_refused(env: MenuActions, action, told: str):
    env.reset(seed=0)
    with pytest.raises(ActionError, match=told):
        env.step(action)


@pytest.mark.parametrize("size", [(0, 5), (5,), (5, 2.0), (7, -1), (True, 30), 5, "ab"], ids=str)
def test_a_size_is_a_pair_of_whole_numbers(size, reader):
    with pytest.raises(OptionError, match="size must be a pair of integers from 1"):
        MenuActions(InquiryEnv(TREE), size=size)


def test_what_is_unknown_is_refused(reader):
    with pytest.raises(OptionError, match="on_masked must be one of"):
        MenuActions(InquiryEnv(TREE), on_masked="ignore")
    with pytest.raises(OptionError, match="MenuActions must wrap an InquiryEnv, got CartPoleEnv"):
        MenuActions(gym.make("CartPole-v1"))
