"""Embedders by name, including those behind an API and hashed words."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings.local import (
    MINILM,
    MINILM_DIM,
    READER,
    MiniLMEmbedder,
    ReaderEmbedder,
    SentenceTransformerEmbedder,
)
from inquitree_gym.embeddings.protocol import Device, Embedder, Vectors, unit_rows
from inquitree_gym.errors import EmbedderError, OptionError, require, suggest

BATCH = 256
"""Texts per request."""


class LiteLLMEmbedder:
    """Any embedding model that litellm reaches, such as ``text-embedding-3-small``, which the paper uses.

    The key comes from the environment variable of the provider and is not stored. The weights are not accessible, so
    the digest covers model name and address only. The service may change its model.
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
        """Store the options. The first request is made on first use.

        Args:
            model: name of the model in litellm.
            base_url: address of an OpenAI-compatible server. None for the server of the provider.
            retries: retries of a failed request, 1 or more (litellm treats 0 as 2), for providers with the OpenAI
                protocol. Litellm does not retry others.
            timeout: seconds per request.

        Raises:
            OptionError: ``retries`` is below 1.
        """
        if retries < 1:
            raise OptionError(f"retries must be an integer from 1, got {retries!r}")
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
        """Length of a vector. Makes a request."""
        return int(self.embed(["dimension"]).shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        batches = [self._request(list(texts[start : start + BATCH])) for start in range(0, len(texts), BATCH)]
        if len(lengths := sorted({rows.shape[1] for rows in batches})) > 1:
            raise self._wrong_answer(f"vectors of lengths {lengths}", len(texts))
        vars(self).setdefault("dim", lengths[0])  # which needs no request of its own any more
        return unit_rows(np.concatenate(batches))

    def _request(self, texts: list[str]) -> NDArray[np.float64]:
        from inquitree_gym.llm.litellm import load_litellm, run_sync, scrub

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


WORDS = "hashed-words"
_WORD = re.compile(r"\w+")


class WordsEmbedder:
    """Square roots of signed counts of hashed words. The bits are the same on every platform.

    Texts are similar if they share words, so it tells the texts of a menu apart, and what kind a generated observation
    is of. It knows no synonym and is not meant for proposals in free words. A text without a word has a zero vector.
    """

    name = WORDS
    digest = hashlib.sha256(b"hashed-words 1").hexdigest()
    dim = MINILM_DIM
    threshold: float | None = 0.6
    """In 60 synthetic trees, 95 % of subtopics are less than 0.55 similar to any other."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`. A row does not depend on the other texts."""
        counts = np.zeros((len(texts), self.dim))
        for row, text in zip(counts, texts, strict=True):
            hashes = [zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in _WORD.findall(text.casefold())]
            np.add.at(row, [number % self.dim for number in hashes], [1 if number >> 31 else -1 for number in hashes])
        return unit_rows(np.sign(counts) * np.sqrt(np.abs(counts)))


def _onnx(model: str, **options: Any) -> Embedder:
    from inquitree_gym.embeddings.derived import OnnxEmbedder

    return OnnxEmbedder(model, **options)


def _static(model: str) -> Embedder:
    from inquitree_gym.embeddings.derived import StaticEmbedder

    return StaticEmbedder(model)


DEFAULT_EMBEDDER = READER
_NAMED: dict[str, Callable[..., Embedder]] = {READER: ReaderEmbedder, MINILM: MiniLMEmbedder}
_PREFIXES: dict[str, Callable[..., Embedder]] = {
    "onnx": _onnx,
    "static": _static,
    "sentence-transformers": SentenceTransformerEmbedder,
    "litellm": LiteLLMEmbedder,
}
_WITHOUT_DEVICE = (WORDS, "static", "litellm")
"""Embedders that run no model of their own: no model at all, a table on the CPU, and a service."""


def load_embedder(name: str, *, device: Device = "cpu") -> Embedder:
    """Return the embedder of that name, the same object for each device. Its weights are loaded on first use.

    Names are ``inquitree-reader-2``, ``all-MiniLM-L6-v2``, ``onnx:`` or ``static:`` before either of these or before a
    folder, ``hashed-words``, ``sentence-transformers:NAME_OR_FOLDER`` and ``litellm:MODEL``.

    Args:
        name: name of the embedder.
        device: ``cpu``, ``cuda``, or ``auto`` for CUDA where there is one. It changes no name and no digest: vectors
            are computed in single precision and agree within 1e-5. The default is the CPU, because a process that has
            used CUDA cannot be forked, as asynchronous vector environments do.

    Raises:
        EmbedderError: the name or the device is unknown, or the embedder does not run on the device.
    """
    if device not in get_args(Device):
        raise EmbedderError(f"device must be one of {', '.join(get_args(Device))}, got {device!r}")
    return _load(name, device)


@lru_cache(maxsize=8)
def _load(name: str, device: Device) -> Embedder:
    if name in _NAMED:
        return _NAMED[name](device=device)
    prefix, colon, model = name.partition(":")
    if name == WORDS:
        _device_option(name, prefix, device)
        return WordsEmbedder()
    if colon and model and prefix in _PREFIXES:
        return _PREFIXES[prefix](model, **_device_option(name, prefix, device))
    forms = [*_NAMED, WORDS, *(f"{prefix}:MODEL" for prefix in _PREFIXES)]
    raise EmbedderError(f"no embedder is called '{name}'{suggest(name, forms)}; use one of {', '.join(forms)}")


def _device_option(name: str, prefix: str, device: Device) -> dict[str, Device]:
    if prefix not in _WITHOUT_DEVICE:
        return {"device": device}
    if device == "cuda":
        raise EmbedderError(f"'{name}' does not run on a CUDA device; leave device at 'cpu' or 'auto'")
    return {}
