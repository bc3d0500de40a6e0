"""Embeddings from a service, through litellm."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inquitree_gym._litellm import load_litellm, run_sync, scrub
from inquitree_gym.embeddings.protocol import Vectors, unit_rows
from inquitree_gym.errors import EmbedderError, OptionError, require

BATCH = 256
"""Texts per request."""


class LiteLLMEmbedder:
    """Any embedding model that litellm reaches, such as ``text-embedding-3-small``, which the paper uses.

    The key comes from the environment variable of the provider and is not stored. The weights are not accessible, so
    the digest covers model name and address only; the service may change its model.
    """

    threshold: float | None = None

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        base_url: str | None = None,
        retries: int = 3,
        timeout: float = 60,
    ) -> None:
        """Store the options; the first request is made on first use.

        Args:
            model: name of the model in litellm.
            base_url: address of an OpenAI-compatible server; None for the server of the provider.
            retries: retries of a failed request, 1 or more (litellm treats 0 as 2), for providers with the OpenAI
                protocol; litellm does not retry others.
            timeout: seconds per request.

        Raises:
            OptionError: ``retries`` is below 1.
        """
        if retries < 1:
            raise OptionError(f"retries is a whole number from 1, not {retries!r}")
        self.name = f"litellm:{model}"
        self._model = model
        self._base_url = base_url
        self._retries = retries
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r})"

    @property
    def digest(self) -> str:
        """SHA-256 of model name and address."""
        return hashlib.sha256(f"{self.name} {self._base_url or ''}".encode()).hexdigest()

    @cached_property
    def dim(self) -> int:
        """Length of a vector; makes a request."""
        return int(self.embed(["dimension"]).shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        batches = [self._request(list(texts[start : start + BATCH])) for start in range(0, len(texts), BATCH)]
        if len(lengths := sorted({rows.shape[1] for rows in batches})) > 1:
            raise self._wrong_answer(f"vectors of lengths {lengths}", len(texts))
        return unit_rows(np.concatenate(batches))

    def _request(self, texts: list[str]) -> NDArray[np.float64]:
        litellm = load_litellm()
        openai = require("openai", "llm")
        try:
            # The synchronous call would leave an event loop open in this thread.
            answer = run_sync(
                litellm.aembedding(
                    model=self._model,
                    input=texts,
                    api_base=self._base_url,
                    max_retries=self._retries,
                    timeout=self._timeout,
                )
            )
        except openai.OpenAIError as error:
            # Not ``from error``, whose text may quote the key.
            raise EmbedderError(f"the embedding service failed for '{self._model}': {scrub(str(error))}") from None
        return self._checked(answer, len(texts))

    def _checked(self, answer: Any, texts: int) -> NDArray[np.float64]:
        """Return the vectors of a response, in the order of the texts."""
        try:
            entries = sorted(answer.data, key=lambda entry: entry["index"])
            rows = np.array([entry["embedding"] for entry in entries], np.float64)
            each_once = [entry["index"] for entry in entries] == list(range(texts))
        except (KeyError, TypeError, ValueError) as error:
            raise self._wrong_answer(f"something else ({error})", texts) from error
        if not each_once or rows.ndim != 2 or rows.shape[1] == 0 or not np.isfinite(rows).all():
            raise self._wrong_answer(f"an array of shape {rows.shape}", texts)
        return rows

    def _wrong_answer(self, came: str, texts: int) -> EmbedderError:
        return EmbedderError(
            f"'{self._model}' was asked for {texts} embeddings and answered {came}; expected one vector of finite "
            "numbers per text, numbered from 0, all of one length. Check that model and address serve embeddings"
        )
