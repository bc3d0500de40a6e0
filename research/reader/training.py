"""Training of the adapter: every proposal should be nearest to its node, and nearer to it than the threshold.

For a proposal, the candidates of its family and a constant, the threshold, take part in a softmax over similarities
divided by a temperature. The right answer is the proposal's target, or the constant for a proposal that means no node,
so that the trained similarities can be compared with one threshold in every tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from research.reader.examples import Example, Examples, Family
from research.reader.lora import TrainableEncoder

WARM_UP = 10
"""Steps over which the learning rate rises."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a training run."""

    rank: int = 16
    scale: float = 1.0
    learning_rate: float = 3e-4
    weight_decay: float = 0.01
    epochs: int = 6
    temperature: float = 0.05
    threshold: float = 0.5
    """The constant that stands for no node."""
    negative_weight: float = 0.5
    """Weight of a proposal that means no node."""
    kept: float = 0.7
    """Share of the paraphrases that stand for their node in a step."""
    per_step: int = 160
    """Examples about one tree in a step."""
    seed: int = 0


def train(
    data: Examples, trees: Sequence[str], settings: Settings, folder: Path, device: str, advance: Callable[[], None]
) -> TrainableEncoder:
    """Return MiniLM from ``folder`` with an adapter trained on the examples about ``trees``.

    A step takes one tree; ``advance`` is called after each of ``epochs · len(trees)`` steps.
    """
    encoder = TrainableEncoder(folder, settings.rank, settings.scale, settings.seed, device)
    draws = np.random.default_rng(settings.seed)
    optimizer = torch.optim.AdamW(encoder.parameters, settings.learning_rate, weight_decay=settings.weight_decay)
    steps = settings.epochs * len(trees)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / WARM_UP) * (1 - i / steps))
    for _ in range(settings.epochs):
        for tree in draws.permutation(list(trees)).tolist():
            optimizer.zero_grad()
            _loss(encoder, data, tree, settings, draws).backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(encoder.parameters, 1.0)
            optimizer.step()
            rate.step()
            advance()
    return encoder


def _loss(
    encoder: TrainableEncoder, data: Examples, tree: str, settings: Settings, draws: np.random.Generator
) -> Tensor:
    families = {index: family for index, family in enumerate(data.families) if family.tree == tree}
    about = [example for example in data.examples if example.family in families]
    asked = [about[i] for i in draws.permutation(len(about))[: settings.per_step]]
    said = {index: _thinned(family, settings.kept, draws) for index, family in families.items()}
    texts = [text for candidates in said.values() for each in candidates for text in each]
    vectors = encoder.embed([*texts, *(example.text for example in asked)])
    known = dict(zip(texts, vectors, strict=False))
    losses = [
        _example_loss(example, said[example.family], known, vector, settings)
        for example, vector in zip(asked, vectors[len(texts) :], strict=True)
    ]
    weights = [1.0 if example.targets else settings.negative_weight for example in asked]
    return torch.stack([weight * loss for weight, loss in zip(weights, losses, strict=True)]).sum() / sum(weights)


def _thinned(family: Family, kept: float, draws: np.random.Generator) -> list[list[str]]:
    """Return the canonical text and a random part of the paraphrases of every candidate."""
    return [[first, *(text for text in others if draws.random() < kept)] for first, *others in family.texts]


def _example_loss(
    example: Example, said: list[list[str]], known: dict[str, Tensor], vector: Tensor, settings: Settings
) -> Tensor:
    """Return the negative log-likelihood of the right answer; a paraphrase is left out of its own candidate."""
    centroids = torch.stack(
        [sum((known[text] for text in texts if text != example.text), torch.zeros_like(vector)) for texts in said]
    )
    similarities = normalize(centroids, dim=-1) @ vector
    logits = torch.cat([similarities, similarities.new_tensor([settings.threshold])]) / settings.temperature
    right = list(example.targets) or [len(said)]
    return logits.logsumexp(0) - logits[right].logsumexp(0)
