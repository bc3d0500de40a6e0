"""Real weights for every test, and a vector cache that the whole run shares."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from inquitree_gym.embeddings import MiniLMEmbedder, load_embedder

# A timing never decides a test.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def minilm() -> MiniLMEmbedder:
    """The real default embedder, loaded once."""
    embedder = load_embedder("all-MiniLM-L6-v2")
    assert isinstance(embedder, MiniLMEmbedder)
    return embedder
