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
from inquitree_gym.projection.judges.alignment import level_weights
from inquitree_gym.sheets import LETTERS
from tests.inquiry.test_batch import both

WORLDS = "ProjectionBench-synthetic-menu-v0"
KEYWORDS = st.fixed_dictionaries(
    {"claims": st.sampled_from([1, 3, (1, 4)])},
    optional={
        "split": st.just("test"),
        "deducible": st.sampled_from([0.0, 0.4]),
        "levels": st.sampled_from([("procedure",), ("null", "procedure"), ("procedure", "question", "null")]),
    },
)
OPTIONS = st.fixed_dictionaries({}, optional={"levels": st.sampled_from([("question",), ("question", "null")])})


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
    batch, sync = pair(3, mode, **keywords)
    rng = np.random.default_rng(seed)
    both(batch, sync, lambda env: env.reset(seed=seed, options=options and dict(options)), "reset")
    play(batch, sync, 9, rng)
    both(batch, sync, lambda env: env.reset(), "unseeded reset")
    play(batch, sync, 2, rng)
    both(batch, sync, lambda env: env.reset(seed=[4, None, 2**63]), "reset with a list")
    play(batch, sync, 2, rng)


@given(KEYWORDS, st.integers(0, 2**63), st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_letters_return_the_same_as_text_as_menu_in_a_loop_and_as_arrays(keywords, seed, drawn):
    batch, sync = pair(2, AutoresetMode.DISABLED, **keywords)
    texts = [gym.make("ProjectionBench-synthetic-v0", **keywords).unwrapped for _ in range(2)]
    batch.reset(seed=seed)
    sync.reset(seed=seed)
    for i, env in enumerate(texts):
        env.reset(seed=seed + i)
    rng, over = np.random.default_rng(drawn), np.zeros(2, bool)
    while not over.all():
        actions = rng.integers(3, size=batch.action_space.shape)
        for env, letters in zip(texts, actions, strict=True):
            env.step("It rises.")
            taken = letters[: len(env.task.claims)]
            sheet = "\n".join(f"{i} {LETTERS[letter]}" for i, letter in enumerate(taken, 1) if letter < 2)
            *_, gain, over_alone, _, info = env.step(sheet)
            if info["state"] == "sheet":  # nothing at all is asked for once more
                assert sheet == ""
                *_, gain, over_alone, _, _ = env.step(sheet)
            env.returned = gain, over_alone
        (_, rewards, over, _, _), (_, looped, *_) = batch.step(actions), sync.step(actions)
        assert [env.returned[1] for env in texts] == over.tolist()
        np.testing.assert_allclose([env.returned[0] for env in texts], rewards, atol=1e-12)
        np.testing.assert_allclose(looped, rewards, atol=1e-12)


def test_some_environments_start_again_while_the_others_go_on():
    batch, sync = pair(4, AutoresetMode.NEXT_STEP)
    both(batch, sync, lambda env: env.reset(seed=1), "reset")
    play(batch, sync, 1, np.random.default_rng(0))
    mask = np.array([True, False, False, True])
    chosen = {"levels": ("procedure",)}
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
    batch = gym.make_vec(WORLDS, 5_000, vectorization_mode="vector_entry_point", autoreset_mode="Disabled")
    batch.reset(seed=0)
    for level in range(3):
        rows, rewards, over, _, infos = batch.step(np.zeros((5_000, 5), np.int64))
        assert over.all() == (level == 2)
        assert rewards.any() == (level == 2)
    np.testing.assert_allclose(rewards, batch.unwrapped.scores @ level_weights(3))
    assert abs(rewards.mean()) < 3 * rewards.std() / np.sqrt(5_000), "the letter A is worth nothing on average"
    assert set(np.unique(batch.unwrapped.signs)) == {-1, 1}
    assert rows.shape == (5_000, batch.single_observation_space.shape[0])
    assert (infos["turn"] == 3).all()
    assert set(infos) - {f"_{name}" for name in infos} == {"state", "level", "turn", "action_mask"}


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
