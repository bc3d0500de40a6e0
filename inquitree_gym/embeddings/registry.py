"""Embedders by name, without fallback from one to another."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import get_args

from inquitree_gym.embeddings.api import LiteLLMEmbedder
from inquitree_gym.embeddings.judge import JUDGE, JudgeEmbedder
from inquitree_gym.embeddings.local import MINILM, MiniLMEmbedder, SentenceTransformerEmbedder
from inquitree_gym.embeddings.onnx import OnnxEmbedder
from inquitree_gym.embeddings.protocol import Device, Embedder
from inquitree_gym.embeddings.reader import READER, ReaderEmbedder
from inquitree_gym.embeddings.static import StaticEmbedder
from inquitree_gym.errors import EmbedderError, suggest

DEFAULT_EMBEDDER = READER
_NAMED: dict[str, Callable[..., Embedder]] = {READER: ReaderEmbedder, MINILM: MiniLMEmbedder, JUDGE: JudgeEmbedder}
_PREFIXES: dict[str, Callable[..., Embedder]] = {
    "onnx": OnnxEmbedder,
    "static": StaticEmbedder,
    "sentence-transformers": SentenceTransformerEmbedder,
    "litellm": LiteLLMEmbedder,
}
_WITHOUT_DEVICE = ("static", "litellm")
"""Prefixes of embedders that run no model of their own: a table on the CPU, and a service."""


def load_embedder(name: str, *, device: Device = "cpu") -> Embedder:
    """Return the embedder of that name, the same object for each device; its weights are loaded on first use.

    Names are ``inquitree-reader-1``, ``all-MiniLM-L6-v2``, ``onnx:`` or ``static:`` before either of these or before a
    folder, ``sentence-transformers:NAME_OR_FOLDER`` and ``litellm:MODEL``.

    Args:
        name: name of the embedder.
        device: ``cpu``, ``cuda``, or ``auto`` for CUDA where there is one. It changes no name and no digest: vectors
            are computed in single precision and agree within 1e-5. The default is the CPU, because a process that has
            used CUDA cannot be forked, as asynchronous vector environments do.

    Raises:
        EmbedderError: the name or the device is unknown, or the embedder does not run on the device.
    """
    if device not in get_args(Device):
        raise EmbedderError(f"device is one of {', '.join(get_args(Device))}, not {device!r}")
    return _load(name, device)


@lru_cache(maxsize=8)
def _load(name: str, device: Device) -> Embedder:
    if name in _NAMED:
        return _NAMED[name](device=device)
    prefix, colon, model = name.partition(":")
    if colon and model and prefix in _PREFIXES:
        return _PREFIXES[prefix](model, **_device_option(name, prefix, device))
    forms = [*_NAMED, *(f"{prefix}:MODEL" for prefix in _PREFIXES)]
    raise EmbedderError(f"no embedder is called '{name}'{suggest(name, forms)}; use one of {', '.join(forms)}")


def _device_option(name: str, prefix: str, device: Device) -> dict[str, Device]:
    if prefix not in _WITHOUT_DEVICE:
        return {"device": device}
    if device == "cuda":
        raise EmbedderError(f"'{name}' does not run on a CUDA device; leave device at 'cpu' or 'auto'")
    return {}
