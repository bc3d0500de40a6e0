"""The judge's embedder: MiniLM beside MiniLM with an adapter that was trained to tell results from their fakes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from inquitree_gym.embeddings.local import MINILM_DIM, MiniLMEmbedder
from inquitree_gym.embeddings.protocol import Device, SharedWeights, Vectors
from inquitree_gym.embeddings.reader import BASE, AdaptedMiniLM, adapter_file

JUDGE = "inquitree-judge-1"
JUDGE_ADAPTER_DIGEST = "d46faf2b41ee41efca8497bbf846e491bcd3f5c38ff74558078055e1c1619302"
"""SHA-256 of the adapter file."""


class JudgeEmbedder(SharedWeights):
    """Two vectors of each text side by side: MiniLM's, and the one of MiniLM with the adapter `JUDGE`.

    The dot product of two rows is the mean of the similarities in the two spaces. The local judge takes them apart: the
    first tells what a claim is about, the second which side it takes.
    """

    threshold: float | None = None
    digest = hashlib.sha256(f"{BASE} beside {BASE} {JUDGE_ADAPTER_DIGEST}".encode()).hexdigest()
    dim = 2 * MINILM_DIM

    def __init__(self, *, threads: int = 1, device: Device = "cpu") -> None:
        """Store the options; the models are loaded on first use. See `AdaptedMiniLM`."""
        self.name = JUDGE
        self._threads = threads
        self._device: Device = device

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        both = np.concatenate([part.embed(texts) for part in self._model], axis=1)
        return both * np.float32(np.sqrt(0.5))

    @cached_property
    def _model(self) -> tuple[MiniLMEmbedder, AdaptedMiniLM]:
        adapter = adapter_file(JUDGE)
        return (
            MiniLMEmbedder(threads=self._threads, device=self._device),
            AdaptedMiniLM(adapter, JUDGE_ADAPTER_DIGEST, threads=self._threads, device=self._device),
        )
