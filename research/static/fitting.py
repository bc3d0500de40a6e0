"""Fitting of a static model: a table of vectors of word pieces, whose means approach the vectors of MiniLM.

A row of the table is ``weight · (v A + δ)``, with v the MiniLM vector of the piece, A a map shared by all pieces, and δ
an offset of the piece. Ridge regression of whole texts on their MiniLM vectors fits A and δ together, in the dual form:
one equation per text, no training loop, no randomness. The inverse of the dual matrix also gives the exact result of a
fit that leaves some of the texts out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings import MiniLMEmbedder
from inquitree_gym.embeddings.derived import TOKENIZER, WINDOW, Manifest
from inquitree_gym.embeddings.local import minilm_folder, torch_threads
from inquitree_gym.embeddings.protocol import Vectors, unit_rows
from inquitree_gym.errors import OptionError, require
from research.sealing import seal, writing

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from tokenizers import Tokenizer

OWN = 1.5
"""Prior variance of δ relative to that of A."""
RIDGE = 0.5
"""Ridge penalty. The diagonal of the dual matrix is near 1 + `OWN`."""
RANK_WEIGHT, COUNT_WEIGHT = 1e-4, 1e-3
"""a in the weight a / (a + p) of a word piece, with p its share by Zipf's law and by counts, respectively."""
PLAIN_DIM = 256
"""Dimensions of the plain distillation, the baseline of the comparison."""
PIECES = 256
"""Word pieces per batch."""
FILES = ("model.safetensors", "tokenizer.json", "config.json")
"""Files that decide a static model's vectors."""

MIN_PIECES = 1_000
"""Smallest vocabulary. The first word pieces of MiniLM are mostly reserved tokens and single characters."""
UNKNOWN = "[UNK]"

Advance = Callable[[], None]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Vocabulary:
    """The word pieces of a static model, with their vectors and weights before the fit."""

    tokenizer: Tokenizer
    vectors: Vectors
    """MiniLM vector of each piece by itself, not normalised, shape ``(pieces, 384)``."""
    weights: NDArray[np.float32]
    """Weight of each piece in a text, in (0, 1], low for common pieces. Shape ``(pieces,)``."""

    def reweighted(self, texts: Sequence[str]) -> Vocabulary:
        """Return this vocabulary with weights from the counts in ``texts``, too."""
        counts = np.asarray(self.counts(texts).sum(axis=0))
        shares = (counts + 1) / (counts.sum() + len(counts))
        weights = _rank_weights(len(counts)) * COUNT_WEIGHT / (COUNT_WEIGHT + shares)
        return replace(self, weights=weights.astype(np.float32))

    def counts(self, texts: Sequence[str]) -> csr_array:
        """Return the count of each piece in each text, shape ``(texts, pieces)``, without unknown pieces."""
        from scipy.sparse import csr_array

        unknown = self.tokenizer.token_to_id(UNKNOWN)
        read = [
            [i for i in e.ids if i != unknown] for e in self.tokenizer.encode_batch(texts, add_special_tokens=False)
        ]
        ends = np.cumsum([0, *map(len, read)])
        columns = np.array([i for ids in read for i in ids], np.intp)
        counts = csr_array((np.ones(len(columns), np.float32), columns, ends), (len(texts), len(self.vectors)))
        counts.sum_duplicates()
        return counts

    def plain_table(self) -> Vectors:
        """Return the table of a plain model2vec distillation: principal components with Zipf weights."""
        centred = self.vectors - self.vectors.mean(axis=0)
        _, axes = np.linalg.eigh(centred.T @ centred)
        main = centred @ axes[:, ::-1][:, :PLAIN_DIM]
        return np.asarray(main * _rank_weights(len(main))[:, None], np.float32)

    def embed(self, texts: Sequence[str], table: Vectors) -> Vectors:
        """Return the vectors of ``texts`` under ``table``, shape ``(texts, dim)``, rows of unit length."""
        return unit_rows(np.asarray(self.counts(texts) @ table))


class TableFit:
    """Fit of a table to training texts and their MiniLM vectors, shape ``(texts, 384)``."""

    def __init__(self, vocabulary: Vocabulary, texts: Sequence[str], vectors: Vectors) -> None:
        """Store the training data. The fit runs on first use."""
        self.vocabulary = vocabulary
        self._texts = texts
        self._vectors = vectors

    def table(self) -> Vectors:
        """Return the fitted table, shape ``(pieces, 384)``."""
        shared = self._features @ (self._states.T @ self._solution)
        rows = shared + OWN * (self._rows.T @ self._solution)
        return np.asarray(self.vocabulary.weights[:, None] * rows, np.float32)

    def leave_out(self, left_out: Indices) -> Vectors:
        """Return the vectors of all training texts under a fit without those at ``left_out``, shape ``(texts, 384)``.

        The numbers equal those of fitting again. With H the inverse of the dual matrix and α its solution, the
        residuals of the left-out texts are ``c = H_oo⁻¹ α_o``, those of the other texts ``ridge · (α − H c)``.
        """
        coefficients = np.linalg.solve(self._inverse[np.ix_(left_out, left_out)], self._solution[left_out])
        residuals = RIDGE * (self._solution - self._inverse[:, left_out] @ coefficients)
        residuals[left_out] = coefficients
        return unit_rows(self._vectors - residuals)

    @cached_property
    def _features(self) -> Vectors:
        """Centred vectors of the pieces, scaled to a mean length of 1."""
        centred = self.vocabulary.vectors - self.vocabulary.vectors.mean(axis=0)
        return np.asarray(centred / np.linalg.norm(centred, axis=1).mean(), np.float32)

    @cached_property
    def _rows(self) -> csr_array:
        """Weighted counts of each text, scaled so that its mean feature has unit length, as its target has."""
        weighted = self.vocabulary.counts(self._texts).multiply(self.vocabulary.weights[None, :]).tocsr()
        lengths = np.linalg.norm(weighted @ self._features, axis=1)
        return weighted.multiply(1 / np.where(lengths > 0, lengths, 1)[:, None]).tocsr().astype(np.float32)

    @cached_property
    def _states(self) -> Vectors:
        """Mean feature of each text."""
        return np.asarray(self._rows @ self._features)

    @cached_property
    def _inverse(self) -> NDArray[np.float32]:
        from scipy.linalg.lapack import spotrf, spotri

        dual = self._states @ self._states.T + OWN * (self._rows @ self._rows.T).toarray()
        dual[np.diag_indices_from(dual)] += RIDGE
        lower, _ = spotri(spotrf(dual, lower=1, clean=1)[0], lower=1)
        return np.asarray(lower + np.tril(lower, -1).T, np.float32)

    @cached_property
    def _solution(self) -> NDArray[np.float32]:
        return self._inverse @ self._vectors


def make_vocabulary(teacher: MiniLMEmbedder, size: int, advance: Advance) -> Vocabulary:
    """Return the first ``size`` word pieces of MiniLM, weighted by rank.

    ``advance`` is called once per batch of `PIECES` pieces.

    Raises:
        OptionError: ``size`` is below `MIN_PIECES` or above the vocabulary of MiniLM.
    """
    tokenizer = _tokenizer(size)
    vectors = np.concatenate(list(_piece_vectors(teacher, size, advance)))
    return Vocabulary(tokenizer, vectors, _rank_weights(size).astype(np.float32))


def save_static(
    folder: Path, source: str, vocabulary: Vocabulary, table: Vectors, threshold: float, **evidence: Any
) -> Manifest:
    """Write a static model in the format of model2vec, with its manifest. ``source`` is the digest of its teacher.

    Raises:
        EmbedderError: the folder cannot be written.
        MissingExtraError: the extra ``static`` is not installed.
    """
    models = require("model2vec", "static")
    model = models.StaticModel(table, vocabulary.tokenizer, normalize=True, max_length=WINDOW)
    with writing(folder):
        model.save_pretrained(folder)
        (folder / "README.md").unlink()  # the generated model card describes another kind of model
        return seal(folder, "static", source, threshold, FILES, **evidence)


def _tokenizer(size: int) -> Tokenizer:
    """Return the tokenizer of MiniLM restricted to its first ``size`` pieces. Other text becomes unknown."""
    from tokenizers import Tokenizer

    whole = json.loads((minilm_folder() / TOKENIZER).read_bytes())
    vocabulary = whole["model"]["vocab"]
    if not MIN_PIECES <= size <= len(vocabulary):
        raise OptionError(f"the vocabulary has {MIN_PIECES} to {len(vocabulary)} word pieces, not {size}")
    whole["model"]["vocab"] = {piece: index for piece, index in vocabulary.items() if index < size}
    tokenizer = Tokenizer.from_str(json.dumps(whole))
    tokenizer.enable_truncation(WINDOW)
    tokenizer.no_padding()
    return tokenizer


def _piece_vectors(teacher: MiniLMEmbedder, size: int, advance: Advance) -> Iterator[Vectors]:
    import torch

    model = teacher._model
    start, end = model.tokenizer.cls_token_id, model.tokenizer.sep_token_id
    for first in range(0, size, PIECES):
        ids = torch.tensor([[start, piece, end] for piece in range(first, min(first + PIECES, size))])
        with torch.inference_mode(), torch_threads(teacher._threads):
            read = model({"input_ids": ids, "attention_mask": torch.ones_like(ids)})
        yield read["token_embeddings"].mean(dim=1).numpy()
        advance()


def _rank_weights(size: int) -> NDArray[np.float64]:
    shares = 1 / np.arange(2, size + 2, dtype=np.float64)
    return np.asarray(RANK_WEIGHT / (RANK_WEIGHT + shares / shares.sum()))
