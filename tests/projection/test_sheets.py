"""Sheets: what they ask, what their answers are worth, and that they say nothing about the truth before the end."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.baselines.answers import shown_items
from inquitree_gym.envs import ProjectionEnv
from inquitree_gym.projection.judges.alignment import level_weights
from inquitree_gym.projection.sheets import beliefs, brier, brier_skill, draw_layout, sheet_score, statements
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.sheets import LETTERS, Sheet
from inquitree_gym.trees.catalogue import builtin_ids
from inquitree_gym.trees.disclosure import LEVELS
from tests.projection.tasks import reply
from tests.projection.test_projection import ORDERS
from tests.tasks import make_task

TASK = make_task()
KINDS = [len(statements(claim)) for claim in TASK.claims]
CHOICES = st.tuples(*(st.none() | st.integers(0, k - 1) for k in KINDS))
TRUE, FALSE = (0, 0, 0), (1, 1, 1)


def played(env: ProjectionEnv, seed: int, sheets: Any) -> list[tuple]:
    """All steps of an episode with these choices on its sheets."""
    env.reset(seed=seed)
    steps = []
    for choices in sheets:
        steps += [env.step("Dough does something."), env.step(reply(env, choices))]
    return steps


# Worth


def test_the_true_claims_are_worth_1_and_contraries_what_makes_random_letters_worth_nothing():
    scores = [sheet_score(TASK.claims, Sheet(choices)) for choices in (TRUE, FALSE, (2, None, 0), (None,) * 3)]
    assert scores == pytest.approx([1, (-1 / 2 - 1 - 1) / 3, (-1 / 2 + 1) / 3, 0])


@pytest.mark.parametrize("task", [TASK, *map(load_task, builtin_ids()[::4])], ids=lambda task: task.id)
def test_all_letters_of_an_item_are_worth_nothing_together(task: Any):
    kinds = [len(statements(claim)) for claim in task.claims]
    for place, k in enumerate(kinds):
        alone = [[option if i == place else None for i in range(len(kinds))] for option in range(k)]
        assert sum(sheet_score(task.claims, Sheet(tuple(each))) for each in alone) == pytest.approx(0, abs=1e-12)
    if len(kinds) < 5:
        every = [sheet_score(task.claims, Sheet(each)) for each in product(*map(range, kinds))]
        assert np.mean(every) == pytest.approx(0, abs=1e-12)


@given(st.sampled_from(ORDERS), st.lists(CHOICES, min_size=3, max_size=3), st.integers(0, 2**64 - 1))
def test_the_return_is_the_weighted_score_of_the_sheets_and_comes_at_the_end(levels, sheets, seed):
    sheets = [choices if any(each is not None for each in choices) else TRUE for choices in sheets[: len(levels)]]
    steps = played(ProjectionEnv(TASK, levels=levels, privileged=True), seed, sheets)
    scores = [step[4]["privileged"]["score"] for step in steps[1::2]]
    assert scores == [sheet_score(TASK.claims, Sheet(choices)) for choices in sheets]
    assert [step[4]["privileged"]["choices"] for step in steps[1::2]] == [list(choices) for choices in sheets]
    assert [step[4]["state"] for step in steps] == ["sheet", "project"] * (len(levels) - 1) + ["sheet", "end"]
    assert [step[4]["level"] for step in steps[::2]] == list(levels)
    assert not any(step[1] for step in steps[:-1])
    assert steps[-1][1:4] == (pytest.approx(level_weights(len(levels)) @ scores), True, False)
    assert all(type(step[1]) is float and -1 <= step[1] <= 1 for step in steps)


def test_right_answers_return_1_and_reversed_ones_the_least():
    assert played(ProjectionEnv(TASK), 4, [TRUE] * 3)[-1][1] == 1
    assert played(ProjectionEnv(TASK), 4, [FALSE] * 3)[-1][1] == pytest.approx(-5 / 6)
    assert played(ProjectionEnv(TASK), 4, [TRUE, FALSE, TRUE])[-1][1] == pytest.approx(1 / 2 - 5 / 12)


def test_random_letters_return_nothing_on_average():
    returns, rng, env = [], np.random.default_rng(0), ProjectionEnv(["paper2", "paper12", TASK])
    for seed in range(400):
        text, _ = env.reset(seed=seed)
        over = False
        while not over:
            text, gain, over, *_ = env.step(
                "\n".join(f"{item.number} {LETTERS[rng.integers(len(item.options))]}" for item in shown_items(text))
                if "Sheet." in text
                else "It rises."
            )
        returns.append(gain)
    assert abs(np.mean(returns)) < 2.6 * np.std(returns) / np.sqrt(len(returns))
    assert np.std(returns) > 0.1


def test_the_brier_score_is_that_of_the_answers_with_a_probability():
    assert brier(Sheet((0, 1, None), (0.9, 0.6, 0.7))) == pytest.approx((0.1**2 + 0.6**2) / 2)
    assert brier(Sheet((0, 1, 0), (None, None, 1.0))) == 0
    assert brier(Sheet((0, 1, 0), (0.5, 0.5, 0.5))) == 0.25
    assert brier(Sheet((0, 1, 0))) is brier(Sheet((0, 1, 0), (None,) * 3)) is None


def test_the_brier_skill_compares_with_chance_on_the_same_answers():
    claims = make_task().claims
    even = [1 / (1 + len(claim.contraries)) for claim in claims]
    choices = (0, 1, None)
    chance = Sheet(choices, tuple(even))
    assert brier_skill(claims, chance) == 0
    assert brier_skill(claims, Sheet(choices, (1.0, 0.0, 0.3))) == 1
    assert brier_skill(claims, Sheet(choices, (0.0, 1.0, None))) < -0.5
    one = Sheet(choices, (0.8, None, None))
    assert brier_skill(claims, one) == pytest.approx(1 - 0.2**2 / (1 - even[0]) ** 2)
    assert brier_skill(claims, Sheet(choices)) is None


def test_a_belief_is_the_probability_of_the_claim_and_what_a_contrary_leaves_is_shared():
    assert beliefs(TASK.claims, Sheet((0, 1, None), (0.9, 0.75, None))) == (0.9, 0.25, None)
    assert beliefs(TASK.claims, Sheet((2, 1, 0), (0.5, None, None))) == (0.25, 0, 1), "three statements, two, two"
    assert beliefs(TASK.claims, Sheet((0, 1, None))) == (1, 0, None)
    even = Sheet(FALSE, tuple(1 / k for k in KINDS))
    assert beliefs(TASK.claims, even) == pytest.approx([1 / k for k in KINDS])


def test_probabilities_are_kept_and_pay_nothing():
    env = ProjectionEnv(TASK, levels=["null"])
    env.reset(seed=1)
    env.step("")
    assert env.step(reply(env, (0, 1, None), (0.25, 1.0, None)))[1] == 0
    assert env.last_transition.sheet.sheet.probabilities == (0.25, 1.0, None)


# Letters


def test_a_sheet_shows_the_claims_and_their_contraries_under_its_letters():
    env = ProjectionEnv(TASK)
    env.reset(seed=7)
    text, *_ = env.step("")
    for claim, item, order in zip(TASK.claims, shown_items(text), env.runtime.layout(env.state), strict=True):
        assert item.options == tuple(statements(claim)[option] for option in order)
    assert TASK.disclosure.outcome not in text
    assert TASK.disclosure.hypothesis not in text


def test_the_order_of_letters_differs_by_seed_and_level_and_says_nothing_about_the_truth():
    orders = [[draw_layout(TASK.claims, seed, level) for level in LEVELS] for seed in range(600)]
    assert [draw_layout(TASK.claims, seed, level) for seed in (0, 1) for level in LEVELS] == [*orders[0], *orders[1]]
    for place, k in enumerate(KINDS):
        at = np.array([[layout[place].index(0) for layout in row] for row in orders])
        for level in range(3):
            counts = np.bincount(at[:, level], minlength=k)
            assert np.abs(counts / 600 - 1 / k).max() < 0.07, "the letter of the claim"
            same = (at[:, level] == at[:, level - 1]).mean()
            assert abs(same - 1 / k) < 0.07, "levels are drawn apart"
        assert abs((at[1:] == at[:-1]).mean() - 1 / k) < 0.07, "seeds are drawn apart"
    assert abs(np.mean([row[0][1][0] == row[0][2][0] for row in orders]) - 0.5) < 0.07, "items are drawn apart"


@given(CHOICES, st.integers(0, 2**32))
def test_nothing_tells_the_truth_before_the_end(choices, seed):
    choices = choices if any(each is not None for each in choices) else TRUE
    right, other = (played(ProjectionEnv(TASK), seed, [each] * 3) for each in (TRUE, choices))
    for (text, *paid, info), (also, *_, info_also) in zip(right, other, strict=True):
        assert (text, info) == (also, info_also), "the answers change nothing that is seen"
        assert {*info} == {"state", "level", "turn"}
        assert info["state"] == "end" or paid[0] == 0
