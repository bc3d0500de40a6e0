"""Hashed words: vectors without a model, for fiction that a generator builds from the same sentences."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Sequence

import numpy as np

from inquitree_gym.embeddings.protocol import Vectors, unit_rows

WORDS = "hashed-words"
WORDS_DIM = 384
WORDS_THRESHOLD = 0.6
"""τ for hashed words. In 60 synthetic trees, 95 % of subtopics have no other subtopic above 0.55."""

_WORD = re.compile(r"\w+")


class WordsEmbedder:
    """Square roots of signed counts of hashed words. The bits are the same on every platform.

    Texts are similar if they share words, so it tells the texts of a menu apart, and what kind a generated observation
    is of. It knows no synonym and is not meant for proposals in free words. A text without a word has a zero vector.
    """

    name = WORDS
    digest = hashlib.sha256(b"hashed-words 1").hexdigest()
    dim = WORDS_DIM
    threshold: float | None = WORDS_THRESHOLD

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`. A row does not depend on the other texts."""
        counts = np.zeros((len(texts), self.dim))
        for row, text in zip(counts, texts, strict=True):
            hashes = [zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in _WORD.findall(text.casefold())]
            np.add.at(row, [number % self.dim for number in hashes], [1 if number >> 31 else -1 for number in hashes])
        return unit_rows(np.sign(counts) * np.sqrt(np.abs(counts)))
