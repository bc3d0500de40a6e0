"""Thousands of projections as arrays take every turn as `SyncVectorEnv` over the single menu environment takes it."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.projection.arrays import ProjectionBatchEnv
from inquitree_gym.projection.judges.chance import chance_f1
from tests.inquiry.test_batch import both

WORLDS = "ProjectionBench-synthetic-menu-v0"
KEYWORDS = st.fixed_dictionaries(
    {"claims": st.sampled_from([1, 3, (1, 4)])},
    optional={
        "split": st.just("test"),
        "deducible": st.sampled_from([0.0, 0.4]),
        "levels": st.sampled_from([("procedure",), ("null", "procedure"), ("procedure", "question", "null")]),
        "reward": st.just("end"),
        "size": st.sampled_from([6, 9]),
    },
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "levels": st.sampled_from([("question",), ("question", "null", "procedure")]),
        "reward": st.sampled_from(["each", "end"]),
        "task": st.sampled_from(["paper12", ["paper1", "paper5"]]),
    },
)


def pair(width: int, mode: AutoresetMode, name: str = WORLDS, **keywords: Any) -> tuple[VectorEnv, SyncVectorEnv]:
    """The batch environment, and Gymnasium's loop over single ones."""
    batch = gym.make_vec(name, width, vectorization_mode="vector_entry_point", autoreset_mode=mode, **keywords)
    assert isinstance(batch, ProjectionBatchEnv)
    # Bare environments, as gym.make would wrap each one in checks that a vector environment does not make.
    sync = SyncVectorEnv([lambda: gym.make(name, **keywords).unwrapped] * width, autoreset_mode=mode)
    assert batch.single_action_space == sync.single_action_space
    assert batch.single_observation_space == sync.single_observation_space
    return batch, sync


def play(batch: VectorEnv, sync: VectorEnv, turns: int, rng: np.random.Generator) -> None:
    """Take the same turns in both, and start what is over again where nothing else does."""
    disabled = sync.metadata["autoreset_mode"] == AutoresetMode.DISABLED
    for turn in range(turns):
        actions = rng.integers(3, size=batch.action_space.shape)
        *_, over, _, _ = both(batch, sync, lambda env, taken=actions: env.step(taken), f"turn {turn}")
        if disabled and over.any():
            # A copy for each, as Gymnasium takes the mask out of the options that it is given.
            both(batch, sync, lambda env, mask=over: env.reset(options={"reset_mask": mask.copy()}), f"reset {turn}")


@given(KEYWORDS, st.sampled_from(list(AutoresetMode)), st.integers(0, 2**40), st.none() | OPTIONS)
@settings(max_examples=25, deadline=None)
def test_arrays_play_as_single_environments_do(keywords, mode, seed, options):
    if options and "task" in options:
        keywords = {**keywords, "size": 9}
    batch, sync = pair(3, mode, **keywords)
    rng = np.random.default_rng(seed)
    both(batch, sync, lambda env: env.reset(seed=seed, options=options and dict(options)), "reset")
    play(batch, sync, 9, rng)
    both(batch, sync, lambda env: env.reset(), "unseeded reset")
    play(batch, sync, 2, rng)
    both(batch, sync, lambda env: env.reset(seed=[4, None, 2**63]), "reset with a list")
    play(batch, sync, 2, rng)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_papers_play_as_arrays_too(mode):
    batch, sync = pair(5, mode, "ProjectionBench-menu-v0")
    both(batch, sync, lambda env: env.reset(seed=1), "reset")
    play(batch, sync, 8, np.random.default_rng(0))


def test_some_environments_start_again_while_the_others_go_on():
    batch, sync = pair(4, AutoresetMode.NEXT_STEP, size=6)
    both(batch, sync, lambda env: env.reset(seed=1), "reset")
    play(batch, sync, 1, np.random.default_rng(0))
    mask = np.array([True, False, False, True])
    chosen = {"task": "paper12", "levels": ("procedure",)}
    both(
        batch,
        sync,
        lambda env: env.reset(seed=[8, None, None, 9], options={"reset_mask": mask.copy(), **chosen}),
        "some",
    )
    play(batch, sync, 7, np.random.default_rng(1))


def test_infos_are_left_out_on_request():
    batch = gym.make_vec(WORLDS, 2, vectorization_mode="vector_entry_point", autoreset_mode="SameStep", infos=False)
    assert batch.reset(seed=1)[1] == {}
    actions = np.zeros((2, 5), np.int64)
    assert [set(batch.step(actions)[4]) for _ in range(3)] == [set(), set(), {"final_obs", "_final_obs"}]
    assert batch.action_masks().shape == (2, 15)
    assert batch.action_masks().all()


def test_thousands_of_episodes_are_played_and_scored_in_three_steps():
    batch = gym.make_vec(WORLDS, 5_000, vectorization_mode="vector_entry_point", autoreset_mode="SameStep")
    batch.reset(seed=0)
    total = np.zeros(5_000)
    for _ in range(3):
        rows, rewards, over, _, infos = batch.step(np.zeros((5_000, 5), np.int64))
        total += rewards
    assert over.all()
    assert total.mean() == pytest.approx(chance_f1(5, 1 / 3, 1 / 3), abs=0.015), "shuffled options"
    assert rows.shape == (5_000, batch.single_observation_space.shape[0])
    assert (infos["final_info"]["turn"] == 3).all()


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"num_envs": 0}, "num_envs must be an integer from 1"),
        ({"autoreset_mode": "never"}, "autoreset_mode must be one of"),
        ({"infoz": False}, "unknown option 'infoz'.*infos"),
        ({"render_mode": "ansi"}, "unknown option 'render_mode'"),
    ],
)
def test_wrong_keywords_are_named(keywords, said):
    with pytest.raises(OptionError, match=said):
        gym.make_vec(WORLDS, **{"num_envs": 2, "vectorization_mode": "vector_entry_point", **keywords})


def test_wrong_calls_are_named():
    batch = gym.make_vec(WORLDS, 2, vectorization_mode="vector_entry_point", autoreset_mode="Disabled")
    none = np.zeros((2, 5), np.int64)
    with pytest.raises(ResetNeeded, match="call reset"):
        batch.step(none)
    with pytest.raises(ResetNeeded, match="without a mask"):
        batch.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(OptionError, match="for each of the 2 environments"):
        batch.reset(seed=[1])
    batch.reset(seed=1)
    with pytest.raises(ActionError, match=r"shape \(2, 5\), got int64 of shape \(5,\)"):
        batch.step(none[0])
    with pytest.raises(ActionError, match="0 to 2, got 3"):
        batch.step(none + 3)
    for _ in range(3):
        batch.step(none)
    with pytest.raises(ResetNeeded, match="the episode of environment 0 is over"):
        batch.step(none)
    batch.close()
    with pytest.raises(ClosedEnvironmentError, match="closed"):
        batch.reset()
