"""MiniLM and the reader through ONNX Runtime: the same vectors, faster, without importing torch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inquitree_gym.embeddings.local import (
    MANIFEST,
    MINILM,
    MINILM_DIM,
    MINILM_FILES,
    MINILM_THRESHOLD,
    files_digest,
    model_folder,
    read_manifest,
    verify_files,
)
from inquitree_gym.embeddings.protocol import Device, SharedWeights, Vectors, unit_rows
from inquitree_gym.errors import EmbedderError, require

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

WINDOW = 256
"""Tokens of a text that MiniLM reads, including the two special ones."""
HUB_FILES = {
    "onnx/model.onnx": "6fd5d72fe4589f189f8ebc006442dbb529bb7ce38f8082112682524616046452",
    "tokenizer.json": MINILM_FILES["tokenizer.json"],
}
"""SHA-256 of the ONNX files of MiniLM on the hub, by their names in the repository."""
CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
TOKENIZER = "tokenizer.json"


class OnnxEmbedder(SharedWeights):
    """MiniLM or the reader through ONNX Runtime: the same threshold, and the same vectors within 1e-5.

    Texts run one by one, so a vector never depends on the other texts. Batches gain almost nothing on a CPU.
    """

    dim = MINILM_DIM

    def __init__(self, model: str = MINILM, *, threads: int = 1, device: Device = "cpu") -> None:
        """Store the name. The model is loaded on first use.

        Args:
            model: ``inquitree-reader-1`` or ``all-MiniLM-L6-v2`` for its folder in `models_folder`, or another folder
                that ``python -m research.onnx`` wrote, or a copy of the hub repository of MiniLM with
                ``onnx/model.onnx`` and ``tokenizer.json``.
            threads: CPU threads per text.
            device: see `inquitree_gym.load_embedder`. CUDA needs onnxruntime-gpu.
        """
        self.name = f"onnx:{model}"
        self._folder = model_folder("onnx", model)
        self._threads = threads
        self._device = device

    @cached_property
    def threshold(self) -> float:
        """Calibrated threshold of the model that was exported."""
        return MINILM_THRESHOLD if self._is_hub_copy else read_manifest(self._folder, "onnx").threshold

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the names and contents of the model files.

        It differs from the digest of the default, because the last bits of the vectors differ.
        """
        return files_digest(self._files)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`. A row does not depend on the other texts."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        return unit_rows(np.stack([self._mean_state(text) for text in texts]))

    def _mean_state(self, text: str) -> Vectors:
        session, tokenizer = self._model
        ids = np.array([tokenizer.encode(text).ids])
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        states = session.run(None, {wanted.name: given[wanted.name] for wanted in session.get_inputs()})[0]
        return np.asarray(states[0].mean(axis=0), np.float32)

    @cached_property
    def _files(self) -> dict[str, str]:
        """SHA-256 by file name: pinned for a copy of the hub repository, otherwise from the manifest."""
        return HUB_FILES if self._is_hub_copy else read_manifest(self._folder, "onnx").files

    @property
    def _is_hub_copy(self) -> bool:
        return (self._folder / "onnx").is_dir() and not (self._folder / MANIFEST).exists()

    @cached_property
    def _model(self) -> tuple[InferenceSession, Tokenizer]:
        verify_files(self._folder, "onnx", self._files)
        weights = next(name for name in self._files if name.endswith(".onnx"))
        return _session(self._folder / weights, self._threads, self._device), _tokenizer(self._folder / TOKENIZER)


def _session(file: Path, threads: int, device: Device) -> InferenceSession:
    runtime: Any = require("onnxruntime", "onnx")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    session: InferenceSession = runtime.InferenceSession(
        str(file), options, providers=_providers(device, runtime.get_available_providers())
    )
    return session


def _providers(device: Device, available: list[str]) -> list[str]:
    if device != "cpu" and CUDA in available:
        return [CUDA, CPU]
    if device == "cuda":
        raise EmbedderError("device='cuda' needs onnxruntime-gpu and a CUDA device; use 'cpu' or 'auto'")
    return [CPU]


def _tokenizer(file: Path) -> Tokenizer:
    tokenizer: Tokenizer = require("tokenizers", "onnx").Tokenizer.from_file(str(file))
    tokenizer.enable_truncation(WINDOW)
    tokenizer.no_padding()
    return tokenizer
