"""Real weights for every test; hashed words instead where ``-m "not weights"`` selects the fast tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from inquitree_gym.embeddings import Embedder, load_embedder, registry
from tests.hashing import HashingEmbedder
from tests.servers import KEY, Service, close_clients

# A timing never decides a test.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Let the fast tests run without torch, also where torch is installed."""
    if config.option.markexpr == "not weights":
        registry.MiniLMEmbedder = HashingEmbedder  # type: ignore[misc, assignment]
        for package in ("torch", "transformers", "sentence_transformers", "stable_baselines3", "sb3_contrib", "ray"):
            sys.modules[package] = None  # type: ignore[assignment]


@pytest.fixture(scope="session")
def minilm() -> Embedder:
    """The default embedder, loaded once: real weights, but for the fast tests."""
    return load_embedder("all-MiniLM-L6-v2")


@pytest.fixture(scope="session")
def loopback() -> Iterator[Service]:
    """One server for all tests: litellm keeps a client for each address, and drops the oldest without closing it."""
    with Service() as started:
        yield started
    close_clients()


@pytest.fixture
def service(loopback: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A server on loopback that speaks OpenAI's protocol, and a key for it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    loopback.begin()
    yield loopback
    loopback.release()
