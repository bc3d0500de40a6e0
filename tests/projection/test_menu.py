"""The discrete view of projections: statements by letters, disclosed signs, scores of sheets, chance without signs."""

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
from inquitree_gym.projection.judges.alignment import level_weights
from inquitree_gym.projection.menu import CELL, ProjectionMenuEnv
from inquitree_gym.projection.sheets import draw_layout, sheet_score
from inquitree_gym.sheets import Sheet
from inquitree_gym.trees.disclosure import LEVELS
from tests.projection.test_projection import ORDERS

WORLDS = "ProjectionBench-synthetic-menu-v0"
SHARED = {"vectorization_mode": "vector_entry_point", "autoreset_mode": "Disabled", "infos": False}
Policy = Callable[[dict[str, np.ndarray], np.random.Generator], np.ndarray]
"""From the parts of the observations of many environments to one option per slot."""


def made(**keywords: Any) -> ProjectionMenuEnv:
    env = gym.make(WORLDS, **keywords).unwrapped
    assert isinstance(env, ProjectionMenuEnv)
    return env


def coin(parts: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    return rng.integers(2, size=parts["claims"].shape)


def optimist(parts: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """State that everything rises."""
    return parts["directions"].argmax(axis=-1)


def anything(parts: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    return rng.integers(3, size=parts["claims"].shape)


def solver(parts: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """State the direction that is given away, and otherwise a random one."""
    match = parts["directions"] * parts["given"][..., None]
    return (match + 0.5 * rng.random(match.shape)).argmax(axis=-1)


def first(parts: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    return np.zeros(parts["claims"].shape, int)


def score_by_level(policy: Policy, episodes: int = 2_000, **keywords: Any) -> tuple[np.ndarray, np.ndarray]:
    """The mean score at each level over the training worlds 0, 1, …, and its standard error."""
    env = gym.make_vec(WORLDS, episodes, **SHARED, **keywords)
    rows, _ = env.reset(seed=0)
    rng = np.random.default_rng(1)
    for _ in LEVELS:
        rows, rewards, *_ = env.step(policy(env.unwrapped.menu.features.split(rows), rng))
    scores = env.unwrapped.scores
    np.testing.assert_allclose(rewards, scores @ level_weights(3))
    return scores.mean(axis=0), scores.std(axis=0) / np.sqrt(episodes)


@pytest.mark.parametrize("claims", [1, 5, (4, 6)])
@pytest.mark.parametrize("policy", [coin, optimist, anything, first, solver])
def test_nobody_beats_chance_where_no_sign_can_be_known(policy, claims):
    means, errors = score_by_level(policy, deducible=0, claims=claims)
    assert (np.abs(means) < 3.5 * errors).all()


def test_signs_that_can_be_deduced_are_worth_their_share_from_the_procedure_on():
    for share in (1.0, 0.6):
        means, _ = score_by_level(solver, deducible=share)
        assert means[:2] == pytest.approx(0, abs=0.04)
        assert means[2] == pytest.approx(share, abs=0.02)
    assert score_by_level(lambda parts, rng: first(parts, rng) + 2)[0].tolist() == [0, 0, 0]


def test_what_is_given_away_is_shown_from_the_procedure_on_and_is_true():
    env = made(deducible=0.5, claims=6, levels=("question", "procedure", "null"))
    rows, info = env.reset(seed=12)
    shown, levels = [], []
    for _ in range(3):
        parts = env.menu.features.split(rows)
        shown.append(parts["given"])
        levels.append((info["level"], int(parts["level"].argmax()), info["state"]))
        rows, _, over, _, info = env.step(np.zeros(6, int))
    signs = np.array([1 if claim.relation == "increases" else -1 for claim in env.task.claims])
    assert levels == [("question", 0, "sheet"), ("procedure", 2, "sheet"), ("null", 1, "sheet")]
    assert not shown[0].any()
    np.testing.assert_array_equal(shown[1], shown[2])
    assert (shown[1] != 0).sum() == 3
    assert ((shown[1] == signs) | (shown[1] == 0)).all()
    assert over
    assert not env.menu.features.split(rows)["level"].any()
    assert (info["state"], info["turn"]) == ("end", 3)


@given(st.integers(0, 2**63), st.sampled_from(ORDERS), st.sampled_from(["train", "test"]), st.data())
@settings(max_examples=40, deadline=None)
def test_options_are_the_letters_of_the_sheets_and_pay_the_same(seed, levels, split, data):
    env = made(levels=levels, claims=(1, 4), privileged=True, split=split)
    rows, _ = env.reset(seed=seed)
    scores: list[float] = []
    for level in levels:
        layout = draw_layout(env.task.claims, seed, level)
        directions = env.menu.features.split(rows)["directions"]
        for claim, order, options, stated in zip(env.task.claims, layout, env.options, directions, strict=False):
            assert options == tuple((claim.text, *claim.contraries)[option] for option in order)
            assert stated.tolist() == [1 if "increases" in text else -1 for text in options]
        action = np.array(data.draw(st.lists(st.integers(0, 2), min_size=4, max_size=4)))
        choices = tuple((*order, None)[letter] for order, letter in zip(layout, action, strict=False))
        rows, gain, over, truncated, info = env.step(action)
        scores.append(sheet_score(env.task.claims, Sheet(choices)))
        assert info["privileged"]["scores"] == pytest.approx(scores)
        assert (over, truncated) == (len(scores) == len(levels), False)
        assert gain == (pytest.approx(level_weights(len(levels)) @ scores) if over else 0)


def test_empty_slots_leave_only_nothing_open_and_have_no_effect():
    env = made(claims=(1, 4), privileged=True)
    seed = next(seed for seed in range(20) if env.reset(seed=seed) and len(env.task.claims) == 2)
    _, info = env.reset(seed=seed)
    assert info["action_mask"].tolist() == [[1, 1, 1], [1, 1, 1], [0, 0, 1], [0, 0, 1]]
    np.testing.assert_array_equal(env.action_masks(), info["action_mask"].reshape(-1).astype(bool))
    env.action_space.seed(2)
    for _ in range(20):
        assert env.action_space.sample(mask=tuple(info["action_mask"]))[2:].tolist() == [2, 2]
    scores = set()
    for last in ([2, 2], [0, 1]):
        env.reset(seed=seed)
        scores.update(env.step([0, 2, *last])[4]["privileged"]["scores"])
    assert len(scores) == 1


def test_a_picture_shows_level_options_and_what_is_given_away():
    env = made(claims=2, render_mode="rgb_array")
    rows, _ = env.reset(seed=3)
    blue, orange, grey, black, white = (0, 114, 178), (213, 94, 0), (204,) * 3, (0,) * 3, (255,) * 3
    colours = {1: blue, -1: orange, 0: grey}
    for level in range(3):
        parts = env.menu.features.split(rows)
        cells = env.render()[CELL // 2 :: CELL, CELL // 2 :: CELL]
        assert [tuple(cell) for cell in cells[0, 1:].tolist()] == [black if k == level else white for k in range(3)]
        for k in range(2):
            shown = [colours[int(sign)] for sign in (parts["given"][k], *parts["directions"][k])]
            assert [tuple(cell) for cell in cells[1 + k].tolist()] == [*shown, white]
        rows, *_ = env.step([0, 0])
    assert not (env.render() == 0).all(axis=-1).any(), "no level is open at the end"


@pytest.mark.parametrize("keywords", [{}, {"claims": (1, 3), "levels": ["procedure"]}])
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
        ({"deducible": -1}, "deducible must be a number from 0 to 1"), ({"claims": "many"}, "claims must be an int"),
        ({"split": "dev"}, "split must be one of"), ({"levels": ["question", "question"]}, "levels must be one or"),
        ({"deducable": 1}, "unknown option 'deducable'.*deducible"), ({"size": 9}, "unknown option 'size'"),
        ({"reward": "sheet"}, "unknown option 'reward'"), ({"render_mode": "human"}, "render_mode must be one of"),
    ],
)  # fmt: skip
def test_wrong_keywords_are_named(keywords, said):
    with pytest.raises(OptionError, match=said):
        made(**keywords)


def test_options_of_a_reset_hold_for_one_episode_and_wrong_ones_are_named():
    env = made()
    env.reset(seed=5, options={"levels": ["procedure"]})
    *_, over, _, info = env.step([0] * 5)
    assert (over, info["level"]) == (True, "procedure")
    env.reset()
    for name in ("form", "reward", "task"):
        with pytest.raises(OptionError, match=f"unknown option '{name}'"):
            env.reset(options={name: "claims"})
    assert [env.step([0] * 5)[2] for _ in range(3)] == [False, False, True]


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
