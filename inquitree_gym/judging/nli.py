"""Textual entailment between claims and statements, by a cross-encoder for natural language inference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings.local import folder_digest, torch_threads
from inquitree_gym.errors import JudgeError

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

ENTAILS_AT = 0.5
"""Probability from which one text entails another."""
CONTRADICTS_AT = 0.5
"""Probability from which a claim contradicts a statement, or entails one of its false texts."""
LABELS = ("entailment", "neutral", "contradiction")
"""Labels that a model must have, in any order."""

TextPair = tuple[str, str]
"""Premise and hypothesis."""
Probabilities = NDArray[np.float64]
"""Shape ``(pairs, 3)``, in the order of `LABELS`. Rows sum to 1."""


class Statement(NamedTuple):
    """A statement: texts that say it, and texts that say something else in its place."""

    true: tuple[str, ...]
    false: tuple[str, ...]


class Inference(Protocol):
    """Natural language inference on pairs of texts."""

    name: str

    def read(self, pairs: Sequence[TextPair]) -> Probabilities:
        """Return the probabilities of the three labels for every pair, shape ``(pairs, 3)``."""


class CrossEncoderInference:
    """Cross-encoder for natural language inference, loaded by sentence-transformers on the CPU.

    The order of its labels is read from its configuration.
    """

    def __init__(self, model: str, *, batch_size: int = 32) -> None:
        """Take a folder or hub name and the pairs per batch. Load nothing yet."""
        self.name = model
        self._batch_size = batch_size

    @cached_property
    def digest(self) -> str:
        """Digest of the weights: SHA-256 over the files of a folder, or the commit of a hub model.

        Raises:
            JudgeError: the model cannot be loaded.
        """
        if self._folder is not None:
            return folder_digest(self._folder)
        from huggingface_hub import hf_hub_download

        _ = self._model  # loading it fills the hub's cache, whose folder is named after the commit
        return Path(hf_hub_download(self.name, "config.json", local_files_only=True)).parent.name

    @property
    def _folder(self) -> Path | None:
        folder = Path(self.name).expanduser()
        return folder if folder.is_dir() else None

    def config(self, version: int) -> dict[str, Any]:
        """Return the settings of a judge with this model and a rule of this version, as plain values.

        Raises:
            JudgeError: the model cannot be loaded.
        """
        return {
            "version": version,
            "model": self.name,
            "digest": self.digest,
            "entails_at": ENTAILS_AT,
            "contradicts_at": CONTRADICTS_AT,
        }

    def read(self, pairs: Sequence[TextPair]) -> Probabilities:
        """See `Inference.read`.

        Raises:
            JudgeError: the model cannot be loaded, lacks one of `LABELS`, or returns NaN or infinity.
        """
        if not pairs:
            return np.zeros((0, len(LABELS)), np.float64)
        order = self._order
        with torch_threads(1):
            read = self._model.predict(
                list(pairs), batch_size=self._batch_size, apply_softmax=True, show_progress_bar=False
            )
        found = np.asarray(read, np.float64)[:, order]
        if not np.isfinite(found).all():
            raise JudgeError(
                f"'{self.name}' returned probabilities that are no numbers (NaN or infinity); use another model, or "
                "load this one from intact files"
            )
        return found

    @cached_property
    def _model(self) -> CrossEncoder:
        from safetensors import SafetensorError
        from sentence_transformers import CrossEncoder

        try:
            return CrossEncoder(str(self._folder or self.name), device="cpu")
        except (OSError, ValueError, TypeError, KeyError, RuntimeError, SafetensorError) as error:
            raise JudgeError(
                f"no cross-encoder can be loaded from '{self.name}' ({error}); give the folder of a model trained on "
                "natural language inference, or its hub name if the hub can be reached"
            ) from error

    @cached_property
    def _order(self) -> list[int]:
        """Columns of the model's output for `LABELS`."""
        named = {str(label).lower(): int(index) for index, label in (self._model.config.id2label or {}).items()}
        if set(named) != set(LABELS):
            raise JudgeError(
                f"'{self.name}' has the labels {', '.join(sorted(named)) or '(none)'}; a judge needs a model whose "
                f"configuration names {', '.join(LABELS)} (id2label in its config.json)"
            )
        return [named[label] for label in LABELS]


@dataclass(frozen=True, slots=True)
class ClaimRelation:
    """Relation of one claim to one statement, as probabilities."""

    entails: float
    """Probability that the claim entails the true text."""
    follows: float
    """Probability that the true text entails the claim. The claim then states a part of it."""
    against: float
    """Probability that the claim contradicts the true text or entails a false one. The maximum of these."""
    denied: float
    """Probability that the true text contradicts the claim."""

    @property
    def strength(self) -> float:
        """Highest of the three probabilities."""
        return max(self.entails, self.follows, self.against)

    def __str__(self) -> str:
        return f"entails {self.entails:.2f}, follows {self.follows:.2f}, against {self.against:.2f}"


def relations(
    inference: Inference, claims: Sequence[str], statements: Sequence[Statement]
) -> list[list[ClaimRelation]]:
    """Return the relation of every claim to every statement, shape ``(claims, statements)``.

    The first true text and all false texts of each statement are compared.
    """
    own = [(each.true[0], each.false) for each in statements]
    both_ways = [pair for claim in claims for text, _ in own for pair in ((claim, text), (text, claim))]
    false = [(claim, text) for claim in claims for _, texts in own for text in texts]
    read = iter(inference.read([*both_ways, *false]).tolist())
    related = [[(next(read), next(read)) for _ in own] for _ in claims]
    untrue = [[max(next(read)[0] for _ in texts) for _, texts in own] for _ in claims]
    return [
        [
            ClaimRelation(forth[0], back[0], max(forth[2], worst), back[2])
            for (forth, back), worst in zip(*rows, strict=True)
        ]
        for rows in zip(related, untrue, strict=True)
    ]
