"""The export of MiniLM and of the reader as ONNX: the same bytes again, and nothing is kept that differs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from inquitree_gym.embeddings import MiniLMEmbedder, OnnxEmbedder, load_embedder
from inquitree_gym.embeddings.protocol import Vectors
from inquitree_gym.errors import EmbedderError, MissingExtraError
from research.onnx import __main__ as command
from research.onnx import graph
from research.onnx.graph import export_onnx

pytestmark = pytest.mark.weights

TEXTS = ("Place cells remap after a reward moves.", "How quickly do mice learn the second maze?")


@pytest.fixture(autouse=True)
def few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare few texts after an export."""
    monkeypatch.setattr(graph, "COMPARED", 3)


@pytest.mark.parametrize("name", ["inquitree-reader-2", "all-MiniLM-L6-v2"])
def test_the_command_exports_the_model_of_that_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("INQUITREE_MODELS", str(tmp_path))
    done = CliRunner().invoke(command.app, ["--embedder", name], catch_exceptions=False)
    assert f"lowest cosine to the vectors of {name}" in " ".join(done.stdout.split())
    assert f"its name is onnx:{name}" in " ".join(done.stderr.split())
    made, source = OnnxEmbedder(name), load_embedder(name)
    assert made.threshold == source.threshold
    assert np.abs(made.embed(TEXTS) - source.embed(TEXTS)).max() < 1e-5
    folder = tmp_path / "onnx" / name
    manifest = json.loads((folder / "inquitree.json").read_text())
    assert (manifest["kind"], manifest["source"], manifest["threshold"]) == ("onnx", source.digest, source.threshold)
    assert manifest["files"].keys() == {"model.onnx", "tokenizer.json"}
    again = CliRunner().invoke(command.app, ["--embedder", name, "--out", str(tmp_path / "again"), "--threads", "2"])
    assert f"its name is onnx:{tmp_path / 'again'}" in " ".join(again.stderr.split())
    for file in ("model.onnx", "tokenizer.json", "inquitree.json"):
        assert (tmp_path / "again" / file).read_bytes() == (folder / file).read_bytes()


class Backwards:
    """Another model than the one whose weights it hands out."""

    name, digest, threshold = "backwards", "0" * 64, 0.5

    def __init__(self, model: MiniLMEmbedder) -> None:
        self._model = model
        self.weights = model.weights

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._model.embed(texts)[:, ::-1]


def test_an_export_that_differs_from_its_source_is_not_kept(minilm: MiniLMEmbedder, tmp_path: Path):
    with pytest.raises(EmbedderError, match=r"differs from backwards: cosine -?0\.\d+, expected at least 0\.99999"):
        export_onnx(tmp_path, Backwards(minilm))
    with pytest.raises(EmbedderError, match="there is no onnx model"):
        OnnxEmbedder(str(tmp_path)).embed(TEXTS)


def test_what_stops_an_export(minilm: MiniLMEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").touch()
    with pytest.raises(EmbedderError, match=r"cannot write into .*name another folder with --out"):
        export_onnx(tmp_path / "file" / "model", minilm)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"This needs 'onnx', which is not installed.*'\.\[test\]'"):
        export_onnx(tmp_path, minilm)
