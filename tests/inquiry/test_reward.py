"""Shaped rewards: the potential that keeps optimal policies, and the terms that do not."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym import InquiryEnv, Rules, load_tree
from inquitree_gym.envs import InquiryBatchEnv
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.actions import menu_env
from inquitree_gym.inquiry.engine import Engine
from inquitree_gym.wrappers import RewardShaping, VectorRewardShaping
from tests.inquiry.test_batch import LETTERS, TREES
from tests.inquiry.test_inquiry import CONCLUDE, EXPLORE, JUNK, REDO, openings, script, trajectory
from tests.strategies import make_tree

TREE = load_tree("paper12")
FIRST, SECOND = (TREE.subtopics[i] for i in openings(TREE))
STUDY = next(study for study in SECOND.studies if study.result.axes)
AT_RESULT = [FIRST.text, FIRST.studies[0].text]
ACTIONS = script(TREE)


def rewards(actions: list[str], seed: int = 1, rules: dict[str, Any] | None = None, **terms: Any) -> list[float]:
    env = RewardShaping(InquiryEnv("paper12", **(rules or {})), **{"gamma": 0.9, "coverage": 0.0, **terms})
    return [step[1] for step in trajectory(env, seed, actions)[1:]]


def bare(actions: list[str], seed: int = 1, rules: dict[str, Any] | None = None) -> list[float]:
    return [step[1] for step in trajectory(InquiryEnv("paper12", **(rules or {})), seed, actions)[1:]]


def discounted(values: list[float], gamma: float) -> float:
    return sum(gamma**t * value for t, value in enumerate(values))


def terms(actions: list[str], **settings: Any) -> list[float]:
    """What the terms alone add, turn by turn."""
    rules = settings.get("rules")
    pairs = zip(rewards(actions, **settings), bare(actions, settings.get("seed", 1), rules), strict=True)
    return [shaped - plain for shaped, plain in pairs]


@pytest.mark.parametrize("gamma", [0.9, 0.5, 1.0])
@pytest.mark.parametrize("coverage", [1.0, 2.5, -1.0])
def test_the_potential_telescopes_to_nothing_over_an_episode(gamma: float, coverage: float, reader):
    shaped = rewards(ACTIONS, gamma=gamma, coverage=coverage)
    plain = bare(ACTIONS)
    assert discounted(shaped, gamma) == pytest.approx(discounted(plain, gamma), abs=1e-12)
    assert shaped != plain


@pytest.mark.e2e
@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(ACTIONS[:-1]), max_size=12), st.integers(0, 9), st.sampled_from([0.9, 0.3]))
def test_after_any_turns_the_shaping_is_the_discounted_potential(reader, actions: list[str], seed: int, gamma: float):
    rules = {"fake_level": 5}
    env = RewardShaping(InquiryEnv("paper12", **rules), gamma=gamma, coverage=3.0)
    added = [
        step[1] - plain
        for step, plain in zip(trajectory(env, seed, actions)[1:], bare(actions, seed, rules), strict=True)
    ]
    over = env.unwrapped.state.phase.name == "END"
    entered = 0 if over else env.unwrapped.state.visited.bit_count()
    potential = 3.0 * entered / len(TREE.subtopics)
    assert discounted(added, gamma) == pytest.approx(gamma ** len(added) * potential, abs=1e-12)


def test_an_outer_time_limit_keeps_the_potential_to_bootstrap_from(reader):
    env = gym.wrappers.TimeLimit(RewardShaping(InquiryEnv("paper12"), gamma=1.0), 2)
    steps = trajectory(env, 1, [*AT_RESULT, CONCLUDE])
    assert steps[-1][3]
    assert sum(step[1] for step in steps[1:]) == pytest.approx(1 / len(TREE.subtopics))


def test_every_turn_and_every_hint_costs_its_term(reader):
    assert terms(ACTIONS, turn=0.25) == pytest.approx([-0.25] * len(ACTIONS))
    infos = [step[-1] for step in trajectory(InquiryEnv("paper12"), 1, ACTIONS)[1:]]
    charged = terms(ACTIONS, hint=0.5)
    assert charged == [-0.5 if info["hint_level"] else 0 for info in infos]
    assert charged.count(-0.5) == 5
    assert terms([JUNK] * 3, hint=0.5, rules={"max_turns": 2}) == [-0.5, 0, 0], "the limit takes the place of a hint"


@pytest.mark.parametrize(("level", "sign"), [(10, 1), (0, -1)], ids=["fake", "false alarm"])
@pytest.mark.parametrize("redo_turn", [False, True])
def test_a_redo_counts_once_per_study(level: int, sign: int, redo_turn: bool, reader):
    rest = [JUNK] if redo_turn else []
    actions = [
        *AT_RESULT, REDO, *rest, REDO, *rest, EXPLORE,
        SECOND.text, STUDY.text, "hm", REDO, *rest, REDO, *rest, CONCLUDE,
    ]  # fmt: skip
    rules = {"fake_level": level, "redo_turn": redo_turn}
    found = terms(actions, spotted_fake=2.0, rules=rules)
    seconds = [i for i, action in enumerate(actions) if action == REDO]
    assert [i for i, value in enumerate(found) if value] == [seconds[0], seconds[2]]
    assert sum(found) == sign * 4.0


def test_a_study_that_was_redone_in_another_visit_is_not_paid_again(reader):
    actions = [*AT_RESULT, REDO, EXPLORE, *AT_RESULT, REDO]
    assert sum(terms(actions, spotted_fake=2.0, rules={"fake_level": 10})) == 2.0


def test_a_fake_spotted_and_its_true_result_doubted_cancel_out(reader):
    rules = {"fake_level": 5}
    engine = Engine(TREE, Rules(threshold=0.5, **rules))
    study = TREE.studies.index(FIRST.studies[0])
    seed = next(s for s in range(99) if engine.fake_shown(s, study, 1) and not engine.fake_shown(s, study, 2))
    assert terms([*AT_RESULT, REDO, REDO], spotted_fake=2.0, rules=rules, seed=seed) == [0, 0, 2.0, -2.0]


@pytest.mark.parametrize("shape", [lambda **terms: RewardShaping(InquiryEnv("paper12"), **terms),
                                   lambda **terms: VectorRewardShaping(InquiryBatchEnv(2, tree="paper12"), **terms)],
                         ids=["single", "arrays"])  # fmt: skip
def test_what_cannot_be_shaped_is_refused(shape, reader):
    for gamma in (0, -0.1, 1.01, 2):
        with pytest.raises(OptionError, match=rf"gamma must lie in \(0, 1\], got {gamma}"):
            shape(gamma=gamma)
    for term in ("gamma", "coverage", "hint", "turn", "spotted_fake"):
        for value in (float("nan"), float("inf"), "1", None, True):
            with pytest.raises(OptionError, match=f"^{term} must be a finite number, got {value!r}"):
                shape(**{"gamma": 0.9, term: value})
    with pytest.raises(OptionError, match="RewardShaping must wrap an InquiryEnv, got CartPoleEnv"):
        RewardShaping(gym.make("CartPole-v1"), gamma=0.9)
    with pytest.raises(OptionError, match="VectorRewardShaping must wrap an InquiryBatchEnv, got SyncVectorEnv"):
        VectorRewardShaping(gym.make_vec("CartPole-v1", 2, vectorization_mode="sync"), gamma=0.9)


TERMS = {"gamma": 0.9, "coverage": 1.5, "hint": 0.25, "turn": 0.125, "spotted_fake": 2.0}
REPEATING = 0.7
"""Share of decisions that are a redo."""


def shaped_pair(mode: AutoresetMode, width: int, **rules: Any) -> tuple[VectorRewardShaping, SyncVectorEnv]:
    """The array environment, and Gymnasium's loop over single environments, both shaped."""
    rules = {"tree": [TREES["branched"], TREES["chain"]], "size": (4, 7), "embedder": LETTERS, **rules}
    batch = VectorRewardShaping(InquiryBatchEnv(width, autoreset_mode=mode, **rules), **TERMS)
    single = [lambda: RewardShaping(menu_env(**rules), **TERMS)] * width
    return batch, SyncVectorEnv(single, autoreset_mode=mode)


@pytest.mark.e2e
@pytest.mark.parametrize("mode", list(AutoresetMode), ids=str)
@pytest.mark.parametrize(
    "rules",
    [
        {"fake_level": 5},
        {"fake_level": 4, "redo_turn": True, "max_turns": 9},
        {"fake_level": 10, "feedback": "hint", "max_turns": None},
        {"max_turns": 4},
        {"rules": "paper", "exam": "items", "fake_level": 5, "max_turns": 9},
        {"fake_level": 5, "threshold": 0.0, "reruns": "match"},
    ],
    ids=str,
)
def test_arrays_are_shaped_as_single_environments_are(mode: AutoresetMode, rules: dict[str, Any], reader):
    width, rng = 6, np.random.default_rng(3)
    batch, loop = shaped_pair(mode, width, **rules)
    batch.reset(seed=4)
    loop.reset(seed=4)
    seen: set[float] = set()
    ends = 0
    for number in range(150):
        masks = batch.action_masks()
        actions = (rng.random(masks.shape) * masks).argmax(axis=1)
        redo = 11  # after four and seven slots
        actions[masks[:, redo] & (rng.random(width) < REPEATING)] = redo
        _, ours, over, *_ = batch.step(actions)
        _, theirs, *_ = loop.step(actions)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12, err_msg=f"step {number}")
        seen.update(np.round(ours, 6).tolist())
        ends += int(over.sum())
        if over.any() and mode == AutoresetMode.DISABLED:
            for env in (batch, loop):
                env.reset(options={"reset_mask": over.copy()})
    assert ends > 3
    assert len(seen) > 8, "terms of every kind"
    assert rules.get("fake_level") is None or max(seen) > 1, "a fake was spotted"
    assert min(seen) < -1 or rules.get("fake_level") == 10, "a true result was doubted"


@pytest.mark.e2e
def test_trees_of_more_subtopics_than_a_word_has_bits_are_shaped(reader):
    big = make_tree([[] for _ in range(70)], [1] * 70, tree_id="big")
    env = VectorRewardShaping(InquiryBatchEnv(2, tree=big, embedder=LETTERS, observation="index"), gamma=1.0)
    env.reset(seed=0)
    total = np.zeros(2)
    for node in range(65):
        for action in (node, 70 + node, 141):
            total += env.step([action] * 2)[1]
    np.testing.assert_allclose(total, 65 / 70, rtol=0, atol=1e-12)
