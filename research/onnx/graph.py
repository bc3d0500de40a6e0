"""The BERT encoder of MiniLM and of the reader, written as a graph of ONNX Runtime operators.

Graph and weights are fixed, so the file is the same everywhere, byte for byte. The exporters of torch do not serve: the
older one is deprecated, the newer one is a dozen times slower, and their output depends on their versions.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings import Embedder, MiniLMEmbedder, OnnxEmbedder
from inquitree_gym.embeddings.derived import MANIFEST, TOKENIZER
from inquitree_gym.embeddings.local import TURN, minilm_folder
from inquitree_gym.errors import EmbedderError, require
from inquitree_gym.trees import builtin_ids, load_tree
from research.sealing import seal, writing

EXPORTED = "model.onnx"
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
        MissingExtraError: the package ``onnx`` is not installed.
    """
    onnx = require("onnx", "test")
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
    """Return `COMPARED` texts of 1 to `LONGEST` words, cut from a tree. The longest exceed the window of MiniLM."""
    words = " ".join(load_tree(builtin_ids()[0]).texts().values()).split()
    lengths = np.geomspace(1, LONGEST, COMPARED).round().astype(int)
    starts = np.linspace(0, len(words) - LONGEST, COMPARED).astype(int)
    return [" ".join(words[start : start + length]) for start, length in zip(starts, lengths, strict=True)]


def _model(weights: Weights, name: str) -> Any:
    """Return the model: token ids of shape ``(1, tokens)`` in, states of shape ``(1, tokens, 384)`` out."""
    onnx = require("onnx", "test")
    graph = _Graph([], [])
    states = _embedded(graph, weights)
    for layer in range(LAYERS):
        states = _layer(graph, weights, layer, states)
    if TURN in weights:  # the mean over tokens comes after it, and both are linear
        states = graph.node("MatMul", [states, graph.constant("turn.matrix", weights[TURN])], "turned")
    shaped = onnx.helper.make_tensor_value_info
    ids = shaped("input_ids", onnx.TensorProto.INT64, ["texts", "tokens"])
    out = shaped(states, onnx.TensorProto.FLOAT, ["texts", "tokens", "dimensions"])
    versions = [onnx.helper.make_opsetid("", OPERATORS), onnx.helper.make_opsetid(FUSED, 1)]
    whole = onnx.helper.make_graph(graph.nodes, name, [ids], [out], graph.constants)
    return onnx.helper.make_model(whole, opset_imports=versions, ir_version=IR_VERSION)


class _Graph(NamedTuple):
    """Graph under construction. Nodes refer to results by name."""

    nodes: list[Any]
    constants: list[Any]

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """Add a constant and return its name."""
        self.constants.append(require("onnx", "test").numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, operator: str, inputs: list[str], name: str, domain: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its result."""
        made = require("onnx", "test").helper.make_node(operator, inputs, [name], domain=domain, **attributes)
        self.nodes.append(made)
        return name


def _embedded(graph: _Graph, weights: Weights) -> str:
    """Add word and position embeddings. The position table includes the only token type."""
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
