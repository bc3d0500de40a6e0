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

from inquitree_gym.embeddings.local import Adapter
from research.reader.examples import Example, Examples, Family
from research.reader.lora import TrainableEncoder, descend


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a training run."""

    rank: int = 16
    scale: float = 1.0
    frozen: int = 3
    """Lower blocks of the encoder that are not trained."""
    learning_rate: float = 3e-4
    weight_decay: float = 0.01
    epochs: int = 10
    temperature: float = 0.05
    threshold: float = 0.5
    """The constant that stands for no node."""
    negative_weight: float = 0.5
    """Weight of a proposal that means no node."""
    kept: float = 0.7
    """Share of the paraphrases that stand for their node in a step."""
    per_step: int = 200
    """Examples about one tree in a step."""
    seed: int = 0


def train(
    data: Examples,
    trees: Sequence[str],
    settings: Settings,
    folder: Path,
    device: str,
    advance: Callable[[], None],
    start: Adapter | None = None,
) -> TrainableEncoder:
    """Return MiniLM from ``folder`` with an adapter trained on the examples about ``trees``.

    A step takes one tree. ``advance`` is called after each of ``epochs · len(trees)`` steps.
    """
    encoder = TrainableEncoder(folder, settings.rank, settings.scale, settings.seed, device, settings.frozen, start)
    draws = np.random.default_rng(settings.seed)
    order = (tree for _ in range(settings.epochs) for tree in draws.permutation(list(trees)).tolist())
    losses = (_loss(encoder, data, tree, settings, draws) for tree in order)
    steps = settings.epochs * len(trees)
    descend(encoder, losses, steps, settings.learning_rate, settings.weight_decay, advance)
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
    known, proposed = dict(zip(texts, vectors, strict=False)), vectors[len(texts) :]
    by_family: dict[int, list[int]] = {}
    for place, example in enumerate(asked):
        by_family.setdefault(example.family, []).append(place)
    losses = [
        _family_loss([asked[i] for i in places], said[index], known, proposed[places], settings)
        for index, places in by_family.items()
    ]
    weights = sum(1.0 if example.targets else settings.negative_weight for example in asked)
    return torch.stack(losses).sum() / weights


def _thinned(family: Family, kept: float, draws: np.random.Generator) -> list[list[str]]:
    """Return the canonical text and a random part of the paraphrases of every candidate."""
    return [[first, *(text for text in others if draws.random() < kept)] for first, *others in family.texts]


def _family_loss(
    asked: list[Example], said: list[list[str]], known: dict[str, Tensor], vectors: Tensor, settings: Settings
) -> Tensor:
    """Return the weighted sum of negative log-likelihoods of the right answers to the examples of one family."""
    sums = torch.stack([torch.stack([known[text] for text in texts]).sum(dim=0) for texts in said])
    own = torch.zeros(len(asked), len(said), vectors.shape[1], device=vectors.device)
    for i, example in enumerate(asked):  # a paraphrase is no part of its own candidate
        for target in example.targets:
            own[i, target] += known[example.text] if example.text in said[target] else 0
    similarities = torch.einsum("qcd,qd->qc", normalize(sums - own, dim=-1), vectors)
    constant = torch.full_like(similarities[:, :1], settings.threshold)
    scores = (torch.cat([similarities, constant], dim=1) / settings.temperature).log_softmax(dim=1)
    right = torch.full_like(scores, -torch.inf)
    for i, example in enumerate(asked):
        right[i, list(example.targets) or [len(said)]] = 0
    weights = scores.new_tensor([1.0 if example.targets else settings.negative_weight for example in asked])
    return -(weights * (scores + right).logsumexp(dim=1)).sum()
