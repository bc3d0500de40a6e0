"""Embedders by name, without fallback from one to another."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from inquitree_gym.embeddings.api import LiteLLMEmbedder
from inquitree_gym.embeddings.local import MINILM, MiniLMEmbedder, SentenceTransformerEmbedder
from inquitree_gym.embeddings.onnx import OnnxEmbedder
from inquitree_gym.embeddings.protocol import Embedder
from inquitree_gym.embeddings.static import StaticEmbedder
from inquitree_gym.errors import EmbedderError, suggest

DEFAULT_EMBEDDER = MINILM
_PREFIXES: dict[str, Callable[[str], Embedder]] = {
    "onnx": OnnxEmbedder,
    "static": StaticEmbedder,
    "sentence-transformers": SentenceTransformerEmbedder,
    "litellm": LiteLLMEmbedder,
}


@lru_cache(maxsize=8)
def load_embedder(name: str) -> Embedder:
    """Return the embedder of that name, the same object each time; its weights are loaded on first use.

    Names are ``all-MiniLM-L6-v2`` (the default), ``onnx:all-MiniLM-L6-v2``, ``static:all-MiniLM-L6-v2``,
    ``onnx:FOLDER``, ``static:FOLDER``, ``sentence-transformers:NAME_OR_FOLDER`` and ``litellm:MODEL``.

    Raises:
        EmbedderError: the name is unknown.
    """
    if name == MINILM:
        return MiniLMEmbedder()
    prefix, colon, model = name.partition(":")
    if colon and model and prefix in _PREFIXES:
        return _PREFIXES[prefix](model)
    forms = [MINILM, *(f"{prefix}:MODEL" for prefix in _PREFIXES)]
    raise EmbedderError(f"no embedder is called '{name}'{suggest(name, forms)}; use one of {', '.join(forms)}")
