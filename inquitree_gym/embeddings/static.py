"""Static embedder: the vector of a text is the mean of the vectors of its word pieces, from a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from inquitree_gym.embeddings.artifacts import Manifest, model_folder, read_manifest, verify_files
from inquitree_gym.embeddings.local import MINILM
from inquitree_gym.embeddings.protocol import SharedWeights, Vectors, unit_rows
from inquitree_gym.errors import require

if TYPE_CHECKING:
    from model2vec import StaticModel


class StaticEmbedder(SharedWeights):
    """A model2vec model that `inquitree distill` derived from MiniLM or the reader; needs no torch.

    Its manifest holds its threshold and its agreement with that model.
    """

    def __init__(self, model: str = MINILM) -> None:
        """Store the name; the model is loaded on first use.

        Args:
            model: ``inquitree-reader-1`` or ``all-MiniLM-L6-v2`` for the default folders of `inquitree distill`, or a
                folder that it wrote.
        """
        self.name = f"static:{model}"
        self._folder = model_folder("static", model)

    @property
    def digest(self) -> str:
        """SHA-256 over the names and contents of the model files."""
        return self.manifest.digest

    @property
    def threshold(self) -> float:
        """Calibrated threshold of this model."""
        return self.manifest.threshold

    @cached_property
    def dim(self) -> int:
        """Length of a vector; loads the model."""
        return int(self._model.dim)

    @cached_property
    def manifest(self) -> Manifest:
        """Manifest of the folder: files, threshold, agreement with the default.

        Raises:
            EmbedderError: the folder holds no static model, or its manifest is invalid.
        """
        return read_manifest(self._folder, "static")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`. A row does not depend on the other texts."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        return unit_rows(self._model.encode(list(texts), use_multiprocessing=False))

    @cached_property
    def _model(self) -> StaticModel:
        verify_files(self._folder, "static", self.manifest.files)
        models: Any = require("model2vec", "static")
        model: StaticModel = models.StaticModel.from_pretrained(self._folder)
        return model
