"""The discrete view of projections: options, disclosed signs, rewards by the formula, and chance without signs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.projection.judges.alignment import level_weights, projection_score
from inquitree_gym.projection.judges.chance import chance_f1
from inquitree_gym.projection.judges.direction import claim_direction
from inquitree_gym.projection.menu import CELL, ProjectionMenuEnv
from inquitree_gym.projection.options import CONTRARY, ITSELF, NOTHING
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.trees import WorldSettings, synthetic_task
from inquitree_gym.trees.catalogue import builtin_ids

WORLDS = "ProjectionBench-synthetic-menu-v0"
SHARED = {"vectorization_mode": "vector_entry_point", "autoreset_mode": "SameStep", "infos": False}
Policy = Callable[[dict[str, np.ndarray], np.random.Generator], np.ndarray]
"""From the parts of the observations of many environments to one option per slot."""


def made(**keywords: Any) -> ProjectionMenuEnv:
    env = gym.make(WORLDS, **keywords).unwrapped
    assert isinstance(env, ProjectionMenuEnv)
    return env


def coin(parts: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """State every claim, in a random direction."""
    return (rng.random(parts["nothing"].shape) - 2 * parts["nothing"]).argmax(axis=-1)


def optimist(parts: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """State that everything rises."""
    return parts["directions"].argmax(axis=-1)


def anything(parts: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    return rng.integers(3, size=parts["claims"].shape)


def solver(parts: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """State the direction that is given away, and otherwise a random one."""
    match = (parts["directions"] * parts["given"][..., None]) - 2 * parts["nothing"]
    return (match + 0.5 * rng.random(match.shape)).argmax(axis=-1)


def silent(parts: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    return parts["nothing"].argmax(axis=-1)


def f1_by_level(policy: Policy, episodes: int = 1_000, **keywords: Any) -> np.ndarray:
    """The mean F1 at each level over the training worlds 0, 1, …; rewards are w·F1."""
    env = gym.make_vec(WORLDS, episodes, **SHARED, **keywords)
    rows, _ = env.reset(seed=0)
    rng, found = np.random.default_rng(1), []
    for weight in level_weights(3):
        rows, rewards, *_ = env.step(policy(env.unwrapped.menu.features.split(rows), rng))
        found.append(rewards.mean() / weight)
    return np.array(found)


@pytest.mark.parametrize("claims", [4, 5, (4, 6)])
@pytest.mark.parametrize("policy", [coin, optimist, solver])
def test_nobody_beats_chance_where_no_sign_can_be_known(policy, claims):
    assert f1_by_level(policy, deducible=0, claims=claims) == pytest.approx(chance_f1(5), abs=0.02)


@pytest.mark.parametrize(("claims", "deducible", "expected"), [(5, 0, chance_f1(5, 1 / 3, 1 / 3)), (1, 1, 1 / 3)])
def test_an_agent_that_takes_any_option_earns_the_chance_that_was_computed(claims, deducible, expected):
    assert f1_by_level(anything, deducible=deducible, claims=claims) == pytest.approx(expected, abs=0.03)


def test_signs_that_can_be_deduced_are_worth_their_share_from_the_procedure_on():
    for share in (1.0, 0.6):
        found = f1_by_level(solver, deducible=share)
        assert found[:2] == pytest.approx(0.5, abs=0.02)
        assert found[2] == pytest.approx(share + (1 - share) / 2, abs=0.01)
    assert f1_by_level(silent) == pytest.approx(0)


def test_what_is_given_away_is_shown_from_the_procedure_on_and_is_true():
    env = made(deducible=0.5, claims=6, levels=("question", "procedure", "null"))
    rows, info = env.reset(seed=12)
    shown, levels = [], []
    for _ in range(3):
        parts = env.menu.features.split(rows)
        shown.append(parts["given"])
        levels.append((info["level"], int(parts["level"].argmax())))
        rows, _, over, _, info = env.step(np.zeros(6, int))
    signs = np.array([1 if claim.relation == "increases" else -1 for claim in env.task.claims])
    assert levels == [("question", 0), ("procedure", 2), ("null", 1)]
    assert not shown[0].any()
    np.testing.assert_array_equal(shown[1], shown[2])
    assert (shown[1] != 0).sum() == 3
    assert ((shown[1] == signs) | (shown[1] == 0)).all()
    assert over
    assert not env.menu.features.split(rows)["level"].any()
    assert (info["state"], info["turn"]) == ("end", 3)


@given(st.integers(0, 2**63), st.data())
@settings(max_examples=40, deadline=None)
def test_rewards_are_the_formula_on_the_texts_that_were_chosen(seed, data):
    levels = data.draw(st.sampled_from([("question", "null", "procedure"), ("procedure",), ("null", "question")]))
    reward = data.draw(st.sampled_from(["each", "end"]))
    split = data.draw(st.sampled_from(["train", "test"]))
    env = made(levels=levels, reward=reward, claims=(1, 4), privileged=True, size=5, split=split)
    rows, _ = env.reset(seed=seed)
    stated = env.menu.features.split(rows)["directions"].tolist()
    for claim, options, directions in zip(env.task.claims, env.options, stated, strict=False):
        assert [claim_direction(claim, text) for text in options] == directions
    truths = [(claim.text, claim.contraries[0]) for claim in env.task.claims]
    paid, scores = [], []
    for _ in levels:
        action = np.array(data.draw(st.lists(st.integers(0, 2), min_size=5, max_size=5)))
        lines = [options[number] for options, number in zip(env.options, action, strict=False)]
        assert env.projection(action) == "\n".join(filter(None, lines))
        pairs = [
            {truth: 1.0, contrary: -1.0, "": np.nan}[line]
            for line, (truth, contrary) in zip(lines, truths, strict=True)
        ]
        _, gain, over, truncated, info = env.step(action)
        paid.append(gain)
        scores.append(float(projection_score(np.array(pairs), np.zeros(0)).f1))
        assert info["privileged"]["f1"] == scores[-1]
        assert info["privileged"]["analogous"] == [line or None for line in lines]
    assert over
    assert not truncated
    earned = level_weights(len(levels)) * scores
    assert paid == pytest.approx(earned.tolist() if reward == "each" else [0.0] * (len(levels) - 1) + [earned.sum()])


def test_the_options_are_itself_a_contrary_and_nothing_in_every_order():
    numbers, env = [], made(claims=3)
    for seed in range(60):
        env.reset(seed=seed)
        for options, claim in zip(env.options, env.task.claims, strict=True):
            known = {claim.text: ITSELF, claim.contraries[0]: CONTRARY, "": NOTHING}
            numbers.append(tuple(known[option] for option in options))
    counts = [numbers.count(order) for order in set(numbers)]
    assert len(counts) == 6
    assert min(counts) > 15


def test_papers_have_a_discrete_view_with_the_directions_that_their_words_state():
    env = gym.make("ProjectionBench-menu-v0").unwrapped
    tasks = [load_task(name) for name in builtin_ids()]
    assert env.menu.slots == max(len(task.claims) for task in tasks)
    seen = set()
    for seed in range(60):
        rows, _ = env.reset(seed=seed)
        seen.add(env.task.id)
        parts = env.menu.features.split(rows)
        for k, claim in enumerate(env.task.claims):
            stated = {text: claim_direction(claim, text) for text in (claim.text, claim.contraries[0])} | {"": 0}
            assert parts["directions"][k].tolist() == [stated[option] for option in env.options[k]]
        assert parts["claims"].sum() == len(env.task.claims)
        for _ in range(3):
            rows, *_ = env.step(np.zeros(env.menu.slots, int))
            assert not env.menu.features.split(rows)["given"].any()
    assert len(seen) > 12
    one = gym.make("ProjectionBench-paper12-menu-v0", size=9).unwrapped
    one.reset(seed=1)
    assert (one.task.id, one.menu.slots) == ("paper12", 9)


def test_empty_slots_are_masked_and_have_no_effect():
    env = made(claims=2, size=4, privileged=True)
    _, info = env.reset(seed=3)
    assert info["action_mask"].tolist() == [[1, 1, 1], [1, 1, 1], [1, 0, 0], [1, 0, 0]]
    np.testing.assert_array_equal(env.action_masks(), info["action_mask"].reshape(-1).astype(bool))
    env.action_space.seed(2)
    for _ in range(20):
        assert env.action_space.sample(mask=tuple(info["action_mask"]))[2:].tolist() == [0, 0]
    rewards = set()
    for last in ([0, 0], [1, 2]):
        env.reset(seed=3)
        rewards.add(env.step([0, 1, *last])[1])
    assert len(rewards) == 1


def test_a_picture_shows_level_options_and_what_is_given_away():
    env = made(claims=2, size=3, render_mode="rgb_array")
    rows, _ = env.reset(seed=3)
    blue, orange, grey, black, white = (0, 114, 178), (213, 94, 0), (204,) * 3, (0,) * 3, (255,) * 3
    colours = {1: blue, -1: orange, 0: grey}
    for level in range(3):
        parts = env.menu.features.split(rows)
        cells = env.render()[CELL // 2 :: CELL, CELL // 2 :: CELL]
        assert [tuple(cell) for cell in cells[0, 1:].tolist()] == [black if k == level else white for k in range(3)]
        for k in range(2):
            shown = [colours[int(sign)] for sign in (parts["given"][k], *parts["directions"][k])]
            assert [tuple(cell) for cell in cells[1 + k].tolist()] == shown
        assert (cells[3] == white).all()
        rows, *_ = env.step([0, 0, 0])
    assert not (env.render() == 0).all(axis=-1).any(), "no level is open at the end"


@pytest.mark.parametrize("keywords", [{}, {"claims": (1, 3), "size": 4, "levels": ["procedure"], "reward": "end"}])
def test_gymnasium_finds_no_fault_and_a_render_shows_what_is_given_away(keywords):
    env = made(render_mode="ansi", **keywords)
    check_env(env)
    env.reset(seed=3, options={"levels": ["procedure"]})
    text = env.render()
    assert {claim.text in text for claim in env.task.claims} == {True}
    assert [line for line in text.splitlines() if line in ("rises:", "falls:")] == [
        "rises:" if claim.relation == "increases" else "falls:" for claim in env.task.claims
    ]


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"deducible": -1}, "deducible must be a number from 0 to 1"),
        ({"claims": "many"}, "claims must be an integer"),
        ({"claims": (3, 7), "size": 6}, "a task has 7 claims, and the menu has 6 slots for them; make it with size=7"),
        ({"size": True}, "size must be the number of slots for claims, an integer from 1, got True"),
        ({"split": "dev"}, "split must be one of"),
        ({"levels": ["question", "question"]}, "levels must be one or more of"),
        ({"reward": "late"}, "reward must be one of"),
        ({"deducable": 1}, "unknown option 'deducable'.*deducible"),
        ({"render_mode": "human"}, "render_mode must be one of"),
    ],
)
def test_wrong_keywords_are_named(keywords, said):
    with pytest.raises(OptionError, match=said):
        made(**keywords)


def test_options_of_a_reset_hold_for_one_episode_and_wrong_ones_are_named():
    env = made(size=6)
    env.reset(seed=5, options={"task": "paper12", "levels": ["procedure"], "reward": "end"})
    assert env.task.id == "paper12"
    *_, over, _, info = env.step([0] * 6)
    assert (over, info["level"]) == (True, "procedure")
    env.reset()
    assert env.task.id.startswith("world-")
    with pytest.raises(OptionError, match="unknown option 'form'"):
        env.reset(options={"form": "claims"})
    with pytest.raises(OptionError, match="make it with size=7 or more"):
        env.reset(options={"task": synthetic_task(0, WorldSettings(claims=7))})
    assert [env.step([0] * 6)[2] for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ([0, 1, 3, 0, 0], "an option must lie in 0 to 2, got 3"),
        ([0, -1, 0, 0, 0], "an option must lie in 0 to 2, got -1"),
        ([0, 1], r"integers of shape \(5,\), got int64 of shape \(2,\)"),
        ([0.0] * 5, r"integers of shape \(5,\), got float64 of shape \(5,\)"),
        ([True] * 5, r"integers of shape \(5,\), got bool of shape \(5,\)"),
        ([[0], [0, 1]], r"integers of shape \(5,\)"),
        ("up", r"integers of shape \(5,\)"),
    ],
)
def test_wrong_actions_are_named_and_take_no_turn(action, said):
    env = made()
    env.reset(seed=1)
    with pytest.raises(ActionError, match=said):
        env.step(action)
    assert env.step([0] * 5)[4]["turn"] == 1


def test_a_step_needs_an_episode():
    env = made(levels=["null"])
    with pytest.raises(ResetNeeded, match=r"call reset\(\) first"):
        env.step([0] * 5)
    with pytest.raises(ResetNeeded, match=r"call reset\(\) first"):
        _ = env.task
    env.reset(seed=0)
    env.step([0] * 5)
    with pytest.raises(ResetNeeded, match="the episode is over"):
        env.step([0] * 5)
    env.close()
    for call in (env.reset, lambda: env.step([0] * 5)):
        with pytest.raises(ClosedEnvironmentError, match="closed"):
            call()
