"""`FreeText`: what it holds, what it draws, and how it travels through shared memory."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import (
    batch_space,
    concatenate,
    create_shared_memory,
    iterate,
    read_from_shared_memory,
    write_to_shared_memory,
)
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym import FreeText
from inquitree_gym.envs.spaces import SAMPLE_WORDS, WORDS

ANY_TEXT = st.text(st.characters(), max_size=40)
LENGTH = 40


@given(ANY_TEXT, st.integers(1, LENGTH))
def test_it_holds_every_string_that_is_short_enough(text: str, longest: int):
    assert (text in FreeText(longest)) == (len(text) <= longest)
    assert np.str_(text) in FreeText(LENGTH)


@pytest.mark.parametrize("value", [None, b"text", 3, ["text"], ("t",), np.array("text"), float("nan")])
def test_it_holds_nothing_but_strings(value: object):
    assert value not in FreeText(LENGTH)


def test_the_length_counts_characters_and_not_bytes():
    assert "🧠" * LENGTH in FreeText(LENGTH)
    assert "🧠" * LENGTH + "!" not in FreeText(LENGTH)


def test_samples_are_readable_words_and_members():
    space = FreeText(500, seed=1)
    samples = [space.sample() for _ in range(300)]
    assert all(sample in space and set(sample.split(" ")) <= set(WORDS) for sample in samples)
    assert {len(sample.split()) for sample in samples} == set(range(SAMPLE_WORDS[0], SAMPLE_WORDS[1] + 1))
    assert len(set(samples)) == len(samples)


def test_samples_are_cut_to_the_length():
    space = FreeText(7, seed=1)
    assert {len(space.sample()) for _ in range(50)} == {7}


def test_samples_follow_the_seed():
    one, other = FreeText(LENGTH, seed=3), FreeText(LENGTH)
    other.seed(3)
    drawn = [one.sample() for _ in range(5)]
    assert [other.sample() for _ in range(5)] == drawn
    assert [FreeText(LENGTH, seed=4).sample() for _ in range(5)] != drawn
    assert [FreeText(LENGTH, seed=np.random.default_rng(8)).sample() for _ in range(2)] == [
        FreeText(LENGTH, seed=np.random.default_rng(8)).sample() for _ in range(2)
    ]


def test_samples_do_not_depend_on_the_hash_seed():
    code = (
        "from inquitree_gym import FreeText; s = FreeText(90, seed=5); print([s.sample() for _ in range(9)], hash(s))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout.rpartition(" ")[0]
        for seed in ("1", "2")
    }
    space = FreeText(90, seed=5)
    assert printed == {str([space.sample() for _ in range(9)])}


@pytest.mark.parametrize("given_one", [{"mask": (3, None)}, {"probability": (None, np.ones(100))}, {"mask": ()}])
def test_masks_are_refused(given_one: dict):
    with pytest.raises(ValueError, match="neither mask nor probability; pass None"):
        FreeText(LENGTH).sample(**given_one)


def test_equality_and_hash_follow_the_length_alone():
    used = FreeText(LENGTH, seed=1)
    used.sample()
    assert used == FreeText(LENGTH, seed=2)
    assert hash(used) == hash(FreeText(LENGTH))
    assert used != FreeText(LENGTH + 1)
    assert used != spaces.Text(LENGTH)
    assert len({used, FreeText(LENGTH), FreeText(LENGTH + 1)}) == 2


def test_the_representation_makes_the_space_again():
    assert repr(FreeText(123)) == "FreeText(123)"
    assert eval(repr(FreeText(123))) == FreeText(123)


@pytest.mark.parametrize(
    "how", [lambda space: pickle.loads(pickle.dumps(space)), copy.deepcopy], ids=["pickle", "copy"]
)
def test_a_copy_samples_on_from_where_it_was_taken(how):
    space = FreeText(LENGTH, seed=9)
    space.sample()
    other = how(space)
    assert other == space
    assert [other.sample() for _ in range(3)] == [space.sample() for _ in range(3)]


def test_a_pickle_stays_small_whatever_the_length():
    assert len(pickle.dumps(FreeText(10**9, seed=1))) < 20_000


def test_json_brings_any_text_back():
    space, texts = FreeText(LENGTH), ["", "🧠", "a\0b", "\ud800", "שלום"]
    assert space.from_jsonable(space.to_jsonable(texts)) == texts


def test_it_is_a_text_space_of_gymnasium():
    space = FreeText(LENGTH)
    assert isinstance(space, spaces.Text)
    assert (space.min_length, space.max_length) == (0, LENGTH)
    assert isinstance(gym.make("InquiTree-paper8-v0").action_space, FreeText)


def test_many_are_batched_into_a_tuple_with_samples_of_their_own():
    batch = batch_space(FreeText(LENGTH, seed=1), 3)
    assert len(set(batch.sample())) == 3
    texts = ("🧠", "", "a\0")
    assert texts in batch
    assert tuple(iterate(batch, texts)) == texts
    assert concatenate(FreeText(LENGTH), texts, None) == texts


@given(st.lists(st.tuples(st.integers(0, 2), ANY_TEXT), max_size=8))
def test_shared_memory_brings_every_text_back(writes: list[tuple[int, str]]):
    space = FreeText(LENGTH)
    memory = create_shared_memory(space, n=3)
    view = read_from_shared_memory(space, memory, n=3)
    expected = ["", "", ""]
    for place, text in writes:
        write_to_shared_memory(space, place, text, memory)
        expected[place] = text
        assert copy.deepcopy(view) == tuple(expected)
    assert (list(view), len(view), view[-1], view[1:]) == (expected, 3, expected[-1], tuple(expected[1:]))


def test_a_view_of_shared_memory_is_live_and_its_copy_is_not():
    space = FreeText(LENGTH)
    memory = create_shared_memory(space, n=2)
    view = read_from_shared_memory(space, memory, n=2)
    write_to_shared_memory(space, 1, "a long text before", memory)
    kept = copy.deepcopy(view)
    write_to_shared_memory(space, 1, "short", memory)
    assert (tuple(view), kept) == (("", "short"), ("", "a long text before"))


def test_a_tuple_with_free_text_travels_as_well():
    space = spaces.Dict({"text": FreeText(LENGTH), "turn": spaces.Discrete(9)})
    memory = create_shared_memory(space, n=2)
    view = read_from_shared_memory(space, memory, n=2)
    write_to_shared_memory(space, 1, {"text": "🧠\0", "turn": 4}, memory)
    kept = copy.deepcopy(view)
    assert kept["text"] == ("", "🧠\0")
    assert kept["turn"].tolist() == [0, 4]
