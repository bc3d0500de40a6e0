"""Embedders by name."""

from __future__ import annotations

import re
from typing import Any

import pytest

from inquitree_gym.embeddings import (
    DEFAULT_EMBEDDER,
    LiteLLMEmbedder,
    MiniLMEmbedder,
    OnnxEmbedder,
    ReaderEmbedder,
    SentenceTransformerEmbedder,
    StaticEmbedder,
    load_embedder,
)
from inquitree_gym.errors import EmbedderError

NAMES = {
    "inquitree-reader-2": ReaderEmbedder,
    "all-MiniLM-L6-v2": MiniLMEmbedder,
    "onnx:all-MiniLM-L6-v2": OnnxEmbedder,
    "onnx:/some/folder": OnnxEmbedder,
    "static:all-MiniLM-L6-v2": StaticEmbedder,
    "static:/some/folder:with a colon": StaticEmbedder,
    "sentence-transformers:all-mpnet-base-v2": SentenceTransformerEmbedder,
    "sentence-transformers:/some/folder:with a colon": SentenceTransformerEmbedder,
    "litellm:text-embedding-3-small": LiteLLMEmbedder,
    "litellm:ollama/nomic-embed-text:v1.5": LiteLLMEmbedder,
}


@pytest.mark.weights
@pytest.mark.parametrize(("name", "kind"), NAMES.items())
def test_a_name_gives_its_embedder_and_the_embedder_its_name(name: str, kind: type):
    embedder = load_embedder(name)
    assert type(embedder) is kind
    assert embedder.name == name
    assert load_embedder(embedder.name) is embedder, "the weights would be loaded twice"


def test_the_default_is_the_calibrated_reader():
    assert DEFAULT_EMBEDDER == "inquitree-reader-2"
    assert load_embedder(DEFAULT_EMBEDDER).threshold is not None


@pytest.mark.parametrize("device", ["gpu", "CUDA", "", None])
def test_an_unknown_device_is_answered_with_the_devices(device: Any):
    with pytest.raises(EmbedderError, match=f"device must be one of auto, cpu, cuda, got {re.escape(repr(device))}"):
        load_embedder(DEFAULT_EMBEDDER, device=device)


@pytest.mark.parametrize("name", ["static:all-MiniLM-L6-v2", "litellm:text-embedding-3-small"])
def test_what_runs_no_model_of_its_own_has_no_choice_of_device(name: str):
    with pytest.raises(EmbedderError, match=f"'{name}' does not run on a CUDA device; leave device at 'cpu' or 'auto'"):
        load_embedder(name, device="cuda")
    assert load_embedder(name, device="auto").name == name


@pytest.mark.parametrize(
    "name", ["", "MiniLM", "sentence-transformers", "sentence-transformers:", "litellm:", "static", "onnx:", "hub:x"]
)
def test_an_unknown_name_is_answered_with_the_forms(name: str):
    with pytest.raises(EmbedderError, match=f"no embedder is called '{re.escape(name)}'") as caught:
        load_embedder(name)
    for form in (
        "inquitree-reader-2",
        "all-MiniLM-L6-v2",
        "onnx:MODEL",
        "static:MODEL",
        "sentence-transformers:MODEL",
        "litellm:MODEL",
    ):
        assert form in str(caught.value)


def test_a_near_miss_is_answered_with_the_name_meant():
    with pytest.raises(EmbedderError, match=r"\(did you mean 'all-MiniLM-L6-v2'\?\)"):
        load_embedder("all-minilm-L6-v2")
