"""The fit behind a static model, and the files it is kept in."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from inquitree_gym.embeddings import MiniLMEmbedder, StaticEmbedder
from inquitree_gym.trees import load_tree
from research.static.fitting import TableFit, Vocabulary, make_vocabulary, save_static

pytestmark = pytest.mark.weights

TEXTS = tuple(load_tree("paper17").texts().values())[:60]

SOURCE = "0" * 64
"""Digest of the model that a table was derived from."""


@pytest.fixture(scope="session")
def vocabulary(minilm: MiniLMEmbedder) -> Vocabulary:
    """Single letters and the commonest words."""
    counted = tuple(load_tree("paper17").texts().values())
    return make_vocabulary(minilm, 2_100, lambda: None).reweighted(counted)


@pytest.fixture(scope="session")
def taught(minilm: MiniLMEmbedder) -> np.ndarray:
    return minilm.embed(TEXTS)


@pytest.fixture
def pupil(vocabulary: Vocabulary, taught: np.ndarray) -> TableFit:
    return TableFit(vocabulary, TEXTS, taught)


def test_common_pieces_weigh_little_and_counting_makes_them_lighter(vocabulary: Vocabulary):
    the, time = (vocabulary.tokenizer.token_to_id(word) for word in ("the", "time"))
    assert 0 < vocabulary.weights[the] < vocabulary.weights[time] <= 1
    letter = vocabulary.tokenizer.token_to_id("b")
    often, never = (vocabulary.reweighted(texts).weights[letter] for texts in (["b c b b"], ["c"]))
    assert often < never


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
