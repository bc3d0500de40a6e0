"""An embedder of hashed words, for tests that run without weights."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Self

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from inquitree_gym.embeddings.local import MINILM, MINILM_DIM, MINILM_THRESHOLD
from inquitree_gym.embeddings.protocol import Vectors, unit_rows


class HashingEmbedder:
    """Hash the words of a text, without stop words, into 384 signed counts.

    It has the name of the default embedder, so that everything that loads an embedder by name finds it. Texts that
    share words are similar; synonyms are not. A text without words has its own vector, as under MiniLM.
    """

    name = MINILM
    digest = hashlib.sha256(b"hashed words").hexdigest()
    dim = MINILM_DIM
    threshold = MINILM_THRESHOLD

    def __init__(self) -> None:
        self._words = HashingVectorizer(n_features=self.dim, stop_words="english", norm=None)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        counts = self._words.transform(texts).toarray()
        for row in np.flatnonzero(~counts.any(axis=1)):
            seed = int.from_bytes(hashlib.sha256(texts[row].encode("utf-8", "surrogatepass")).digest()[:8])
            counts[row] = np.random.default_rng(seed).standard_normal(self.dim)
        return unit_rows(counts)
