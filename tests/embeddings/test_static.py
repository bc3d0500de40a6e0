"""A static model: fast, deterministic, and deaf to its neighbours."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.embeddings import StaticEmbedder
from tests.embeddings.conftest import STATIC_TEXTS, STATIC_THRESHOLD

pytestmark = pytest.mark.weights


@pytest.fixture(scope="session")
def embedder(distilled: Path) -> StaticEmbedder:
    return StaticEmbedder(str(distilled))


@settings(max_examples=100)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8"), max_size=400) | st.sampled_from(STATIC_TEXTS), min_size=1, max_size=9
    )
)
def test_a_row_has_the_same_bytes_whatever_its_neighbours(embedder: StaticEmbedder, texts: list[str]):
    alone = [embedder.embed([text])[0].tobytes() for text in texts]
    assert [row.tobytes() for row in embedder.embed(texts)] == alone
    assert [row.tobytes() for row in embedder.embed(texts[::-1])] == alone[::-1]


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=60), max_size=4))
def test_rows_are_float32_of_unit_length_or_zero_where_no_piece_is_known(embedder: StaticEmbedder, texts: list[str]):
    vectors = embedder.embed(texts)
    lengths = np.linalg.norm(vectors, axis=1)
    assert (vectors.dtype, vectors.shape) == (np.float32, (len(texts), 384))
    assert all(abs(length - 1) < 1e-5 or length == 0 for length in lengths)


def test_what_comes_after_the_window_does_not_count(embedder: StaticEmbedder):
    long = "the time of the year " * 100
    whole, more = embedder.embed([long, long + "in a city"])
    assert whole.tobytes() == more.tobytes()


def test_an_environment_takes_it_by_name_with_its_own_threshold(distilled: Path):
    env = gym.make("InquiTree-paper17-v0", embedder=f"static:{distilled}")
    assert env.unwrapped.rules.threshold == STATIC_THRESHOLD
    env.reset(seed=0)
    assert env.step(env.unwrapped.tree.subtopics[0].text)[4]["accepted"]
    env.reset(seed=0)
    assert not env.step("bread rises in a hot oven")[4]["accepted"]
