"""An embedder of hashed words, for tests that run without weights."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Self

import numpy as np

from inquitree_gym.embeddings.local import MINILM, MINILM_DIM, MINILM_THRESHOLD
from inquitree_gym.embeddings.protocol import Vectors, unit_rows
from inquitree_gym.trees import builtin_ids, load_tree
from inquitree_gym.trees.schema import wordings


class HashingEmbedder:
    """Hash the words of a text, without stop words, into 384 signed counts.

    It takes the name of a local embedder, so that everything that loads one by name finds it. Texts that
    share words are similar; synonyms are not, so a paraphrase in a shipped tree has the vector of the text that it
    paraphrases. A text without words has its own vector, as under MiniLM.
    """

    digest = hashlib.sha256(b"hashed words, known paraphrases").hexdigest()
    threshold = MINILM_THRESHOLD

    def __init__(self, name: str = MINILM) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer  # seconds, which many processes need not spend

        self.name = name
        self.dim = MINILM_DIM
        self._words = HashingVectorizer(n_features=MINILM_DIM, stop_words="english", norm=None)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self.name,)

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        texts = [paraphrased().get(text, text) for text in texts]
        counts = self._words.transform(texts).toarray()
        for row in np.flatnonzero(~counts.any(axis=1)):
            seed = int.from_bytes(hashlib.sha256(texts[row].encode("utf-8", "surrogatepass")).digest()[:8])
            counts[row] = np.random.default_rng(seed).standard_normal(MINILM_DIM)
        return unit_rows(counts)


@cache
def paraphrased() -> dict[str, str]:
    """The text that each paraphrase in the shipped trees stands for."""
    trees = [load_tree(name) for name in builtin_ids()]
    nodes = [node for tree in trees for node in (*tree.subtopics, *tree.studies)]
    return {wording: node.text for node in nodes for wording in wordings(node)}
