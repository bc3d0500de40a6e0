"""`FreeText`: a `Text` space over all of Unicode, with shared memory for `AsyncVectorEnv`."""

from __future__ import annotations

import multiprocessing as mp
import string
from collections.abc import Sequence
from multiprocessing.context import BaseContext
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import create_shared_memory, read_from_shared_memory, write_to_shared_memory
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Mask = Bools
"""True for the actions that are open."""

WORDS = (  # noqa: SIM905  (easier to read and to extend than a list)
    "a about across activity after animals are before behaviour between brain by cells change circuit compare "
    "condition control cortex design do does effect estimate for from group how in into is learning measure memory "
    "model network neurons of on or over place record response reward same signal size sleep space stimulus study "
    "subjects task test than that the their this time to train two under units what when where whether which with"
).split()
"""Vocabulary of samples."""
SAMPLE_WORDS = (4, 24)
"""Fewest and most words of a sample."""


class FreeText(spaces.Text):
    """Any Unicode string of at most ``max_length`` characters, including the empty one.

    Membership, equality and representation depend on the length alone, so they cost the same for any alphabet. Samples
    are a few readable words.
    """

    def __init__(self, max_length: int, *, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(max_length, min_length=0, charset=string.printable, seed=seed)

    def contains(self, x: Any) -> bool:
        """Tell whether ``x`` is a string that is short enough."""
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return a few random words.

        Raises:
            ValueError: a mask or probabilities are given. Those of `Text` apply to characters, not words.
        """
        if mask is not None or probability is not None:
            raise ValueError("FreeText samples whole words and takes neither mask nor probability; pass None")
        low, high = SAMPLE_WORDS
        chosen = self.np_random.integers(len(WORDS), size=self.np_random.integers(low, high + 1))
        return " ".join(WORDS[i] for i in chosen)[: self.max_length]

    def __eq__(self, other: object) -> bool:
        """Two free texts are equal when they hold the same strings."""
        return isinstance(other, FreeText) and self.max_length == other.max_length

    def __hash__(self) -> int:
        """Equal spaces hash alike."""
        return hash((FreeText, self.max_length))

    def __repr__(self) -> str:
        return f"FreeText({self.max_length})"


class _SharedTexts(Sequence[str]):
    """A live view of the texts in shared memory, whose deep copy is a tuple of the current texts.

    `AsyncVectorEnv` reads shared memory once and returns deep copies of that object at every step.
    """

    def __init__(self, rows: NDArray[np.uint32]) -> None:
        self._rows = rows

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return tuple(self)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return _decode(self._rows[index]) if isinstance(index, int) else tuple(self)[index]


def _rows(buffer: Any, width: int) -> NDArray[np.uint32]:
    return np.frombuffer(buffer.get_obj(), np.uint32).reshape(-1, width)


def _decode(row: NDArray[np.uint32]) -> str:
    return row[1 : 1 + int(row[0])].tobytes().decode("utf-32-le", "surrogatepass")


@create_shared_memory.register(FreeText)
def _create(space: FreeText, n: int = 1, ctx: BaseContext | Any = mp) -> Any:
    """Allocate a length and ``max_length`` UTF-32 code points per environment."""
    return ctx.Array("I", n * (space.max_length + 1))


@read_from_shared_memory.register(FreeText)
def _view(space: FreeText, shared_memory: Any, n: int = 1) -> _SharedTexts:
    return _SharedTexts(_rows(shared_memory, space.max_length + 1))


@write_to_shared_memory.register(FreeText)
def _write(space: FreeText, index: int, value: str, shared_memory: Any) -> None:
    points = np.frombuffer(value.encode("utf-32-le", "surrogatepass"), np.uint32)
    row = _rows(shared_memory, space.max_length + 1)[index]
    row[0] = len(points)
    row[1 : 1 + len(points)] = points
