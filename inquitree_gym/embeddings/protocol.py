"""Protocol of embedders, and helpers to implement it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Device = Literal["auto", "cpu", "cuda"]
"""Device of a local embedder. "auto" takes CUDA where there is one."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors whose dot product is their cosine similarity."""

    def __hash__(self) -> int:
        """Embedders key caches."""

    @property
    def name(self) -> str:
        """Name by which `load_embedder` finds this embedder again."""

    @property
    def digest(self) -> str:
        """Hex digest of the weights, or of name and address for a service. Keys the caches."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    @property
    def threshold(self) -> float | None:
        """Calibrated default threshold τ, in [-1, 1]. None if it was never calibrated."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed ``texts``.

        Returns: float32 array of shape ``(len(texts), dim)``, rows of unit length. The last bits of a row may depend on
        the other texts (1.7e-7 measured for MiniLM). Text beyond the window of the model (256 tokens for MiniLM) is
        ignored.

        Raises:
            EmbedderError: the model or service cannot answer.
        """


class SharedWeights:
    """Base class of embedders with weights in ``_model``: copies share the weights, pickles omit them."""

    name: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return self: embedders are immutable, and `gym.make` copies its arguments."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the weights (90 MB for MiniLM). The copy loads them on first use."""
        return {name: value for name, value in vars(self).items() if name != "_model"}


def unit_rows(vectors: NDArray[np.floating]) -> Vectors:
    """Scale rows to unit length. A zero row stays zero. Shape ``(n, dim)`` in and out."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)
