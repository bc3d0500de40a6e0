"""Models derived from MiniLM or the reader: through ONNX Runtime, or as static word vectors. Neither needs torch."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from inquitree_gym.embeddings.local import MINILM, MINILM_DIM, MINILM_FILES, MINILM_THRESHOLD, file_digest
from inquitree_gym.embeddings.protocol import Device, SharedWeights, Vectors, unit_rows
from inquitree_gym.errors import EmbedderError, require

if TYPE_CHECKING:
    from model2vec import StaticModel
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

MODELS_VARIABLE = "INQUITREE_MODELS"
"""Environment variable that names the folder of derived models."""
MANIFEST = "inquitree.json"

Kind = Literal["onnx", "static"]
SOURCES = ("inquitree-reader-2", "all-MiniLM-L6-v2")
"""Names of the models that others are derived from."""
COMMANDS: dict[Kind, str] = {"onnx": "python -m research.onnx", "static": "python -m research.static"}
"""Command that makes each kind, in a clone of the repository."""


class Manifest(BaseModel):
    """Description of a derived model: source, threshold, files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    source: str
    """SHA-256 of the weights that it was derived from."""
    threshold: float = Field(ge=-1, le=1)
    files: dict[str, str] = Field(min_length=1)
    """SHA-256 by file name."""
    evidence: dict[str, Any] = {}
    """Measurements from the time it was made."""

    @property
    def digest(self) -> str:
        """SHA-256 over the names and digests of the files."""
        return files_digest(self.files)


def models_folder() -> Path:
    """Return the folder of derived models: `INQUITREE_MODELS`, or one in the data folder of the user."""
    named = os.environ.get(MODELS_VARIABLE)
    return Path(named).expanduser() if named else Path(platformdirs.user_data_dir("inquitree-gym"), "models")


def made_folder(kind: Kind, model: str) -> Path:
    """Return the default folder of a derived model."""
    return models_folder() / kind / model


def model_folder(kind: Kind, model: str) -> Path:
    """Return the folder of ``model``: the default one of a name in `SOURCES`, otherwise ``model`` itself."""
    return made_folder(kind, model) if model in SOURCES else Path(model).expanduser()


def read_manifest(folder: Path, kind: Kind) -> Manifest:
    """Read the manifest of a folder. Raise `EmbedderError` if there is none of that kind, or it is invalid."""
    try:
        content = (folder / MANIFEST).read_bytes()
    except OSError as error:
        raise EmbedderError(
            f"there is no {kind} model in '{folder}' ({MANIFEST}: {error.strerror}); run: {COMMANDS[kind]} (in a "
            f"clone of the repository); if it is in a folder of your own, name it {kind}:FOLDER"
        ) from error
    try:
        manifest = Manifest.model_validate_json(content)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise _damaged(folder, kind, f"{MANIFEST}: {fault['msg']} at {fault['loc']}") from error
    if manifest.kind != kind:
        raise EmbedderError(f"'{folder}' holds a model of the kind {manifest.kind}; name it {manifest.kind}:{folder}")
    return manifest


def verify_files(folder: Path, kind: Kind, files: dict[str, str]) -> None:
    """Compare files with their SHA-256. Raise `EmbedderError` if one is missing or differs."""
    for name, expected in files.items():
        file = folder / name
        if not file.is_file():
            raise _damaged(folder, kind, f"'{name}' is missing")
        if (found := file_digest(file)) != expected:
            raise _damaged(folder, kind, f"'{name}' was changed: expected {expected}, found {found}")


def files_digest(files: dict[str, str]) -> str:
    """Return one SHA-256 over the names and digests of files, independent of their order."""
    lines = "".join(f"{name} {digest}\n" for name, digest in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def _damaged(folder: Path, kind: Kind, what: str) -> EmbedderError:
    return EmbedderError(f"the {kind} model in '{folder}' is damaged: {what}; make it again with: {COMMANDS[kind]}")


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
            model: ``inquitree-reader-2`` or ``all-MiniLM-L6-v2`` for its folder in `models_folder`, or another folder
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


class StaticEmbedder(SharedWeights):
    """A model2vec model that ``python -m research.static`` derived from MiniLM or the reader. Needs no torch.

    Its manifest holds its threshold and its agreement with that model.
    """

    def __init__(self, model: str = MINILM) -> None:
        """Store the name. The model is loaded on first use.

        Args:
            model: ``inquitree-reader-2`` or ``all-MiniLM-L6-v2`` for its folder in `models_folder`, or another folder.
        """
        self.name = f"static:{model}"
        self._folder = model_folder("static", model)

    @property
    def digest(self) -> str:
        """SHA-256 over the names and contents of the model files."""
        return self.manifest.digest

    @property
    def threshold(self) -> float:
        """Calibrated threshold of this model."""
        return self.manifest.threshold

    @cached_property
    def dim(self) -> int:
        """Length of a vector. Loads the model."""
        return int(self._model.dim)

    @cached_property
    def manifest(self) -> Manifest:
        """Manifest of the folder: files, threshold, agreement with the default.

        Raises:
            EmbedderError: the folder holds no static model, or its manifest is invalid.
        """
        return read_manifest(self._folder, "static")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`. A row does not depend on the other texts."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        return unit_rows(self._model.encode(list(texts), use_multiprocessing=False))

    @cached_property
    def _model(self) -> StaticModel:
        verify_files(self._folder, "static", self.manifest.files)
        models: Any = require("model2vec", "static")
        model: StaticModel = models.StaticModel.from_pretrained(self._folder)
        return model
