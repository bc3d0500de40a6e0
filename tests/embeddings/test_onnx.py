"""MiniLM through ONNX Runtime: the default's vectors, without torch, from files that are checked."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from inquitree_gym.cli import app
from inquitree_gym.embeddings import MiniLMEmbedder, OnnxEmbedder, onnx
from inquitree_gym.embeddings.onnx import export_onnx, texts_to_compare
from inquitree_gym.embeddings.protocol import Vectors
from inquitree_gym.errors import EmbedderError, MissingExtraError
from inquitree_gym.trees import load_tree

pytestmark = pytest.mark.weights

PUBLISHED = "6fd5d72fe4589f189f8ebc006442dbb529bb7ce38f8082112682524616046452"
"""SHA-256 of onnx/model.onnx as the hub lists it."""
TEXTS = ("Place cells remap after a reward moves.", "How quickly do mice learn the second maze?")
LONG = "The animal ran down the track while its head direction cells kept firing. " * 40
ODD = ("", " ", "\n\n", "naïve café ☃ 海馬", "[CLS] [UNK] [SEP]", "x" * 3_000, "A\u200bB")


@pytest.fixture(scope="session")
def embedder(exported: Path) -> OnnxEmbedder:
    return OnnxEmbedder(str(exported))


def test_the_vectors_are_those_of_the_default(embedder: OnnxEmbedder, minilm: MiniLMEmbedder):
    texts = [*list(load_tree("paper2").texts().values())[::2], *texts_to_compare()[-6:], LONG, *ODD]
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


@settings(max_examples=25)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=60), max_size=3))
def test_rows_are_unit_float32_whatever_the_texts(embedder: OnnxEmbedder, texts: list[str]):
    vectors = embedder.embed(texts)
    assert (vectors.dtype, vectors.shape) == (np.float32, (len(texts), 384))
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_name_threshold_and_dimension_are_those_of_the_default_and_the_digest_is_its_own(
    embedder: OnnxEmbedder, minilm: MiniLMEmbedder, exported: Path
):
    assert embedder.name == f"onnx:{exported}"
    assert (embedder.threshold, embedder.dim) == (minilm.threshold, minilm.dim)
    assert re.fullmatch("[0-9a-f]{64}", embedder.digest)
    assert embedder.digest != minilm.digest


def test_more_threads_change_no_number_beyond_rounding(embedder: OnnxEmbedder, exported: Path):
    other = OnnxEmbedder(str(exported), threads=2)
    assert other._model[0].get_session_options().intra_op_num_threads == 2
    assert embedder._model[0].get_session_options().intra_op_num_threads == 1
    assert np.abs(other.embed([*TEXTS, LONG]) - embedder.embed([*TEXTS, LONG])).max() < 1e-5


def test_copies_share_the_weights_and_a_pickle_leaves_them_out(embedder: OnnxEmbedder):
    expected = embedder.embed(TEXTS).tobytes()
    assert copy.deepcopy(embedder) is embedder
    content = pickle.dumps(embedder)
    assert len(content) < 10_000
    assert pickle.loads(content).embed(TEXTS).tobytes() == expected


def test_the_usual_name_finds_what_the_command_writes_there(
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
        with pytest.raises(EmbedderError, match=r"there is no onnx model in .*; run: inquitree export-onnx"):
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
    assert "make it again with: inquitree export-onnx" in str(caught.value)


def test_a_file_that_is_gone_is_named(exported: Path, linked: Callable[[Path], Path]):
    folder = linked(exported)
    (folder / "model.onnx").unlink()
    with pytest.raises(EmbedderError, match=r"'model\.onnx' is missing; make it again with: inquitree export-onnx"):
        OnnxEmbedder(str(folder)).embed(TEXTS)


# The hub's own file


@pytest.fixture
def hub_copy(exported: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "hub"
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "model.onnx").symlink_to(exported / "model.onnx")
    (folder / "tokenizer.json").symlink_to(exported / "tokenizer.json")
    return folder


def test_another_file_in_the_place_of_the_hubs_is_refused(hub_copy: Path):
    with pytest.raises(EmbedderError, match=rf"'onnx/model\.onnx' was changed.*{PUBLISHED}"):
        OnnxEmbedder(str(hub_copy)).embed(TEXTS)


def test_a_copy_of_the_hubs_repository_needs_no_manifest(
    hub_copy: Path, exported: Path, embedder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch
):
    ours = hashlib.sha256((exported / "model.onnx").read_bytes()).hexdigest()
    monkeypatch.setitem(onnx.HUB_FILES, "onnx/model.onnx", ours)
    from_hub = OnnxEmbedder(str(hub_copy))
    assert from_hub.embed(TEXTS).tobytes() == embedder.embed(TEXTS).tobytes()
    assert from_hub.digest != embedder.digest


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
        onnx.HUB_FILES, "onnx/model.onnx", hashlib.sha256((folder / "onnx" / "model.onnx").read_bytes()).hexdigest()
    )
    assert OnnxEmbedder(str(folder)).embed(TEXTS).tobytes() == embedder.embed(TEXTS).tobytes()


def test_the_pinned_digest_is_the_published_one():
    assert onnx.HUB_FILES["onnx/model.onnx"] == PUBLISHED


# The export


def test_an_export_gives_the_same_bytes_again(
    exported: Path, minilm: MiniLMEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(onnx, "COMPARED", 2)
    assert export_onnx(tmp_path / "again", minilm) >= 0.99999
    for name in ("model.onnx", "tokenizer.json", "inquitree.json"):
        assert (tmp_path / "again" / name).read_bytes() == (exported / name).read_bytes()


def test_the_manifest_names_the_weights_and_every_file(exported: Path, minilm: MiniLMEmbedder):
    manifest = json.loads((exported / "inquitree.json").read_text())
    assert (manifest["kind"], manifest["source"], manifest["threshold"]) == ("onnx", minilm.digest, minilm.threshold)
    assert manifest["files"].keys() == {"model.onnx", "tokenizer.json"}


class Backwards:
    """Another model than the one whose weights it hands out."""

    name, digest, threshold = "backwards", "0" * 64, 0.5

    def __init__(self, model: MiniLMEmbedder) -> None:
        self._model = model
        self.weights = model.weights

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._model.embed(texts)[:, ::-1]


def test_an_export_that_differs_from_the_default_is_not_kept(
    minilm: MiniLMEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(onnx, "COMPARED", 2)
    with pytest.raises(EmbedderError, match=r"differs from backwards: cosine -?0\.\d+, expected at least 0\.99999"):
        export_onnx(tmp_path, Backwards(minilm))
    with pytest.raises(EmbedderError, match="there is no onnx model"):
        OnnxEmbedder(str(tmp_path)).embed(TEXTS)


def test_a_folder_that_cannot_be_written_is_told(minilm: MiniLMEmbedder, tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(EmbedderError, match=r"cannot write into .*name another folder with --out"):
        export_onnx(tmp_path / "file" / "model", minilm)


@pytest.mark.parametrize("named", [True, False])
def test_the_command_exports_and_says_the_name(named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(onnx, "COMPARED", 3)
    monkeypatch.setenv("INQUITREE_MODELS", str(tmp_path / "models"))
    flags = ["--out", str(tmp_path / "mine"), "--threads", "2"] if named else []
    done = CliRunner().invoke(app, ["export-onnx", "--embedder", "all-MiniLM-L6-v2", *flags], catch_exceptions=False)
    model = str(tmp_path / "mine") if named else "all-MiniLM-L6-v2"
    assert re.search(r"lowest cosine .* over .* of 1 to 400 words: (1\.0|0\.99999)", done.stdout)
    assert f"its name is onnx:{model}" in " ".join(done.stderr.split())
    assert (OnnxEmbedder(model).embed(TEXTS) @ OnnxEmbedder(model).embed(TEXTS).T).shape == (2, 2)


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


def test_the_test_of_imports_would_notice_torch(tmp_path: Path):
    said = run(PLAYED.format(name="all-MiniLM-L6-v2"), INQUITREE_CACHE=str(tmp_path))
    assert said.startswith("['torch', 'transformers', 'sentence_transformers']")


@pytest.mark.parametrize(("module", "what"), [("onnxruntime", "embed"), ("onnx", "export")])
def test_without_the_extra_the_message_names_it(
    module: str, what: str, exported: Path, minilm: MiniLMEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, module, None)
    tasks: dict[str, Callable[[], object]] = {
        "embed": lambda: OnnxEmbedder(str(exported)).embed(TEXTS),
        "export": lambda: export_onnx(tmp_path, minilm),
    }
    with pytest.raises(MissingExtraError, match=rf"'{module}' is needed.*inquitree-gym\[onnx\]"):
        tasks[what]()
