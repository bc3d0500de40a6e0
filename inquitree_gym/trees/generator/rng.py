"""Draws by lot that are the same on every platform and under every version of NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from numpy.random import PCG64

STREAMS = ("shape", "names", "world", "mechanisms", "wording", "numbers", "items")
"""What is drawn apart from one another, so that a setting moves as little else as it can."""
_BLOCK = 256
"""Raw integers fetched at once."""

T = TypeVar("T")


class Lots:
    """A stream of draws for one seed and one purpose.

    NumPy promises the integers of a bit generator for good, and those of a `Generator` only within a version. So the
    integers come from PCG64, and all else is made of them here with operations that IEEE 754 defines to the bit.
    """

    def __init__(self, seed: int, stream: str) -> None:
        """Start the stream, one of `STREAMS`, of a seed from 0 on."""
        self._source = PCG64([STREAMS.index(stream), seed])
        self._ready: list[int] = []

    def unit(self) -> float:
        """Return a number from 0 up to but not including 1."""
        return (self._next() >> 11) * 2.0**-53

    def below(self, count: int) -> int:
        """Return a whole number from 0 up to but not including ``count``."""
        return self._next() * count >> 64

    def between(self, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``, both included."""
        return low + self.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.unit() < probability

    def bell(self) -> float:
        """Return a number of mean 0 and standard deviation 1 within -3 and 3: three uniform ones together."""
        return (self.unit() + self.unit() + self.unit() - 1.5) * 2

    def pick(self, among: Sequence[T]) -> T:
        """Return one of ``among``."""
        return among[self.below(len(among))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return ``items`` in an order of which each is equally likely."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def _next(self) -> int:
        if not self._ready:
            self._ready = self._source.random_raw(_BLOCK).tolist()
        return self._ready.pop()
