"""Low-rank adaptation of MiniLM (LoRA, arXiv:2106.09685), and texts in, unit vectors out, with gradients."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import linear, normalize
from torch.nn.utils.rnn import pad_sequence

from inquitree_gym.embeddings.local import BASE, DOWN, UP, Adapter, file_digest

WINDOW = 256
"""Tokens of a text that are read."""
BATCH = 64
"""Texts per forward pass, of about equal length."""
WARM_UP = 10
"""Steps over which the learning rate rises."""


class AdaptedLinear(nn.Module):
    """A frozen linear layer with ``scale · up @ down`` added to its weight. It starts as no change.

    The change acts on the inputs, so that a step back never makes a gradient of the shape of the weight.
    """

    def __init__(self, layer: nn.Linear, rank: int, scale: float, generator: torch.Generator) -> None:
        """Draw ``down`` from a normal distribution, and set ``up`` to zero."""
        super().__init__()
        rows, columns = layer.weight.shape
        down = torch.randn(rank, columns, generator=generator) / math.sqrt(columns)
        self.down = nn.Parameter(down.to(layer.weight.device))
        self.up = nn.Parameter(torch.zeros(rows, rank, device=layer.weight.device))
        self._layer = layer
        self._scale = scale

    @property
    def factors(self) -> tuple[nn.Parameter, nn.Parameter]:
        """``down`` and ``up``."""
        return self.down, self.up

    @torch.no_grad()
    def take(self, down: NDArray[np.float16], up: NDArray[np.float16]) -> None:
        """Begin from these factors."""
        for own, given in zip(self.factors, (down, up), strict=True):
            own.copy_(torch.from_numpy(given.astype(np.float32)))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs of the changed layer."""
        return self._layer(inputs) + self._scale * linear(linear(inputs, self.down), self.up)


class TrainableEncoder:
    """MiniLM with a low-rank change of each linear layer of its encoder, of which the upper blocks are trained."""

    def __init__(
        self,
        folder: Path,
        rank: int,
        scale: float,
        seed: int,
        device: str,
        frozen: int = 0,
        start: Adapter | None = None,
    ) -> None:
        """Load MiniLM from ``folder`` and add the changes: those of ``start``, else none yet. Rank 0 adds none.

        The lower ``frozen`` of the six blocks are not trained, so that a text passes them once.
        """
        from transformers import AutoModel, AutoTokenizer

        self.device = device
        self._scale = scale
        self._frozen = frozen
        self._tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
        self.model: Any = AutoModel.from_pretrained(str(folder)).to(device).eval()
        self.model.requires_grad_(False)
        self._below: dict[str, Tensor] = {}
        generator = torch.Generator().manual_seed(seed)
        encoder = self.model.encoder
        layers = [(name, each) for name, each in encoder.named_modules() if rank and isinstance(each, nn.Linear)]
        self._changes: dict[str, AdaptedLinear] = {}
        for name, layer in layers:
            weight = f"encoder.{name}.weight"
            changed = self._changes[weight] = AdaptedLinear(layer, rank, scale, generator)
            if start is not None:
                changed.take(start.factors[weight + DOWN], start.factors[weight + UP])
            encoder.set_submodule(name, changed)
        for block in encoder.layer[:frozen]:
            block.requires_grad_(False)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """The factors of all changes that are trained."""
        changes = self._changes.values()
        return [factor for change in changes for factor in change.factors if factor.requires_grad]

    def embed(self, texts: Sequence[str]) -> Tensor:
        """Return the vectors of ``texts``, shape ``(len(texts), 384)``, rows of unit length."""
        below = [self._enter(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda i: len(below[i]))
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        rows = torch.cat([self._rise([below[i] for i in batch]) for batch in batches])
        return rows[torch.tensor(np.argsort(order), device=self.device)]

    def adapter(self) -> Adapter:
        """Return the changes in half precision."""
        factors = {}
        for name, change in self._changes.items():
            for suffix, factor in zip((DOWN, UP), change.factors, strict=True):
                factors[name + suffix] = factor.detach().cpu().numpy().astype(np.float16)
        return Adapter(BASE, self._scale, factors)

    def _enter(self, text: str) -> Tensor:
        """Return what the frozen blocks make of a text, shape ``(tokens, 384)``."""
        if text not in self._below:
            tokens = self._tokenizer(text, truncation=True, max_length=WINDOW, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                states = self.model.embeddings(input_ids=tokens.to(self.device))
                for block in self.model.encoder.layer[: self._frozen]:
                    states = block(states)
            self._below[text] = states[0]
        return self._below[text]

    def _rise(self, below: Sequence[Tensor]) -> Tensor:
        """Return the vectors of texts from what the frozen blocks made of them."""
        states = pad_sequence(list(below), batch_first=True)
        read = torch.zeros(states.shape[:2], device=self.device)
        for row, text in zip(read, below, strict=True):
            row[: len(text)] = 1
        hidden = torch.where(read[:, None, None, :] > 0, 0.0, -torch.inf)
        for block in self.model.encoder.layer[self._frozen :]:
            states = block(states, hidden)
        mean = (states * read[..., None]).sum(dim=1) / read.sum(dim=1, keepdim=True)
        return normalize(mean, dim=-1)


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
