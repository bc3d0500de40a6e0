"""The discrete view's observation as numbers: what they are, and where each stands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.embeddings.protocol import Vectors
from inquitree_gym.engine import Phase
from inquitree_gym.envs.observations import Observations, all_views
from inquitree_gym.errors import OptionError
from inquitree_gym.trees import HINT_LEVELS

Row = NDArray[np.float32]


class Features(NamedTuple):
    """The layout of an observation: phase (one-hot), hint level (of H), visited subtopics (0 or 1), text (embedding).

    The text's embedding has unit length. With ``text_dim`` below the embedder's own, it is the first coefficients of
    its orthonormal cosine transform (DCT-II), scaled to about unit length: a fixed projection that needs no fitting and
    keeps angles roughly.
    """

    subtopics: int
    """Slots for visited subtopics."""
    dim: int
    """Length of the embedder's vectors."""
    text_dim: int
    """Length of the text's part; at most ``dim``."""

    @classmethod
    def of(cls, subtopics: int, dim: int, text_dim: int | None) -> Features:
        """Lay out an observation; ``text_dim`` None keeps the whole embedding.

        Raises:
            OptionError: ``subtopics`` is not a whole number from 1, or ``text_dim`` not None or one from 1 to ``dim``.
        """
        if type(subtopics) is not int or subtopics < 1:
            raise OptionError(f"subtopics is None or a whole number from 1, not {subtopics!r}")
        if text_dim is not None and not (
            isinstance(text_dim, int) and not isinstance(text_dim, bool) and 1 <= text_dim <= dim
        ):
            raise OptionError(f"text_dim is None or a whole number from 1 to {dim}, not {text_dim!r}")
        return cls(subtopics, dim, dim if text_dim is None else text_dim)

    @property
    def parts(self) -> dict[str, slice]:
        """Where each part stands in a row."""
        sizes = {"state": len(Phase), "hint_level": 1, "visited": self.subtopics, "text": self.text_dim}
        ends = np.cumsum(list(sizes.values())).tolist()
        return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}

    @property
    def size(self) -> int:
        """Length of a row."""
        return len(Phase) + 1 + self.subtopics + self.text_dim

    def box(self) -> spaces.Box:
        """Return the space of a row."""
        low, high = np.zeros(self.size, np.float32), np.ones(self.size, np.float32)
        reach = np.float32(max(1.0, np.sqrt(self.dim / self.text_dim)))
        low[self.parts["text"]], high[self.parts["text"]] = -reach, reach
        return spaces.Box(low, high, dtype=np.float32)

    def dict(self) -> spaces.Dict:
        """Return the space of a row taken apart."""
        box = self.box()
        return spaces.Dict({name: spaces.Box(box.low[at], box.high[at]) for name, at in self.parts.items()})

    def text(self, vectors: Vectors) -> Vectors:
        """Bring embeddings, shape ``(…, dim)``, to the length of the text's part."""
        if self.text_dim == self.dim:
            return vectors
        from scipy.fft import dct

        kept = dct(vectors, norm="ortho", axis=-1)[..., : self.text_dim]
        return np.asarray(kept * np.sqrt(self.dim / self.text_dim), np.float32)

    def row(self, phase: Phase, hint_level: int, text: Vectors) -> Row:
        """Return a row in which no subtopic is visited yet; ``text`` is an embedding, shape ``(dim,)``."""
        row = np.zeros(self.size, np.float32)
        row[phase] = 1
        row[self.parts["hint_level"]] = hint_level / HINT_LEVELS
        row[self.parts["text"]] = self.text(text)
        return row


def observation_vectors(observations: Observations, vectors: TreeVectors) -> dict[str, Row]:
    """Return the embedding of every text that can be shown, by text; kept on disk but for the opening text.

    The opening text names the turn limit, so it is embedded alone, and the others are shared by all limits.
    """
    opening, *others = (observations.text(view) for view in all_views(vectors.tree))
    texts = tuple(dict.fromkeys(others))
    found = dict(zip(texts, vectors.stored(texts), strict=True))
    return {opening: vectors.of(opening), **found}
