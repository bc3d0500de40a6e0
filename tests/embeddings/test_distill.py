"""The fit behind a static model, and the files it is kept in."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from inquitree_gym.embeddings import MiniLMEmbedder, StaticEmbedder
from inquitree_gym.embeddings.protocol import unit_rows
from inquitree_gym.embeddings.static import (
    PIECES,
    TableFit,
    Vocabulary,
    make_vocabulary,
    save_static,
)
from inquitree_gym.errors import EmbedderError, MissingExtraError, OptionError
from inquitree_gym.trees import load_tree

pytestmark = pytest.mark.weights

TEXTS = tuple(load_tree("paper17").texts().values())[:60]

SOURCE = "0" * 64
"""Digest of the model that a table was derived from."""


@pytest.fixture(scope="session")
def taught(minilm: MiniLMEmbedder) -> np.ndarray:
    return minilm.embed(TEXTS)


@pytest.fixture
def pupil(vocabulary: Vocabulary, taught: np.ndarray) -> TableFit:
    return TableFit(vocabulary, TEXTS, taught)


def test_a_piece_has_the_vector_that_the_default_gives_it_alone(vocabulary: Vocabulary, minilm: MiniLMEmbedder):
    words = ["the", "a", "time"]
    ids = [vocabulary.tokenizer.token_to_id(word) for word in words]
    assert np.abs(unit_rows(vocabulary.vectors[ids]) - minilm.embed(words)).max() < 1e-5
    assert vocabulary.vectors.shape == (2_100, 384)


def test_the_progress_is_told_once_for_every_batch_of_pieces(minilm: MiniLMEmbedder):
    told: list[None] = []
    make_vocabulary(minilm, 4 * PIECES + 1, lambda: told.append(None))
    assert len(told) == 5


def test_common_pieces_weigh_little_and_counting_makes_them_lighter(vocabulary: Vocabulary):
    the, time = (vocabulary.tokenizer.token_to_id(word) for word in ("the", "time"))
    assert 0 < vocabulary.weights[the] < vocabulary.weights[time] <= 1
    letter = vocabulary.tokenizer.token_to_id("b")
    often, never = (vocabulary.reweighted(texts).weights[letter] for texts in (["b c b b"], ["c"]))
    assert often < never


def test_counts_are_those_of_the_pieces_without_the_unknown(vocabulary: Vocabulary):
    counts = vocabulary.counts(["time and time", "", "☃"]).toarray()
    time, and_ = (vocabulary.tokenizer.token_to_id(word) for word in ("time", "and"))
    assert (counts[0, time], counts[0, and_], counts[0].sum()) == (2, 1, 3)
    assert not counts[1:].any()


@pytest.mark.parametrize("left_out", [[0], [3, 17, 40], list(range(5, 50))])
def test_what_a_fit_without_some_texts_says_is_what_fitting_again_says(
    left_out: list[int], pupil: TableFit, vocabulary: Vocabulary, taught: np.ndarray
):
    kept = [index for index in range(len(TEXTS)) if index not in left_out]
    again = TableFit(vocabulary, [TEXTS[index] for index in kept], taught[kept])
    expected = vocabulary.embed(TEXTS, again.table())
    assert np.abs(pupil.leave_out(np.array(left_out)) - expected).max() < 1e-4
    whole = vocabulary.embed(TEXTS, pupil.table())
    assert np.abs(pupil.leave_out(np.array(left_out))[left_out] - whole[left_out]).max() > 0.01


def test_the_fit_comes_nearer_to_its_lessons_than_a_plain_distillation(
    pupil: TableFit, vocabulary: Vocabulary, taught: np.ndarray
):
    target = (taught @ taught.T)[np.triu_indices(len(TEXTS), 1)]

    def correlation(vectors: np.ndarray) -> float:
        return float(np.corrcoef((vectors @ vectors.T)[np.triu_indices(len(TEXTS), 1)], target)[0, 1])

    plain = vocabulary.embed(TEXTS, vocabulary.plain_table())
    assert plain.shape == (len(TEXTS), 256)
    assert correlation(plain) < correlation(vocabulary.embed(TEXTS, pupil.table())) - 0.1


@pytest.mark.parametrize("size", [0, 999, 30_523])
def test_a_size_out_of_range_is_told(size: int, minilm: MiniLMEmbedder):
    with pytest.raises(OptionError, match=f"has 1000 to 30522 word pieces, not {size}"):
        make_vocabulary(minilm, size, lambda: None)


# What is kept


@pytest.fixture
def folder(pupil: TableFit, vocabulary: Vocabulary, tmp_path: Path) -> Path:
    save_static(tmp_path, SOURCE, vocabulary, pupil.table(), 0.55, agreement={"plain": {"right": 0.5}})
    return tmp_path


def test_a_saved_model_reads_as_the_fit_does(folder: Path, pupil: TableFit, vocabulary: Vocabulary):
    expected = vocabulary.embed(TEXTS, pupil.table())
    assert np.abs(StaticEmbedder(str(folder)).embed(TEXTS) - expected).max() < 1e-5


def test_the_manifest_has_threshold_evidence_and_files(folder: Path):
    manifest = json.loads((folder / "inquitree.json").read_text())
    assert (manifest["kind"], manifest["source"], manifest["threshold"]) == ("static", SOURCE, 0.55)
    assert manifest["evidence"] == {"agreement": {"plain": {"right": 0.5}}}
    assert manifest["files"].keys() == {"model.safetensors", "tokenizer.json", "config.json"}


def test_another_table_has_another_digest(folder: Path, pupil: TableFit, vocabulary: Vocabulary, tmp_path: Path):
    before = StaticEmbedder(str(folder)).digest
    assert save_static(tmp_path / "same", SOURCE, vocabulary, pupil.table(), 0.4).digest == before
    assert save_static(tmp_path / "other", SOURCE, vocabulary, 2 * pupil.table(), 0.4).digest != before


def test_without_the_extra_nothing_is_written(vocabulary: Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(MissingExtraError, match=r"inquitree-gym\[static\]"):
        save_static(tmp_path / "model", SOURCE, vocabulary, vocabulary.vectors, 0.5)
    assert not (tmp_path / "model").exists()


def test_a_folder_that_cannot_be_written_is_told(vocabulary: Vocabulary, tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(EmbedderError, match=r"cannot write into .*--out"):
        save_static(tmp_path / "file", SOURCE, vocabulary, vocabulary.vectors, 0.5)
