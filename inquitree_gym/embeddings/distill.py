"""Distil a static model: a table of word-piece vectors whose mean over a text comes near the default model's vector.

A row of the table is ``weight · (v A + δ)``: v is MiniLM's own vector of the piece, A a map that all pieces share, δ a
vector of the piece's own. A and δ are fitted at once, by ridge regression of whole texts on their MiniLM vectors, in
the dual form: one equation a text, no training loop, nothing drawn. The inverse of the dual's matrix also tells,
exactly, what a fit without some of the texts makes of every text.
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

from inquitree_gym.embeddings.artifacts import Manifest, seal, writing
from inquitree_gym.embeddings.local import MINILM_FILES, MiniLMEmbedder, minilm_folder, torch_threads
from inquitree_gym.embeddings.onnx import TOKENIZER, WINDOW
from inquitree_gym.embeddings.protocol import Vectors, unit_rows
from inquitree_gym.errors import OptionError, require

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from tokenizers import Tokenizer

OWN = 1.5
"""Freedom of δ, against that of A."""
RIDGE = 0.5
"""Strength of the regularisation; a text's row in the dual has a length near 1 + `OWN`."""
RANK_WEIGHT, COUNT_WEIGHT = 1e-4, 1e-3
"""a in the weights a / (a + p) of a word piece, p its share by Zipf's law of ranks and as counted in texts."""
PLAIN_DIM = 256
"""Dimensions of the plain distillation that this one is compared with."""
PIECES = 256
"""Word pieces embedded at once."""
FILES = ("model.safetensors", "tokenizer.json", "config.json")
"""Files that decide a static model's vectors."""

LEAST = 1_000
"""Word pieces at least; MiniLM's list begins with nearly as many signs that stand in no text."""
UNKNOWN = "[UNK]"

Advance = Callable[[], None]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Vocabulary:
    """The word pieces of a static model, and what is known of each before any lesson."""

    tokenizer: Tokenizer
    vectors: Vectors
    """MiniLM's vector of every piece alone, not of unit length, shape ``(pieces, 384)``."""
    weights: NDArray[np.float32]
    """How much a piece counts in a text, in (0, 1]: little when it is common. Shape ``(pieces,)``."""

    def weighed(self, texts: Sequence[str]) -> Vocabulary:
        """Return this vocabulary with weights that also fall with a piece's share in ``texts``."""
        counts = np.asarray(self.counts(texts).sum(axis=0))
        shares = (counts + 1) / (counts.sum() + len(counts))
        weights = _rank_weights(len(counts)) * COUNT_WEIGHT / (COUNT_WEIGHT + shares)
        return replace(self, weights=weights.astype(np.float32))

    def counts(self, texts: Sequence[str]) -> csr_array:
        """Return how often each piece stands in each text, shape ``(texts, pieces)``; unknown signs do not count."""
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
        """Return the table of a plain distillation, the way model2vec has it: principal components, Zipf's weights."""
        centred = self.vectors - self.vectors.mean(axis=0)
        _, axes = np.linalg.eigh(centred.T @ centred)
        main = centred @ axes[:, ::-1][:, :PLAIN_DIM]
        return np.asarray(main * _rank_weights(len(main))[:, None], np.float32)

    def read(self, texts: Sequence[str], table: Vectors) -> Vectors:
        """Return the vectors of texts under a table, shape ``(texts, dim)``, rows of unit length."""
        return unit_rows(np.asarray(self.counts(texts) @ table))


class Pupil:
    """The fit of a table to texts, the lessons, and their MiniLM vectors of shape ``(texts, 384)``."""

    def __init__(self, vocabulary: Vocabulary, texts: Sequence[str], vectors: Vectors) -> None:
        """Bind a vocabulary to lessons. Computes nothing yet."""
        self.vocabulary = vocabulary
        self._texts = texts
        self._vectors = vectors

    def table(self) -> Vectors:
        """Return the fitted table, shape ``(pieces, 384)``."""
        shared = self._features @ (self._states.T @ self._solution)
        rows = shared + OWN * (self._rows.T @ self._solution)
        return np.asarray(self.vocabulary.weights[:, None] * rows, np.float32)

    def without(self, left_out: Indices) -> Vectors:
        """Return what a fit without the lessons ``left_out`` makes of all of them, shape ``(texts, 384)``.

        The same numbers as from fitting again. With H the inverse of the dual's matrix and α the solution, the
        residuals of the lessons left out are ``c = H_oo⁻¹ α_o``, those of the others ``ridge · (α − H c)``.
        """
        blame = np.linalg.solve(self._inverse[np.ix_(left_out, left_out)], self._solution[left_out])
        residuals = RIDGE * (self._solution - self._inverse[:, left_out] @ blame)
        residuals[left_out] = blame
        return unit_rows(self._vectors - residuals)

    @cached_property
    def _features(self) -> Vectors:
        """Vectors of the pieces, centred, in the mean of unit length."""
        centred = self.vocabulary.vectors - self.vocabulary.vectors.mean(axis=0)
        return np.asarray(centred / np.linalg.norm(centred, axis=1).mean(), np.float32)

    @cached_property
    def _rows(self) -> csr_array:
        """Weighted pieces of each text, scaled so that its state has unit length, as its target has."""
        weighted = self.vocabulary.counts(self._texts).multiply(self.vocabulary.weights[None, :]).tocsr()
        lengths = np.linalg.norm(weighted @ self._features, axis=1)
        return weighted.multiply(1 / np.where(lengths > 0, lengths, 1)[:, None]).tocsr().astype(np.float32)

    @cached_property
    def _states(self) -> Vectors:
        """The mean feature of each text."""
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
    """Return the first ``size`` word pieces of MiniLM's list, weighed by their rank.

    ``advance`` is called for every `PIECES` pieces embedded.

    Raises:
        OptionError: MiniLM has not so many, or they are fewer than `LEAST`.
    """
    tokenizer = _tokenizer(size)
    vectors = np.concatenate(list(_piece_vectors(teacher, size, advance)))
    return Vocabulary(tokenizer, vectors, _rank_weights(size).astype(np.float32))


def save_static(folder: Path, vocabulary: Vocabulary, table: Vectors, threshold: float, **evidence: Any) -> Manifest:
    """Write a static model, in model2vec's format, with its manifest.

    Raises:
        EmbedderError: the folder cannot be written.
        MissingExtraError: the extra ``static`` is not installed.
    """
    models = require("model2vec", "static")
    model = models.StaticModel(table, vocabulary.tokenizer, normalize=True, max_length=WINDOW)
    with writing(folder):
        model.save_pretrained(folder)
        (folder / "README.md").unlink()  # a card from a template, which knows nothing of this model
        return seal(folder, "static", MINILM_FILES["model.safetensors"], threshold, FILES, **evidence)


def _tokenizer(size: int) -> Tokenizer:
    """Return MiniLM's tokenizer with the first ``size`` pieces of its list; what they cannot spell is unknown."""
    from tokenizers import Tokenizer

    whole = json.loads((minilm_folder() / TOKENIZER).read_bytes())
    vocabulary = whole["model"]["vocab"]
    if not LEAST <= size <= len(vocabulary):
        raise OptionError(f"the vocabulary takes {LEAST} to {len(vocabulary)} word pieces, not {size}")
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
