"""Random draws that are identical on every platform and under every version of NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from numpy.random import PCG64

STREAMS = ("shape", "names", "world", "mechanisms", "wording", "numbers", "items")
"""Independent streams of one seed, so that a change of one setting leaves most other draws alone."""
_BLOCK = 256
"""Raw integers fetched at once."""

T = TypeVar("T")


class RandomStream:
    """Random draws for one seed and one purpose.

    NumPy guarantees the integers of a bit generator forever, but those of a `Generator` only within a version. All
    draws are therefore computed here from the integers of PCG64, with operations that IEEE 754 defines to the bit.
    """

    def __init__(self, seed: int, stream: str) -> None:
        """Open one of `STREAMS` for a non-negative seed."""
        self._source = PCG64([STREAMS.index(stream), seed])
        self._ready: list[int] = []

    def uniform(self) -> float:
        """Return a number in [0, 1)."""
        return (self._next() >> 11) * 2.0**-53

    def below(self, count: int) -> int:
        """Return an integer in [0, count)."""
        return self._next() * count >> 64

    def between(self, low: int, high: int) -> int:
        """Return an integer in [low, high]."""
        return low + self.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.uniform() < probability

    def bell(self) -> float:
        """Return the scaled sum of three uniforms: mean 0, standard deviation 1, range [-3, 3]."""
        return (self.uniform() + self.uniform() + self.uniform() - 1.5) * 2

    def choice(self, options: Sequence[T]) -> T:
        """Return one of the options, each equally likely."""
        return options[self.below(len(options))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in random order (Fisher-Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def _next(self) -> int:
        if not self._ready:
            self._ready = self._source.random_raw(_BLOCK).tolist()
        return self._ready.pop()
