"""Low-rank adaptation of MiniLM (LoRA, arXiv:2106.09685), and texts in, unit vectors out, with gradients."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.utils.parametrize import register_parametrization

from inquitree_gym.embeddings.local import BASE, DOWN, UP, Adapter, file_digest

WINDOW = 256
"""Tokens of a text that are read."""
BATCH = 512
"""Texts per forward pass."""
WARM_UP = 10
"""Steps over which the learning rate rises."""


class LowRankChange(nn.Module):
    """Adds ``scale · up @ down`` to a weight of shape ``(out, in)``. It starts as no change."""

    def __init__(self, weight: Tensor, rank: int, scale: float, generator: torch.Generator) -> None:
        """Draw ``down`` from a normal distribution, and set ``up`` to zero."""
        super().__init__()
        rows, columns = weight.shape
        down = torch.randn(rank, columns, generator=generator) / math.sqrt(columns)
        self.down = nn.Parameter(down.to(weight.device))
        self.up = nn.Parameter(torch.zeros(rows, rank, device=weight.device))
        self._scale = scale

    def forward(self, weight: Tensor) -> Tensor:
        """Return the changed weight."""
        return weight + self._scale * (self.up @ self.down)


class TrainableEncoder:
    """MiniLM with a low-rank change of each linear layer of its encoder."""

    def __init__(self, folder: Path, rank: int, scale: float, seed: int, device: str) -> None:
        """Load MiniLM from ``folder`` and add the changes. Rank 0 adds none."""
        from transformers import AutoModel, AutoTokenizer

        self.device = device
        self._scale = scale
        self._tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
        self.model: Any = AutoModel.from_pretrained(str(folder)).to(device).eval()
        self.model.requires_grad_(False)
        self._tokens: dict[str, list[int]] = {}
        generator = torch.Generator().manual_seed(seed)
        layers = [(name, each) for name, each in self.model.encoder.named_modules() if isinstance(each, nn.Linear)]
        self._changes = {
            f"encoder.{name}.weight": LowRankChange(each.weight, rank, scale, generator)
            for name, each in layers
            if rank
        }
        for name, each in layers if rank else ():
            register_parametrization(each, "weight", self._changes[f"encoder.{name}.weight"])

    @property
    def parameters(self) -> list[nn.Parameter]:
        """The factors of all changes."""
        return [factor for change in self._changes.values() for factor in change.parameters()]

    def embed(self, texts: Sequence[str]) -> Tensor:
        """Return the vectors of ``texts``, shape ``(len(texts), 384)``, rows of unit length."""
        order = sorted(range(len(texts)), key=lambda i: len(self._read(texts[i])))
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        rows = torch.cat([self._embed([texts[i] for i in batch]) for batch in batches])
        return rows[torch.tensor(np.argsort(order), device=self.device)]

    def adapter(self) -> Adapter:
        """Return the changes in half precision."""
        factors = {}
        for name, change in self._changes.items():
            for suffix, factor in ((DOWN, change.down), (UP, change.up)):
                factors[name + suffix] = factor.detach().cpu().numpy().astype(np.float16)
        return Adapter(BASE, self._scale, factors)

    def _embed(self, texts: Sequence[str]) -> Tensor:
        rows = [self._read(text) for text in texts]
        ids = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = torch.tensor(row)
            mask[index, : len(row)] = 1
        ids, mask = ids.to(self.device), mask.to(self.device)
        states = self.model(input_ids=ids, attention_mask=mask).last_hidden_state
        mean = (states * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        return normalize(mean, dim=-1)

    def _read(self, text: str) -> list[int]:
        if text not in self._tokens:
            self._tokens[text] = self._tokenizer(text, truncation=True, max_length=WINDOW)["input_ids"]
        return self._tokens[text]


def descend(
    encoder: TrainableEncoder,
    losses: Iterable[Tensor],
    steps: int,
    learning_rate: float,
    weight_decay: float,
    advance: Callable[[], None],
) -> None:
    """Take one step of AdamW for each loss. The learning rate rises over `WARM_UP` steps, then falls linearly to 0.

    Each of the ``steps`` losses is taken from the iterable when the step before it is done.
    """
    optimizer = torch.optim.AdamW(encoder.parameters, learning_rate, weight_decay=weight_decay)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / WARM_UP) * (1 - i / steps))
    for loss in losses:
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(encoder.parameters, 1.0)
        optimizer.step()
        rate.step()
        advance()


def write_adapter(file: Path, adapter: Adapter, about: Mapping[str, Any]) -> str:
    """Write an adapter in half precision with the record ``about`` its training, and return its SHA-256."""
    from safetensors.numpy import save_file

    record = {"base": adapter.base, "scale": adapter.scale, **about}
    save_file(dict(sorted(adapter.factors.items())), file, {"inquitree": json.dumps(record, sort_keys=True)})
    return file_digest(file)
