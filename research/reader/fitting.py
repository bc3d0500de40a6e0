"""Fit of the matrix that turns the vectors of a model: every proposal should be nearest to its node.

For a proposal, the candidates of its family and a constant, the threshold, take part in a softmax over similarities
divided by a temperature. The right answer is the proposal's target, or the constant for a proposal that means no node,
so that similarities can be compared with one threshold in every tree. Beside this, what the linter asks of a tree is
kept: a hint is as near to its node as the hint before (T502), and no text before a result leans to a pole (T807, T921).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize, relu

from research.reader.lessons import Family, Sheet

Matrix = NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a fit."""

    epochs: int = 60
    """Each has one step for each tree, with all proposals about it."""
    learning_rate: float = 2e-3
    weight_decay: float = 1.0
    dropout: float = 0.1
    """Share of the rows of the matrix that a step leaves out."""
    temperature: float = 0.05
    threshold: float = 0.5
    """The constant that stands for no node."""
    negative_weight: float = 0.5
    """Weight of a proposal that means no node."""
    kept: float = 0.6
    """Share of the paraphrases that stand for their node in a step."""
    hint_weight: float = 20.0
    """Weight of the mean similarity that a hint loses against the hint before."""
    lean_weight: float = 200.0
    """Weight of the mean similarity by which a text leans to a pole, beyond `lean`."""
    lean: float = 0.06
    seed: int = 0


def fit(sheets: Sequence[Sheet], settings: Settings, advance: Callable[[], None] = lambda: None) -> Matrix:
    """Return the change of the identity by which the vectors of ``sheets`` are multiplied, shape ``(dim, dim)``.

    ``advance`` is called after each of ``epochs · len(sheets)`` steps.
    """
    dim = sheets[0].vectors.shape[1]
    change = torch.zeros(dim, dim, requires_grad=True)
    draws = torch.Generator().manual_seed(settings.seed)
    order = [t for _ in range(settings.epochs) for t in torch.randperm(len(sheets), generator=draws).tolist()]
    optimizer = torch.optim.AdamW([change], settings.learning_rate, weight_decay=settings.weight_decay)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1, (i + 1) / 20) * (1 - i / len(order)))
    for place in order:
        optimizer.zero_grad()
        loss(sheets[place], change, settings, draws).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        rate.step()
        advance()
    return np.asarray(change.detach().numpy(), np.float16)


def turned(vectors: Tensor, change: Tensor) -> Tensor:
    """Return ``vectors + vectors @ change`` in unit length."""
    return normalize(vectors + vectors @ change, dim=-1)


def loss(sheet: Sheet, change: Tensor, settings: Settings, draws: torch.Generator) -> Tensor:
    """Return the loss of one lesson: of its proposals, its hints, and the texts that should be neutral."""
    seen = (torch.rand(len(change), 1, generator=draws) >= settings.dropout) / (1 - settings.dropout)
    vectors = turned(sheet.vectors, change * seen)
    told = [_likelihoods(family, vectors, settings, draws) for family in sheet.lesson.families if family.proposals]
    likelihood = sum(likelihood for likelihood, _ in told) / sum(weight for _, weight in told)
    falls = settings.hint_weight * _fall(sheet, vectors)
    return falls + settings.lean_weight * _lean(sheet, vectors, settings.lean) - likelihood


def _likelihoods(family: Family, vectors: Tensor, settings: Settings, draws: torch.Generator) -> tuple[Tensor, float]:
    """Return the weighted sum of log-likelihoods of the right answers to the proposals of a family, and of weights."""
    said = []
    for first, *others in family.candidates:
        kept = (torch.rand(len(others), generator=draws) < settings.kept).nonzero().flatten().tolist()
        said.append(vectors[[first, *(others[i] for i in kept)]].sum(dim=0))
    similarities = vectors[family.proposals] @ normalize(torch.stack(said), dim=-1).T
    constant = torch.full_like(similarities[:, :1], settings.threshold)
    scores = (torch.cat([similarities, constant], dim=1) / settings.temperature).log_softmax(dim=1)
    right = torch.full_like(scores, -torch.inf)
    for row, targets in zip(right, family.targets, strict=True):
        row[list(targets) or [len(said)]] = 0
    weights = torch.tensor([1.0 if targets else settings.negative_weight for targets in family.targets])
    return (weights * (scores + right).logsumexp(dim=1)).sum(), float(weights.sum())


def _fall(sheet: Sheet, vectors: Tensor) -> Tensor:
    """Return by how much a hint is farther from its node than the nearest one before, or 0, as a mean over hints."""
    falls = []
    for hints, said in sheet.lesson.ladders:
        near = vectors[hints] @ normalize(vectors[said].sum(dim=0), dim=-1)
        falls.append(relu(near.cummax(dim=0).values[:-1] - near[1:]))
    return torch.cat(falls).mean() if falls else vectors.new_zeros(())


def _lean(sheet: Sheet, vectors: Tensor, free: float) -> Tensor:
    """Return by how much a text is nearer to one pole than to the next, beyond ``free``; mean over texts."""
    leans = []
    for shown, poles in sheet.lesson.neutral:
        near = torch.stack([(vectors[shown] @ vectors[texts].T).mean(dim=1) for texts in poles], dim=1)
        first, second = near.topk(2, dim=1).values.unbind(dim=1)
        leans.append(relu(first - second - free))
    return torch.cat(leans).mean() if leans else vectors.new_zeros(())
