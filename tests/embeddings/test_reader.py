"""The reader: MiniLM with an adapter merged at load, both checked, and the same vectors wherever it runs."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from inquitree_gym.embeddings import MiniLMEmbedder, OnnxEmbedder, ReaderEmbedder, load_embedder
from inquitree_gym.embeddings.local import ADAPTER_DIGEST, BASE, DOWN, TURN, UP, Adapter, adapter_file, read_adapter
from inquitree_gym.errors import EmbedderError
from inquitree_gym.trees import load_tree
from research.blind.readings import blind_sets, read_cases
from research.proposals import matching_cases, reading_shares

pytestmark = pytest.mark.weights

NAME = "inquitree-reader-2"
TEXTS = ("Place cells remap after a reward moves.", "How quickly do mice learn the second maze?", "", "naïve ☃ 海馬")
LINEAR_LAYERS = 36
"""Six in each of MiniLM's six layers."""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the adapter that may be changed."""
    copy = tmp_path / "adapter.safetensors"
    copy.write_bytes(adapter_file().read_bytes())
    return copy


def has_cuda() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


without_cuda = pytest.mark.skipif(has_cuda(), reason="there is a CUDA device")


# Vectors


def test_vectors_are_near_those_of_minilm_and_not_the_same(reader: ReaderEmbedder, minilm: MiniLMEmbedder):
    texts = [subtopic.text for name in ("paper8", "paper12") for subtopic in load_tree(name).subtopics]
    ours, theirs = reader.embed(texts), minilm.embed(texts)
    to_own = np.einsum("td,td->t", ours, theirs)
    assert to_own.max() < 0.999
    assert ((ours @ theirs.T).argmax(axis=1) == np.arange(len(texts))).all(), "a text left its own neighbourhood"


def test_less_is_misread_or_taken_though_foreign_than_by_minilm(reader: ReaderEmbedder, minilm: MiniLMEmbedder):
    trees = ("paper11", "paper12", "paper24")
    cases = [case for case in matching_cases(blind_sets()) if case.tree in trees and not case.is_study]
    ours, theirs = (
        reading_shares([each.found for each in read_cases(cases, embedder)], embedder.threshold)
        for embedder in (reader, minilm)
    )
    assert ours.understood.mean > theirs.understood.mean
    assert ours.misread.mean < theirs.misread.mean - 0.1
    assert ours.foreign.mean < theirs.foreign.mean - 0.3


# The adapter


def test_a_merged_weight_is_the_weight_with_the_product_of_its_factors():
    draws = np.random.default_rng(0)
    weight = draws.standard_normal((5, 4)).astype(np.float32)
    up, down = (draws.standard_normal(shape).astype(np.float16) for shape in ((5, 2), (2, 4)))
    factors = {f"layer.weight{UP}": up, f"layer.weight{DOWN}": down}
    adapter = Adapter(BASE, 0.25, factors, np.eye(384, dtype=np.float32))
    assert adapter.names == ["layer.weight"]
    merged = adapter.merged({"layer.weight": weight, "other.weight": weight})
    assert merged.keys() == {"layer.weight"}
    by_hand = weight.astype(np.float64)
    for i in range(2):
        by_hand += 0.25 * np.outer(up[:, i].astype(np.float64), down[i].astype(np.float64))
    assert merged["layer.weight"].dtype == np.float32
    assert np.abs(merged["layer.weight"] - by_hand).max() < 1e-6


def test_the_loaded_model_has_the_merged_weights_and_the_others_of_minilm(
    reader: ReaderEmbedder, minilm: MiniLMEmbedder
):
    names = set(read_adapter(adapter_file()).names)
    assert len(names) == LINEAR_LAYERS
    loaded = {name: each.numpy(force=True) for name, each in reader._model[0].auto_model.state_dict().items()}
    merged, plain = reader.weights(), minilm.weights()
    assert merged.keys() == plain.keys() | {TURN}
    for name in plain.keys() & loaded.keys():
        assert loaded[name].tobytes() == merged[name].tobytes(), name
        assert (merged[name].tobytes() != plain[name].tobytes()) == (name in names), name
    assert names <= loaded.keys()


def test_name_dimension_and_threshold_are_known_without_loading(tmp_path: Path):
    fresh = ReaderEmbedder(adapter=tmp_path / "nowhere")
    assert (fresh.name, fresh.dim) == (NAME, 384)
    assert -1 < fresh.threshold < 1
    assert NAME in repr(fresh)


@pytest.mark.parametrize("what", ["embed", "weights"])
def test_an_adapter_that_was_changed_is_refused_with_both_digests(what: str, copied: Path):
    content = bytearray(copied.read_bytes())
    content[-1] ^= 1
    copied.write_bytes(content)
    found = hashlib.sha256(content).hexdigest()
    embedder = ReaderEmbedder(adapter=copied)
    with pytest.raises(
        EmbedderError, match=f"'{copied}' was changed: expected SHA-256 {ADAPTER_DIGEST}, found {found}"
    ):
        embedder.embed(TEXTS) if what == "embed" else embedder.weights()


def test_a_missing_adapter_is_told_with_what_to_do(tmp_path: Path):
    missing = tmp_path / "gone.safetensors"
    with pytest.raises(EmbedderError, match=rf"the adapter '{missing}' is missing; install inquitree-gym again"):
        ReaderEmbedder(adapter=missing).embed(TEXTS)


def test_the_file_says_how_it_was_trained():
    from safetensors import safe_open

    with safe_open(adapter_file(), "np") as stored:
        about = stored.metadata()["inquitree"]
    for setting in ('"seed"', '"dropout"', '"epochs"', '"paper12"', BASE):
        assert setting in about


# Devices


@without_cuda
@pytest.mark.parametrize("name", [NAME, "all-MiniLM-L6-v2"])
def test_cuda_without_a_device_is_an_error_that_names_the_others(name: str):
    with pytest.raises(EmbedderError, match=r"device='cuda' needs a CUDA device .*found none; use 'cpu' or 'auto'"):
        load_embedder(name, device="cuda").embed(TEXTS)


@without_cuda
def test_auto_is_the_cpu_where_there_is_no_other(reader: ReaderEmbedder):
    auto = load_embedder(NAME, device="auto")
    assert (auto.name, auto.digest) == (reader.name, reader.digest)
    assert auto.embed(TEXTS).tobytes() == reader.embed(TEXTS).tobytes()


@pytest.mark.skipif(not has_cuda(), reason="there is no CUDA device")
@pytest.mark.parametrize("name", [NAME, "all-MiniLM-L6-v2"])
def test_cuda_gives_the_same_vectors_within_1e_5(name: str):
    texts = list(load_tree("paper12").texts().values())
    there = load_embedder(name, device="cuda")
    assert np.abs(there.embed(texts) - load_embedder(name).embed(texts)).max() < 1e-5
    assert there.digest == load_embedder(name).digest


# Through ONNX Runtime


def test_the_exported_reader_has_its_vectors_and_its_threshold(exported_reader: Path, reader: ReaderEmbedder):
    embedder = OnnxEmbedder(str(exported_reader))
    texts = [*TEXTS, *list(load_tree("paper2").texts().values())[::3]]
    assert np.abs(embedder.embed(texts) - reader.embed(texts)).max() < 1e-5
    assert embedder.threshold == reader.threshold != MiniLMEmbedder.threshold
    assert embedder.digest not in (reader.digest, MiniLMEmbedder.digest)


def test_through_onnx_auto_is_the_cpu_and_cuda_is_refused_without_its_build(exported_reader: Path):
    name = f"onnx:{exported_reader}"
    expected = load_embedder(name).embed(TEXTS)
    assert load_embedder(name, device="auto").embed(TEXTS).tobytes() == expected.tobytes()
    with pytest.raises(EmbedderError, match="device='cuda' needs onnxruntime-gpu and a CUDA device"):
        load_embedder(name, device="cuda").embed(TEXTS)
