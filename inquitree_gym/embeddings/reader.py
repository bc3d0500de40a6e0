"""The reader: MiniLM with a low-rank adapter (LoRA, arXiv:2106.09685) that was trained on proposals about trees.

The adapter is merged into the weights when the model is loaded, so a text costs what it costs under MiniLM.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings.local import MINILM_FILES, MiniLMEmbedder, file_digest
from inquitree_gym.embeddings.protocol import Device
from inquitree_gym.errors import EmbedderError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

READER = "inquitree-reader-1"
READER_THRESHOLD = 0.55
"""τ for the reader. Docs/validity.md has the evidence."""
ADAPTER_DIGEST = "fe51ce5b5f74ea65e36303a6e7aab0210d773eb31b929e5d06e7c479fd30ebf1"
"""SHA-256 of the adapter file."""
BASE = MINILM_FILES["model.safetensors"]
DOWN, UP = ".down", ".up"
"""Suffixes of the two factors of a change: ``weight + scale · up @ down``."""

Weights = dict[str, NDArray[np.float32]]


class Adapter(NamedTuple):
    """Low-rank changes of the weights of a model."""

    base: str
    """SHA-256 of the weights that it belongs to."""
    scale: float
    factors: Mapping[str, NDArray[np.float16]]
    """By name of the weight and `DOWN`, shape ``(rank, in)``, or `UP`, shape ``(out, rank)``."""

    @property
    def names(self) -> list[str]:
        """Names of the weights that it changes."""
        return sorted(name.removesuffix(DOWN) for name in self.factors if name.endswith(DOWN))

    def merged(self, weights: Mapping[str, NDArray[np.float32]]) -> Weights:
        """Return the weights that it changes, with the changes added in double precision."""
        return {name: self._changed(name, weights[name]) for name in self.names}

    def _changed(self, name: str, weight: NDArray[np.float32]) -> NDArray[np.float32]:
        up, down = (self.factors[name + suffix].astype(np.float64) for suffix in (UP, DOWN))
        return (weight + self.scale * (up @ down)).astype(np.float32)


class AdaptedMiniLM(MiniLMEmbedder):
    """MiniLM with an adapter merged into its weights, each checked against its pinned digest."""

    def __init__(self, adapter: Path, adapter_digest: str, *, threads: int = 1, device: Device = "cpu") -> None:
        """Store the adapter's file and SHA-256, and the options. The model is loaded on first use."""
        super().__init__(threads=threads, device=device)
        self._adapter = adapter
        self._adapter_digest = adapter_digest

    def weights(self) -> Weights:
        """Return all weights by name, with the adapter merged. Names and shapes are those of MiniLM's file."""
        plain = super().weights()
        return plain | read_adapter(self._adapter, self._adapter_digest).merged(plain)

    @cached_property
    def _model(self) -> SentenceTransformer:
        adapter = read_adapter(self._adapter, self._adapter_digest)  # before the imports, which take seconds
        model = self._load()
        _replace(model, adapter)
        return model


class ReaderEmbedder(AdaptedMiniLM):
    """The default embedder: MiniLM with the adapter `READER`."""

    threshold = READER_THRESHOLD
    digest = hashlib.sha256(f"{BASE} {ADAPTER_DIGEST}".encode()).hexdigest()

    def __init__(self, *, threads: int = 1, device: Device = "cpu", adapter: Path | None = None) -> None:
        """Store the options. See `AdaptedMiniLM`. ``adapter`` is another copy of the adapter file."""
        super().__init__(adapter or adapter_file(), ADAPTER_DIGEST, threads=threads, device=device)
        self.name = READER


def adapter_file(name: str = READER) -> Path:
    """Return the file of an adapter in the package."""
    return Path(str(resources.files(__package__).joinpath("data", f"{name}.safetensors")))


def read_adapter(file: Path, digest: str = ADAPTER_DIGEST) -> Adapter:
    """Read an adapter file after comparing its SHA-256. Raise `EmbedderError` if it is missing or does not fit."""
    if not file.is_file():
        raise EmbedderError(f"the adapter '{file}' is missing; install inquitree-gym again")
    if (found := file_digest(file)) != digest:
        raise EmbedderError(
            f"the adapter '{file}' was changed: expected SHA-256 {digest}, found {found}; install inquitree-gym again"
        )
    return parse_adapter(file)


def parse_adapter(file: Path) -> Adapter:
    """Read an adapter file that was just trained. Raise `EmbedderError` for one of other weights than MiniLM's."""
    from safetensors import safe_open

    with safe_open(file, "np") as stored:
        about: dict[str, Any] = json.loads(stored.metadata()["inquitree"])
        factors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118  (not a mapping)
    if about["base"] != BASE:
        raise EmbedderError(f"the adapter '{file}' belongs to the weights {about['base']}, not to MiniLM's {BASE}")
    return Adapter(about["base"], about["scale"], factors)


def _replace(model: SentenceTransformer, adapter: Adapter) -> None:
    """Add the changes of an adapter to the weights of a loaded model."""
    import torch

    layers = model[0].auto_model.state_dict()  # shares storage with the model
    plain = {name: layers[name].numpy(force=True) for name in adapter.names}
    for name, changed in adapter.merged(plain).items():
        layers[name].copy_(torch.from_numpy(changed))
