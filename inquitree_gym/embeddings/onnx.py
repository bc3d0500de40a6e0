"""MiniLM and the reader through ONNX Runtime: the same vectors, faster, without importing torch; and their export.

The export writes the BERT encoder as a graph of ONNX Runtime operators. Graph and weights are fixed, so the file is the
same everywhere, byte for byte. The exporters of torch do not serve: the older one is deprecated, the newer one is a
dozen times slower, and their output depends on their versions.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings.artifacts import (
    MANIFEST,
    files_digest,
    model_folder,
    read_manifest,
    seal,
    verify_files,
    writing,
)
from inquitree_gym.embeddings.local import (
    MINILM,
    MINILM_DIM,
    MINILM_FILES,
    MINILM_THRESHOLD,
    MiniLMEmbedder,
    minilm_folder,
)
from inquitree_gym.embeddings.protocol import Device, Embedder, SharedWeights, Vectors, unit_rows
from inquitree_gym.errors import EmbedderError, require
from inquitree_gym.trees import builtin_ids, load_tree

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
EXPORTED, TOKENIZER = "model.onnx", "tokenizer.json"


class OnnxEmbedder(SharedWeights):
    """MiniLM or the reader through ONNX Runtime: the same threshold, and the same vectors within 1e-5.

    Texts run one by one, so a vector never depends on the other texts; batches gain almost nothing on a CPU.
    """

    dim = MINILM_DIM

    def __init__(self, model: str = MINILM, *, threads: int = 1, device: Device = "cpu") -> None:
        """Store the name; the model is loaded on first use.

        Args:
            model: ``inquitree-reader-1`` or ``all-MiniLM-L6-v2`` for the default folders of `inquitree export-onnx`, or
                a folder that it wrote, or a copy of the hub repository of MiniLM with ``onnx/model.onnx`` and
                ``tokenizer.json``.
            threads: CPU threads per text.
            device: see `inquitree_gym.load_embedder`; CUDA needs onnxruntime-gpu.
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


MIN_COSINE = 0.99999
"""Lowest accepted cosine between the vectors of both models."""
COMPARED, LONGEST = 48, 400
LAYERS, HEADS = 6, 12
EPSILON = 1e-12
"""Added to the variance in layer normalisation, from the configuration of MiniLM."""
FUSED = "com.microsoft"
"""Domain of the fused operators of ONNX Runtime."""
OPERATORS, IR_VERSION = 18, 9
"""Versions of the operator set and of the file format, for ONNX Runtime from 1.16 on."""

Weights = Mapping[str, NDArray[np.float32]]


def export_onnx(folder: Path, source: MiniLMEmbedder) -> float:
    """Write ``source`` as ONNX into ``folder``, with its tokenizer and a manifest, and compare their vectors.

    Returns: the lowest cosine between the two vectors of a text, over `COMPARED` texts of 1 to `LONGEST` words.

    Raises:
        EmbedderError: the weights are not available, the folder cannot be written, or the vectors differ.
        MissingExtraError: the extra ``onnx`` is not installed.
    """
    onnx = require("onnx", "onnx")
    weights = source.weights()
    with writing(folder):
        onnx.save(_model(weights, source.name), str(folder / EXPORTED))
        shutil.copyfile(minilm_folder() / TOKENIZER, folder / TOKENIZER)
        seal(folder, "onnx", source.digest, source.threshold, (EXPORTED, TOKENIZER))
    lowest = lowest_cosine(OnnxEmbedder(str(folder)), source, texts_to_compare())
    if lowest < MIN_COSINE:
        (folder / MANIFEST).unlink()
        raise EmbedderError(
            f"the exported model differs from {source.name}: cosine {lowest:.7f}, expected at least {MIN_COSINE}; "
            "nothing was kept. Install the versions of constraints.txt and export again"
        )
    return lowest


def lowest_cosine(one: Embedder, other: Embedder, texts: Sequence[str]) -> float:
    """Return the lowest cosine between the vectors that two embedders give a text."""
    return float(np.einsum("td,td->t", one.embed(texts), other.embed(texts)).min())


def texts_to_compare() -> list[str]:
    """Return `COMPARED` texts of 1 to `LONGEST` words, cut from a tree; the longest exceed the window of MiniLM."""
    words = " ".join(load_tree(builtin_ids()[0]).texts().values()).split()
    lengths = np.geomspace(1, LONGEST, COMPARED).round().astype(int)
    starts = np.linspace(0, len(words) - LONGEST, COMPARED).astype(int)
    return [" ".join(words[start : start + length]) for start, length in zip(starts, lengths, strict=True)]


def _model(weights: Weights, name: str) -> Any:
    """Return the model: token ids of shape ``(1, tokens)`` in, states of shape ``(1, tokens, 384)`` out."""
    onnx = require("onnx", "onnx")
    graph = _Graph([], [])
    states = _embedded(graph, weights)
    for layer in range(LAYERS):
        states = _layer(graph, weights, layer, states)
    shaped = onnx.helper.make_tensor_value_info
    ids = shaped("input_ids", onnx.TensorProto.INT64, ["texts", "tokens"])
    out = shaped(states, onnx.TensorProto.FLOAT, ["texts", "tokens", "dimensions"])
    versions = [onnx.helper.make_opsetid("", OPERATORS), onnx.helper.make_opsetid(FUSED, 1)]
    whole = onnx.helper.make_graph(graph.nodes, name, [ids], [out], graph.constants)
    return onnx.helper.make_model(whole, opset_imports=versions, ir_version=IR_VERSION)


class _Graph(NamedTuple):
    """Graph under construction; nodes refer to results by name."""

    nodes: list[Any]
    constants: list[Any]

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """Add a constant and return its name."""
        self.constants.append(require("onnx", "onnx").numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, operator: str, inputs: list[str], name: str, domain: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its result."""
        made = require("onnx", "onnx").helper.make_node(operator, inputs, [name], domain=domain, **attributes)
        self.nodes.append(made)
        return name


def _embedded(graph: _Graph, weights: Weights) -> str:
    """Add word and position embeddings; the position table includes the only token type."""
    part = "embeddings"
    positions = weights[f"{part}.position_embeddings.weight"] + weights[f"{part}.token_type_embeddings.weight"][0]
    start, axis = (graph.constant(name, np.array([value])) for name, value in (("start", 0), ("axis", 0)))
    length = graph.node("Shape", ["input_ids"], "length", start=1, end=2)
    places = graph.node("Slice", [graph.constant("positions", positions), start, length, axis], "places")
    words = graph.constant("words", weights[f"{part}.word_embeddings.weight"])
    both = graph.node("Add", [graph.node("Gather", [words, "input_ids"], "looked_up"), places], "placed")
    scale, shift = _normalisation(graph, weights, part)
    return graph.node("LayerNormalization", [both, scale, shift], "states", epsilon=EPSILON)


def _layer(graph: _Graph, weights: Weights, layer: int, states: str) -> str:
    part = f"encoder.layer.{layer}"
    three = [f"{part}.attention.self.{name}" for name in ("query", "key", "value")]
    merged = graph.constant(f"{part}.qkv", np.concatenate([weights[f"{name}.weight"].T for name in three], axis=1))
    bias = graph.constant(f"{part}.qkv.bias", np.concatenate([weights[f"{name}.bias"] for name in three]))
    attended = graph.node("Attention", [states, merged, bias], f"{part}.attended", FUSED, num_heads=HEADS)
    seen = _added(graph, weights, f"{part}.attention.output", attended, states)
    wide = _product(graph, weights, f"{part}.intermediate.dense", seen)
    bias = graph.constant(f"{part}.wide.bias", weights[f"{part}.intermediate.dense.bias"])
    active = graph.node("BiasGelu", [wide, bias], f"{part}.active", FUSED)
    return _added(graph, weights, f"{part}.output", active, seen)


def _added(graph: _Graph, weights: Weights, part: str, states: str, before: str) -> str:
    """Add a projection, the residual connection and a normalisation."""
    projected = _product(graph, weights, f"{part}.dense", states)
    bias = graph.constant(f"{part}.bias", weights[f"{part}.dense.bias"])
    shifted = graph.node("Add", [projected, bias], f"{part}.shifted")
    both = graph.node("Add", [shifted, before], f"{part}.both")
    scale, shift = _normalisation(graph, weights, part)
    # The fused SkipLayerNormalization takes eight times as long on a CPU as these three nodes.
    return graph.node("LayerNormalization", [both, scale, shift], f"{part}.states", epsilon=EPSILON)


def _product(graph: _Graph, weights: Weights, part: str, states: str) -> str:
    matrix = graph.constant(f"{part}.matrix", weights[f"{part}.weight"].T)
    return graph.node("MatMul", [states, matrix], f"{part}.product")


def _normalisation(graph: _Graph, weights: Weights, part: str) -> tuple[str, str]:
    names = ("weight", "bias")
    scale, shift = (graph.constant(f"{part}.norm.{name}", weights[f"{part}.LayerNorm.{name}"]) for name in names)
    return scale, shift
