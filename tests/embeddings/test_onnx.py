"""MiniLM through ONNX Runtime: the default's vectors, without torch, from files that are checked."""

from __future__ import annotations

import copy
import hashlib
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from inquitree_gym.embeddings import MiniLMEmbedder, OnnxEmbedder, derived
from inquitree_gym.trees import load_tree

pytestmark = pytest.mark.weights

TEXTS = ("Place cells remap after a reward moves.", "How quickly do mice learn the second maze?")
LONG = "The animal ran down the track while its head direction cells kept firing. " * 40
ODD = ("", " ", "\n\n", "naïve café ☃ 海馬", "[CLS] [UNK] [SEP]", "x" * 3_000, "A\u200bB")


@pytest.fixture(scope="session")
def embedder(exported: Path) -> OnnxEmbedder:
    return OnnxEmbedder(str(exported))


def test_the_vectors_are_those_of_the_default(embedder: OnnxEmbedder, minilm: MiniLMEmbedder):
    texts = [*list(load_tree("paper2").texts().values())[::2], LONG, *ODD]
    ours, theirs = embedder.embed(texts), minilm.embed(texts)
    assert np.einsum("td,td->t", ours, theirs).min() >= 0.99999
    assert np.abs(ours - theirs).max() < 1e-5


def test_a_text_is_cut_off_where_the_default_cuts_it(embedder: OnnxEmbedder):
    beyond, within = LONG + "Bread rises.", "Bread rises. " + LONG
    whole, same, other = embedder.embed([LONG, beyond, within])
    assert whole.tobytes() == same.tobytes()
    assert whole @ other < 0.9999


def test_a_row_has_the_same_bytes_whatever_its_neighbours(embedder: OnnxEmbedder):
    texts = [*TEXTS, LONG, *ODD]
    alone = [embedder.embed([text])[0].tobytes() for text in texts]
    assert [row.tobytes() for row in embedder.embed(texts)] == alone
    assert [row.tobytes() for row in embedder.embed(texts[::-1])] == alone[::-1]


def test_copies_share_the_weights_and_a_pickle_leaves_them_out(embedder: OnnxEmbedder):
    expected = embedder.embed(TEXTS).tobytes()
    assert copy.deepcopy(embedder) is embedder
    content = pickle.dumps(embedder)
    assert len(content) < 10_000
    assert pickle.loads(content).embed(TEXTS).tobytes() == expected


# The hub's own file


def test_a_graph_with_the_inputs_of_the_hubs_file_is_fed_what_it_asks_for(
    exported: Path, embedder: OnnxEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The hub's graph takes a mask and token types too; here both are added, so that a wrong one would show."""
    import onnx as format_

    graph = format_.load(str(exported / "model.onnx"))
    for name in ("attention_mask", "token_type_ids"):
        shaped = format_.helper.make_tensor_value_info(name, format_.TensorProto.INT64, ["texts", "tokens"])
        graph.graph.input.append(shaped)
    lookup = next(node for node in graph.graph.node if node.op_type == "Gather")
    masked = [
        format_.helper.make_node("Mul", ["input_ids", "attention_mask"], ["masked"]),
        format_.helper.make_node("Add", ["masked", "token_type_ids"], ["used"]),
    ]
    lookup.input[1] = "used"
    place = list(graph.graph.node).index(lookup)
    for node in reversed(masked):
        graph.graph.node.insert(place, node)
    folder = tmp_path / "hub"
    (folder / "onnx").mkdir(parents=True)
    format_.save(graph, str(folder / "onnx" / "model.onnx"))
    shutil.copy(exported / "tokenizer.json", folder)
    monkeypatch.setitem(
        derived.HUB_FILES, "onnx/model.onnx", hashlib.sha256((folder / "onnx" / "model.onnx").read_bytes()).hexdigest()
    )
    assert OnnxEmbedder(str(folder)).embed(TEXTS).tobytes() == embedder.embed(TEXTS).tobytes()


# What a process has to import
