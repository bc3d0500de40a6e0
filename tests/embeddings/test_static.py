"""A static model: fast, deterministic, deaf to its neighbours, and never without its files."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.embeddings import MiniLMEmbedder, StaticEmbedder
from inquitree_gym.errors import EmbedderError, MissingExtraError
from inquitree_gym.trees import load_tree
from research.static.fitting import TableFit, Vocabulary, save_static

pytestmark = pytest.mark.weights

THRESHOLD = 0.9
"""High, since a table of so few words finds all texts alike."""
TEXTS = tuple(load_tree("paper17").texts().values())[:40]


@pytest.fixture(scope="session")
def distilled(minilm: MiniLMEmbedder, vocabulary: Vocabulary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small static model that has learned some texts. Not to be changed."""
    folder = tmp_path_factory.mktemp("static") / "model"
    save_static(folder, minilm.digest, vocabulary, TableFit(vocabulary, TEXTS, minilm.embed(TEXTS)).table(), THRESHOLD)
    return folder


@pytest.fixture(scope="session")
def embedder(distilled: Path) -> StaticEmbedder:
    return StaticEmbedder(str(distilled))


@settings(max_examples=100)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=400) | st.sampled_from(TEXTS), min_size=1, max_size=9))
def test_a_row_has_the_same_bytes_whatever_its_neighbours(embedder: StaticEmbedder, texts: list[str]):
    alone = [embedder.embed([text])[0].tobytes() for text in texts]
    assert [row.tobytes() for row in embedder.embed(texts)] == alone
    assert [row.tobytes() for row in embedder.embed(texts[::-1])] == alone[::-1]


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=60), max_size=4))
def test_rows_are_float32_of_unit_length_or_zero_where_no_piece_is_known(embedder: StaticEmbedder, texts: list[str]):
    vectors = embedder.embed(texts)
    lengths = np.linalg.norm(vectors, axis=1)
    assert (vectors.dtype, vectors.shape) == (np.float32, (len(texts), 384))
    assert all(abs(length - 1) < 1e-5 or length == 0 for length in lengths)


def test_what_comes_after_the_window_does_not_count(embedder: StaticEmbedder):
    long = "the time of the year " * 100
    whole, more = embedder.embed([long, long + "in a city"])
    assert whole.tobytes() == more.tobytes()


def test_name_threshold_dimension_and_digest_come_from_the_folder(embedder: StaticEmbedder, distilled: Path):
    assert embedder.name == f"static:{distilled}"
    assert (embedder.threshold, embedder.dim) == (THRESHOLD, 384)
    assert re.fullmatch("[0-9a-f]{64}", embedder.digest)
    assert embedder.digest == embedder.manifest.digest


def test_an_environment_takes_it_by_name_with_its_own_threshold(distilled: Path):
    env = gym.make("InquiTree-paper17-v0", embedder=f"static:{distilled}")
    assert env.unwrapped.rules.threshold == THRESHOLD
    env.reset(seed=0)
    assert env.step(env.unwrapped.tree.subtopics[0].text)[4]["accepted"]
    env.reset(seed=0)
    assert not env.step("bread rises in a hot oven")[4]["accepted"]


def test_the_usual_name_finds_what_was_written_there(
    distilled: Path, embedder: StaticEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("INQUITREE_MODELS", str(tmp_path))
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "all-MiniLM-L6-v2").symlink_to(distilled)
    usual = StaticEmbedder()
    assert (usual.name, usual.digest) == ("static:all-MiniLM-L6-v2", embedder.digest)
    assert usual.embed(TEXTS).tobytes() == embedder.embed(TEXTS).tobytes()


ASKS: dict[str, Callable[[StaticEmbedder], object]] = {
    "threshold": lambda embedder: embedder.threshold,
    "digest": lambda embedder: embedder.digest,
    "dim": lambda embedder: embedder.dim,
    "embed": lambda embedder: embedder.embed(TEXTS),
}


@pytest.mark.parametrize("what", ASKS)
def test_before_it_was_distilled_one_message_says_how(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("INQUITREE_MODELS", str(tmp_path))
    for model in ("all-MiniLM-L6-v2", str(tmp_path / "elsewhere")):
        with pytest.raises(EmbedderError, match=r"there is no static model in .*; run: python -m research.static"):
            ASKS[what](StaticEmbedder(model))


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_file_that_was_changed_is_refused(name: str, distilled: Path, linked: Callable[[Path], Path]):
    folder = linked(distilled)
    content = (distilled / name).read_bytes()
    (folder / name).unlink()
    (folder / name).write_bytes(content[:-1] + b" ")
    with pytest.raises(EmbedderError, match=f"'{name}' was changed.*again with: python -m research.static"):
        StaticEmbedder(str(folder)).embed(TEXTS)


def test_without_the_extra_the_message_names_it(distilled: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(MissingExtraError, match=r"'model2vec' is needed.*inquitree-gym\[static\]"):
        StaticEmbedder(str(distilled)).embed(TEXTS)


def test_reading_imports_no_torch(distilled: Path):
    program = (
        "import sys\n"
        "from inquitree_gym.embeddings import load_embedder\n"
        f"load_embedder('static:{distilled}').embed(['a place cell'])\n"
        "print([name for name in ('torch', 'transformers', 'sentence_transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
