"""Fictional variables: quantities of invented things, and external factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TypeVar

from numpy.random import PCG64

from inquitree_gym.fiction.documents import SYLLABLES, Science

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


@dataclass(frozen=True, slots=True)
class Variable:
    """A quantity of a thing, or an external factor."""

    full: str
    short: str
    noun: str
    thing: str
    """Carrier of the quantity. Empty for a factor."""
    units: str
    unit: str
    base: int
    """Resting value of a quantity, or highest dose of a factor."""

    @property
    def is_factor(self) -> bool:
        """True for an external factor."""
        return not self.thing


class VariablePool:
    """Draws variables. No quantity, thing or factor repeats before all have been used, and no name ever does."""

    def __init__(self, science: Science, names: RandomStream, stream: RandomStream) -> None:
        self._names = names
        self._stream = stream
        self._used_names: set[str] = set()
        self._quantities = cycle(stream.shuffled(science.quantities))
        self._things = cycle(stream.shuffled(science.things))
        self._factors = cycle(stream.shuffled(science.factors))
        self._quantity = next(self._quantities)
        self._thing = next(self._things)

    def outcome(self, near: bool) -> Variable:
        """Return the next outcome. A near one has the quantity and kind of thing of the previous one."""
        if not near:
            self._quantity, self._thing = next(self._quantities), next(self._things)
        quantity, thing = self._quantity, self.named(self._thing.form)
        return Variable(
            full=f"the {quantity.phrase} of {thing}",
            short=f"the {quantity.noun} of {thing}",
            noun=quantity.noun,
            thing=thing,
            units=self._thing.units,
            unit=quantity.unit,
            base=self._stream.between(quantity.low, quantity.high),
        )

    def factor(self) -> Variable:
        """Return a new external factor."""
        factor, name = next(self._factors), self._new_name()
        short = _filled(factor.short, name)
        return Variable(_filled(factor.form, name), short, short, "", "", factor.unit, factor.top)

    def named(self, form: str) -> str:
        """Return the form with a new name filled in."""
        return _filled(form, self._new_name())

    def _new_name(self) -> str:
        while True:
            name = "".join(self._names.choice(choices) for choices in SYLLABLES)
            if name not in self._used_names:
                self._used_names.add(name)
                return name


def _filled(form: str, name: str) -> str:
    return form.format(name, N=name.capitalize())
