"""Real weights for every test, and a vector cache that the whole run shares."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from inquitree_gym.embeddings import MiniLMEmbedder, load_embedder


@pytest.fixture(scope="session")
def minilm() -> MiniLMEmbedder:
    """The real default embedder, loaded once."""
    embedder = load_embedder("all-MiniLM-L6-v2")
    assert isinstance(embedder, MiniLMEmbedder)
    return embedder
