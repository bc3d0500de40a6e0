"""Models made from MiniLM and the reader, once for all tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inquitree_gym.embeddings import MiniLMEmbedder, ReaderEmbedder
from inquitree_gym.trees import load_tree
from research.onnx.graph import export_onnx
from research.static.fitting import TableFit, Vocabulary, make_vocabulary, save_static

STATIC_TEXTS = tuple(load_tree("paper17").texts().values())[:40]
STATIC_THRESHOLD = 0.9
"""High, since a table of so few words finds all texts alike."""


@pytest.fixture(scope="session")
def exported(minilm: MiniLMEmbedder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MiniLM as ONNX. Not to be changed."""
    folder = tmp_path_factory.mktemp("onnx") / "model"
    export_onnx(folder, minilm)
    return folder


@pytest.fixture(scope="session")
def exported_reader(reader: ReaderEmbedder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reader as ONNX. Not to be changed."""
    folder = tmp_path_factory.mktemp("onnx") / "model"
    export_onnx(folder, reader)
    return folder


@pytest.fixture(scope="session")
def vocabulary(minilm: MiniLMEmbedder) -> Vocabulary:
    """Single letters and the commonest words."""
    counted = tuple(load_tree("paper17").texts().values())
    return make_vocabulary(minilm, 2_100, lambda: None).reweighted(counted)


@pytest.fixture(scope="session")
def distilled(minilm: MiniLMEmbedder, vocabulary: Vocabulary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small static model that has learned some texts. Not to be changed."""
    folder = tmp_path_factory.mktemp("static") / "model"
    table = TableFit(vocabulary, STATIC_TEXTS, minilm.embed(STATIC_TEXTS)).table()
    save_static(folder, minilm.digest, vocabulary, table, STATIC_THRESHOLD)
    return folder


@pytest.fixture
def linked(tmp_path: Path) -> Callable[[Path], Path]:
    """Return a function that copies a model's folder so that its files may be replaced."""

    def link(source: Path) -> Path:
        copy = tmp_path / "copy"
        copy.mkdir()
        for file in source.iterdir():
            (copy / file.name).symlink_to(file)
        return copy

    return link
