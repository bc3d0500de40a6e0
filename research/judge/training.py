"""Training of the judge's adapter: a claim should be nearest to what it says, and to a truth rather than its fakes.

Two losses are added. The first is a softmax over all statements of the tree, each in its true and its false sense. A
sense is as near as its nearest text. The second is a logistic loss on the lead of the sense that the claim has over the
opposite sense of the same statement, which is what the judge decides by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from inquitree_gym.judging.sense import Statement
from research.judge.statements import Claim, Lesson, reworked
from research.reader.lora import TrainableEncoder, descend


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a training run."""

    rank: int = 16
    scale: float = 1.0
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    epochs: int = 8
    temperature: float = 0.05
    lead_temperature: float = 0.05
    """Scale of the lead in the logistic loss."""
    lead_weight: float = 1.0
    """Weight of the logistic loss."""
    nothing: float = 0.5
    """The constant in the softmax that stands for asserting nothing."""
    per_step: int = 120
    """Claims about one tree in a step. Another half as many are made from its texts."""
    synthetic: int = 1
    """Steps on synthetic trees for each step on a shipped one."""
    seed: int = 0


def train(
    lessons: Sequence[Lesson],
    synthetic: Sequence[Lesson],
    settings: Settings,
    folder: Path,
    device: str,
    advance: Callable[[], None],
) -> TrainableEncoder:
    """Return MiniLM from ``folder`` with an adapter trained on the lessons. ``advance`` is called after each step."""
    encoder = TrainableEncoder(folder, settings.rank, settings.scale, settings.seed, device)
    draws = np.random.default_rng(settings.seed)
    order = _order(lessons, synthetic, settings, draws)
    losses = (_loss(encoder, each.statements, _drawn(each, settings, draws), settings) for each in order)
    descend(encoder, losses, len(order), settings.learning_rate, settings.weight_decay, advance)
    return encoder


def _drawn(lesson: Lesson, settings: Settings, draws: np.random.Generator) -> list[Claim]:
    """Return the claims of one step: some about the tree, and some made from its texts."""
    claims = [lesson.claims[i] for i in draws.permutation(len(lesson.claims))[: settings.per_step]]
    made = reworked(lesson, draws)
    return claims + [made[i] for i in draws.permutation(len(made))[: settings.per_step // 2]]


def _order(
    lessons: Sequence[Lesson], synthetic: Sequence[Lesson], settings: Settings, draws: np.random.Generator
) -> list[Lesson]:
    order = []
    for _ in range(settings.epochs):
        for i in draws.permutation(len(lessons)):
            order += [synthetic[k] for k in draws.integers(len(synthetic), size=settings.synthetic)]
            order.append(lessons[i])
    return order


def _loss(
    encoder: TrainableEncoder, statements: Sequence[Statement], claims: Sequence[Claim], settings: Settings
) -> Tensor:
    texts = [text for each in statements for text in (*each.true, *each.false)]
    vectors = encoder.embed([*texts, *(claim.text for claim in claims)])
    similarities = vectors[len(texts) :] @ vectors[: len(texts)].T
    similarities = similarities.masked_fill(_same(texts, claims).to(similarities.device), -1.0)
    senses = _senses(similarities, statements)
    said = torch.full_like(senses, -torch.inf)
    for i, claim in enumerate(claims):
        for index, true in claim.says:
            said[i, index, 0 if true else 1] = 0
    nothing = torch.full_like(senses[:, 0, :1], settings.nothing)
    scores = (torch.cat([senses.flatten(1), nothing], dim=1) / settings.temperature).log_softmax(dim=1)
    right = torch.cat([said.flatten(1), torch.full_like(nothing, -torch.inf)], dim=1)
    right[[i for i, claim in enumerate(claims) if not claim.says], -1] = 0
    topic = -(scores + right).logsumexp(dim=1).mean()
    lead = (senses[..., 0] - senses[..., 1]) / settings.lead_temperature
    wrong = torch.stack([softplus(-lead), softplus(lead)], dim=-1)
    return topic + settings.lead_weight * wrong[said == 0].mean()


def _same(texts: Sequence[str], claims: Sequence[Claim]) -> Tensor:
    """Return where a claim is compared with itself, which is no evidence. Shape ``(claims, texts)``."""
    columns: dict[str, list[int]] = {}
    for column, text in enumerate(texts):
        columns.setdefault(text, []).append(column)
    same = torch.zeros(len(claims), len(texts), dtype=torch.bool)
    for row, claim in enumerate(claims):
        same[row, columns.get(claim.text, [])] = True
    return same


def _senses(similarities: Tensor, statements: Sequence[Statement]) -> Tensor:
    """Return the similarity of each claim to each statement in its true and its false sense.

    Shape ``(claims, statements, 2)``.
    """
    columns, start = [], 0
    for each in statements:
        for texts in (each.true, each.false):
            columns.append(similarities[:, start : start + len(texts)].amax(dim=1))
            start += len(texts)
    return torch.stack(columns, dim=1).reshape(len(similarities), len(statements), 2)
