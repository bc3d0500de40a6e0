"""The default embedder through ONNX Runtime: the same vectors, faster, without importing torch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inquitree_gym.embeddings.artifacts import MANIFEST, files_digest, made_folder, read_manifest, verify_files
from inquitree_gym.embeddings.local import MINILM, MINILM_DIM, MINILM_FILES, MINILM_THRESHOLD
from inquitree_gym.embeddings.protocol import SharedWeights, Vectors, unit_rows
from inquitree_gym.errors import require

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
EXPORTED, TOKENIZER = "model.onnx", "tokenizer.json"


class OnnxEmbedder(SharedWeights):
    """all-MiniLM-L6-v2 through ONNX Runtime on the CPU: the same threshold, and the same vectors within 1e-5.

    Texts run one by one, so a vector never depends on the other texts; batches gain almost nothing on a CPU.
    """

    threshold = MINILM_THRESHOLD
    dim = MINILM_DIM

    def __init__(self, model: str = MINILM, *, threads: int = 1) -> None:
        """Store the name; the model is loaded on first use.

        Args:
            model: ``all-MiniLM-L6-v2`` for the default folder of `inquitree export-onnx`, or a folder that it wrote, or
                a copy of the hub repository with ``onnx/model.onnx`` and ``tokenizer.json``.
            threads: CPU threads per text.
        """
        self.name = f"onnx:{model}"
        self._folder = made_folder("onnx", MINILM) if model == MINILM else Path(model).expanduser()
        self._threads = threads

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
        is_hub_copy = (self._folder / "onnx").is_dir() and not (self._folder / MANIFEST).exists()
        return HUB_FILES if is_hub_copy else read_manifest(self._folder, "onnx").files

    @cached_property
    def _model(self) -> tuple[InferenceSession, Tokenizer]:
        verify_files(self._folder, "onnx", self._files)
        weights = next(name for name in self._files if name.endswith(".onnx"))
        return _session(self._folder / weights, self._threads), _tokenizer(self._folder / TOKENIZER)


def _session(file: Path, threads: int) -> InferenceSession:
    runtime: Any = require("onnxruntime", "onnx")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    session: InferenceSession = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return session


def _tokenizer(file: Path) -> Tokenizer:
    tokenizer: Tokenizer = require("tokenizers", "onnx").Tokenizer.from_file(str(file))
    tokenizer.enable_truncation(WINDOW)
    tokenizer.no_padding()
    return tokenizer
