"""Protocol of embedders, and helpers to implement it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.errors import EmbedderError

Vectors = NDArray[np.float32]
Device = Literal["auto", "cpu", "cuda"]
"""Device of a local embedder. "auto" takes CUDA where there is one."""
SIMILARITY_TOLERANCE = 1e-5
"""Largest difference of one similarity computed alone, in a batch, or on another machine."""


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

        Returns: float32 array of shape ``(len(texts), dim)``, rows of unit length, or of zeros for a text without any
        word that the model reads. The last bits of a row may depend on the other texts (1.7e-7 measured for MiniLM).
        Text beyond the window of the model (256 tokens for MiniLM) is ignored. See `embedded`.

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


UNIT_TOLERANCE = 1e-3
"""Largest difference of the length of a vector from 1."""


def embedded(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Return the checked vectors of texts, float32 of shape ``(len(texts), dim)``. Every embedder is asked through it.

    Raises:
        EmbedderError: the embedder cannot answer, or its answer is not of the form that `Embedder.embed` names.
    """
    rows, shape = embedder.embed(texts), (len(texts), embedder.dim)
    if not isinstance(rows, np.ndarray) or rows.dtype.kind != "f" or rows.shape != shape:
        came = f"{rows.dtype} of shape {rows.shape}" if isinstance(rows, np.ndarray) else f"a {type(rows).__name__}"
        first = f", first {texts[0]!r:.80}" if texts else ""
        raise EmbedderError(
            f"'{embedder.name}' must embed {len(texts)} texts{first}, as an array of floats of shape {shape}, got "
            f"{came}. Mend the embedder or choose another one."
        )
    with np.errstate(over="ignore"):  # beyond float32 is infinite, which is refused below
        rows = rows.astype(np.float32, copy=False)
    if not (sound := are_sound(rows)).all():
        worst = int(sound.argmin())
        strange = rows[worst][~np.isfinite(rows[worst])]
        value = f"{strange[0]}" if len(strange) else f"the length {np.linalg.norm(rows[worst].astype(np.float64)):.4g}"
        raise EmbedderError(
            f"'{embedder.name}' must embed every text as finite numbers of length 1, got {value} for "
            f"{texts[worst]!r:.80}. Mend the embedder or choose another one."
        )
    return rows


def are_sound(rows: Vectors) -> NDArray[np.bool_]:
    """Return for each row whether its length is 1 or 0. NaN and infinity are neither."""
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)  # in float32, the square of a large number is infinite
    sound: NDArray[np.bool_] = (np.abs(lengths - 1) <= UNIT_TOLERANCE) | (lengths == 0)
    return sound
