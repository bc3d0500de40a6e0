"""Vectors of subtopics and studies: the centroids of their texts and paraphrases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.trees.schema import Candidate

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Function from n texts to an array of shape (n, dim) with rows of unit length."""


def lookup(vectors: Mapping[str, NDArray[np.float32]]) -> Embed:
    """Return the function that gives texts the vectors by which they are known."""
    return lambda texts: np.stack([vectors[text] for text in texts])


def wordings(node: Candidate) -> tuple[str, ...]:
    """Return the canonical text of a node, then its paraphrases."""
    return node.text, *node.paraphrases


def centroids(nodes: Sequence[Candidate], embed: Embed) -> NDArray[np.float32]:
    """Return the unit-length mean vector of the wordings of each node, shape ``(len(nodes), dim)``.

    A node without paraphrases keeps the vector of its text to the last bit.
    """
    rows = embed([text for node in nodes for text in wordings(node)])
    ends = np.cumsum([len(wordings(node)) for node in nodes])
    return np.stack([_centroid(each) for each in np.split(rows, ends[:-1])])


def _centroid(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    mean: NDArray[np.float32] = rows.mean(axis=0)
    length = max(float(np.linalg.norm(mean)), 1e-12)  # opposite vectors cancel
    return rows[0] if len(rows) == 1 else np.asarray(mean / length, np.float32)
