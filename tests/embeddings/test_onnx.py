"""MiniLM through ONNX Runtime: the default's vectors, without torch, from files that are checked."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from inquitree_gym.embeddings import MiniLMEmbedder, OnnxEmbedder, derived
from inquitree_gym.errors import EmbedderError, MissingExtraError
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


def test_name_threshold_and_dimension_are_those_of_the_default_and_the_digest_is_its_own(
    embedder: OnnxEmbedder, minilm: MiniLMEmbedder, exported: Path
):
    assert embedder.name == f"onnx:{exported}"
    assert (embedder.threshold, embedder.dim) == (minilm.threshold, minilm.dim)
    assert re.fullmatch("[0-9a-f]{64}", embedder.digest)
    assert embedder.digest != minilm.digest


def test_copies_share_the_weights_and_a_pickle_leaves_them_out(embedder: OnnxEmbedder):
    expected = embedder.embed(TEXTS).tobytes()
    assert copy.deepcopy(embedder) is embedder
    content = pickle.dumps(embedder)
    assert len(content) < 10_000
    assert pickle.loads(content).embed(TEXTS).tobytes() == expected


def test_the_usual_name_finds_what_was_written_there(
    embedder: OnnxEmbedder, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("INQUITREE_MODELS", str(tmp_path))
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "all-MiniLM-L6-v2").symlink_to(exported)
    usual = OnnxEmbedder()
    assert (usual.name, usual.digest) == ("onnx:all-MiniLM-L6-v2", embedder.digest)
    assert usual.embed(TEXTS).tobytes() == embedder.embed(TEXTS).tobytes()


@pytest.mark.parametrize("name", ["onnx:all-MiniLM-L6-v2", "onnx:{}/nowhere"])
def test_a_model_that_was_never_exported_is_told_with_the_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("INQUITREE_MODELS", str(tmp_path))
    missing = OnnxEmbedder(name.format(tmp_path).removeprefix("onnx:"))
    for ask in (lambda: missing.digest, lambda: missing.embed(TEXTS)):
        with pytest.raises(EmbedderError, match=r"there is no onnx model in .*; run: python -m research.onnx"):
            ask()


def replace(file: Path, content: bytes) -> str:
    file.unlink()
    file.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_file_that_was_changed_is_refused_with_both_digests(
    name: str, exported: Path, linked: Callable[[Path], Path]
):
    folder = linked(exported)
    expected = hashlib.sha256((exported / name).read_bytes()).hexdigest()
    found = replace(folder / name, (exported / name).read_bytes()[:-1] + b"!")
    with pytest.raises(EmbedderError, match=f"'{name}' was changed.*{expected}.*{found}") as caught:
        OnnxEmbedder(str(folder)).embed(TEXTS)
    assert str(folder) in str(caught.value)
    assert "make it again with: python -m research.onnx" in str(caught.value)


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


def run(program: str, **variables: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INQUITREE_")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=kept | variables, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


PLAYED = """
import sys
import gymnasium as gym
import inquitree_gym
env = gym.make("InquiTree-paper2-v0", embedder={name!r})
env.reset(seed=0)
*_, info = env.step("How do the animals find their way, and which cells tell them?")
heavy = ("torch", "transformers", "sentence_transformers")
print([name for name in heavy if name in sys.modules], info["state"])
"""


def test_a_process_that_reads_through_onnx_imports_no_torch(exported: Path, tmp_path: Path):
    said = run(PLAYED.format(name=f"onnx:{exported}"), INQUITREE_CACHE=str(tmp_path))
    assert said.startswith("[] ")


def test_without_the_extra_the_message_names_it(exported: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"'onnxruntime' is needed.*inquitree-gym\[onnx\]"):
        OnnxEmbedder(str(exported)).embed(TEXTS)
