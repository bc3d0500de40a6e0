"""Embeddings from a service, through litellm."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from inquitree_gym.embeddings.protocol import Vectors, unit_rows
from inquitree_gym.errors import EmbedderError, require

BATCH = 256
"""Texts per request."""


class LiteLLMEmbedder:
    """Any embedding model that litellm reaches, such as ``text-embedding-3-small``, the paper's.

    The key comes from the provider's environment variable and is stored nowhere. Weights are out of reach, so the
    digest names the route; the service may change what stands behind it.
    """

    threshold: float | None = None

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        api_base: str | None = None,
        retries: int = 3,
        timeout: float = 60,
    ) -> None:
        """Name the route.

        Args:
            model: litellm's name of the model.
            api_base: address of an OpenAI-compatible server; None for the provider's own.
            retries: further tries after a failed request.
            timeout: seconds per request.
        """
        self.name = f"litellm:{model}"
        self._model = model
        self._api_base = api_base
        self._retries = retries
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r})"

    @property
    def digest(self) -> str:
        """SHA-256 of the route's name and address."""
        return hashlib.sha256(f"{self.name} {self._api_base or ''}".encode()).hexdigest()

    @cached_property
    def dim(self) -> int:
        """Length of a vector; asks the service."""
        return int(self.embed(["dimension"]).shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        rows = [
            row for start in range(0, len(texts), BATCH) for row in self._request(list(texts[start : start + BATCH]))
        ]
        return unit_rows(np.asarray(rows, np.float64)) if rows else np.zeros((0, self.dim), np.float32)

    def _request(self, texts: list[str]) -> Iterator[Sequence[float]]:
        litellm = _litellm()
        openai = require("openai", "llm")
        try:
            answer = litellm.embedding(
                model=self._model,
                input=texts,
                api_base=self._api_base,
                num_retries=self._retries,
                timeout=self._timeout,
            )
        except openai.OpenAIError as error:
            raise EmbedderError(f"the embedding service failed for '{self._model}': {error}") from error
        rows = [entry["embedding"] for entry in sorted(answer.data, key=lambda entry: entry["index"])]
        if len(rows) != len(texts) or len({len(row) for row in rows}) > 1:
            raise EmbedderError(
                f"'{self._model}' answered {len(rows)} vectors of lengths {sorted({len(row) for row in rows})} "
                f"for {len(texts)} texts; one vector of one length per text was expected"
            )
        yield from rows


def _litellm() -> Any:
    # litellm fetches a price map from the network when it is imported, unless told to use its own.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    return require("litellm", "llm")
