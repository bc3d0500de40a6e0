"""A judge by textual entailment: does a claim entail a conclusion item, follow from it, or contradict it?

Every claim is laid beside every item and every false variant, as a cross-encoder trained on natural language inference
reads pairs. A claim speaks of the one item to which it is least neutral.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings.local import folder_digest, torch_threads
from inquitree_gym.errors import JudgeError
from inquitree_gym.judges.claims import split_claims
from inquitree_gym.judges.local import CLAIMS_PER_ITEM
from inquitree_gym.judges.quality import FULL, NOTHING, PARTIAL, Verdict
from inquitree_gym.trees import Tree

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

ENTAILS_AT = 0.5
"""Probability from which one text entails another."""
CONTRADICTS_AT = 0.5
"""Probability from which a claim contradicts its item, or entails one of its false variants."""
LABELS = ("entailment", "neutral", "contradiction")
"""What a model has to tell apart, in any order."""

Pair = tuple[str, str]
"""Premise, hypothesis."""
Probabilities = NDArray[np.float64]
"""Shape ``(pairs, 3)``, in the order of `LABELS`; rows sum to 1."""


class Inference(Protocol):
    """Reads pairs of texts."""

    name: str

    def read(self, pairs: Sequence[Pair]) -> Probabilities:
        """Return the probabilities of the three labels for every pair, shape ``(pairs, 3)``."""


class CrossEncoderInference:
    """Any cross-encoder for natural language inference that sentence-transformers loads, on the CPU.

    The order of its labels is read from its own configuration.
    """

    def __init__(self, model: str, *, threads: int = 1, batch_size: int = 32) -> None:
        """Name the model, a folder or a hub name, the CPU threads and the pairs of one batch. Loads nothing yet."""
        self.name = model
        self._threads = threads
        self._batch_size = batch_size

    @cached_property
    def digest(self) -> str:
        """What names these very weights: the SHA-256 over the files of a folder, the commit of a hub model.

        Raises:
            JudgeError: there is no folder of that name, and no hub model can be loaded.
        """
        if self._folder is not None:
            return folder_digest(self._folder)
        from huggingface_hub import hf_hub_download

        _ = self._model  # which brings it into the hub's cache, in a folder that is named after the commit
        return Path(hf_hub_download(self.name, "config.json", local_files_only=True)).parent.name

    @property
    def _folder(self) -> Path | None:
        folder = Path(self.name).expanduser()
        return folder if folder.is_dir() else None

    def read(self, pairs: Sequence[Pair]) -> Probabilities:
        """See `Inference.read`.

        Raises:
            JudgeError: the model cannot be loaded, does not tell the three labels apart, or gives no numbers.
        """
        if not pairs:
            return np.zeros((0, len(LABELS)), np.float64)
        order = self._order
        with torch_threads(self._threads):
            read = self._model.predict(
                list(pairs), batch_size=self._batch_size, apply_softmax=True, show_progress_bar=False
            )
        found = np.asarray(read, np.float64)[:, order]
        if not np.isfinite(found).all():
            raise JudgeError(
                f"'{self.name}' gives probabilities that are no numbers, so nothing can be graded by it; take another "
                "model, or load this one again from whole files"
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
                "natural language inference, or its hub name where the hub can be reached"
            ) from error

    @cached_property
    def _order(self) -> list[int]:
        """Return the columns of the model that hold the three labels."""
        named = {str(label).lower(): int(index) for index, label in (self._model.config.id2label or {}).items()}
        if set(named) != set(LABELS):
            raise JudgeError(
                f"'{self.name}' tells {', '.join(sorted(named)) or 'nothing'} apart; a judge needs a model whose "
                f"configuration names {', '.join(LABELS)} (id2label in its config.json)"
            )
        return [named[label] for label in LABELS]


class _Standing(NamedTuple):
    """How one claim stands to one item; probabilities."""

    entails: float
    """The claim entails the item."""
    follows: float
    """The claim follows from the item, so states a part of it."""
    against: float
    """The claim contradicts the item, or entails one of its false variants; the greatest."""

    @property
    def weight(self) -> float:
        """How far from neutral."""
        return max(self)

    @property
    def grade(self) -> float | None:
        """S of the item by this claim alone; None where the claim says nothing of it."""
        if self.against >= CONTRADICTS_AT and self.against > self.entails:
            return NOTHING
        if self.entails >= ENTAILS_AT:
            return FULL
        return PARTIAL if self.follows >= ENTAILS_AT else None


class NLIJudge:
    """Judges by entailment: 1 where a claim entails the item, 0.6 where it follows from it, 0 where it is against it.

    An item that any claim is against scores 0, whatever else is said of it; only the first 2|C| claims count, and one
    claim speaks of one item.
    """

    def __init__(self, tree: Tree, inference: Inference) -> None:
        """Judge conclusions about ``tree`` by ``inference``."""
        self.name = f"nli:{inference.name}"
        self._items = tree.conclusions
        self._inference = inference

    def judge(self, conclusion: str) -> tuple[Verdict, ...]:
        """Return one verdict per conclusion item, in tree order."""
        claims = split_claims(conclusion)[: CLAIMS_PER_ITEM * len(self._items)]
        found = [Verdict(NOTHING, "not claimed")] * len(self._items)
        against: set[int] = set()
        for claim, standings in zip(claims, self._standings(claims), strict=True):
            index = max(range(len(standings)), key=lambda i: standings[i].weight)
            grade = standings[index].grade
            if grade is None or index in against:
                continue
            if grade == NOTHING:
                against.add(index)
            if grade == NOTHING or grade > (found[index].score or NOTHING):
                found[index] = Verdict(grade, _why(standings[index], claim))
        return tuple(found)

    def _standings(self, claims: Sequence[str]) -> list[list[_Standing]]:
        """Return how every claim stands to every item, shape ``(claims, items)``."""
        pairs = [pair for claim in claims for item in self._items for pair in _pairs(claim, item.text)]
        false = [(claim, text) for claim in claims for item in self._items for text in item.false_variants]
        read = iter(self._inference.read([*pairs, *false]).tolist())
        own = [[(next(read), next(read)) for _ in self._items] for _ in claims]
        untrue = [[max(next(read)[0] for _ in item.false_variants) for item in self._items] for _ in claims]
        return [
            [_Standing(forth[0], back[0], max(forth[2], worst)) for (forth, back), worst in zip(*rows, strict=True)]
            for rows in zip(own, untrue, strict=True)
        ]


def _pairs(claim: str, item: str) -> tuple[Pair, Pair]:
    return (claim, item), (item, claim)


def _why(standing: _Standing, claim: str) -> str:
    said = ", ".join(f"{name} {value:.2f}" for name, value in standing._asdict().items())
    return f"{said}: {claim[:120]}"
