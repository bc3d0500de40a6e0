"""What studies read in a world where a given mechanism holds: the numbers and words of their results."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

from inquitree_gym.trees.generator.methods import VERDICTS
from inquitree_gym.trees.generator.rng import Lots
from inquitree_gym.trees.generator.world import DOSES, Mechanism, Relation

Words = dict[str, str]
"""What stands for each name in a sentence."""

STRAY = 0.1
"""Size by which an outcome strays where nothing acts on it, relative to a large effect and times the noise."""
_ORDINALS = ("first", "second", "third")


class Readings:
    """Measurements in one study: the same resting value whatever holds, and noise on every change."""

    def __init__(self, relation: Relation, lots: Lots) -> None:
        self._relation = relation
        self._lots = lots
        self._rest = relation.outcome.base * (1 + self._stray())

    def words(self, mechanism: Mechanism, sample: int) -> Words:
        """Return what every sentence on a result may hold, were ``mechanism`` true, for a sample of this size."""
        common = {
            "c": self._value(0.0),
            "q": str(self._lots.between(sample * 7 // 10, sample * 19 // 20)),
            "e": f"{self._lots.between(11, 29) / 10}",
        }
        return common | _READERS[self._relation.kind](self, mechanism)

    def slope(self, mechanism: Mechanism) -> Words:
        """Read the outcome at rest and at the highest setting."""
        change = self._measured(mechanism.response(1.0))
        numbers = {"t": self._value(change), "p": _percent(change).lstrip("+-"), "r": self._tie(change)}
        return numbers | VERDICTS["slope"][mechanism.outcome]

    def step(self, mechanism: Mechanism) -> Words:
        """Go through the doses up to the first that moves the outcome, or to the last."""
        changes = [mechanism.response(dose / DOSES) for dose in range(1, DOSES + 1)]
        numbers = {"t": self._value(self._measured(changes[-1]))} | doses(self._relation, mechanism)
        return numbers | VERDICTS["step"][direction(mechanism)]

    def route(self, mechanism: Mechanism) -> Words:
        """Read the outcome with the mediator free, with it clamped, and with it driven alone."""
        free, clamped = mechanism.response(1.0, 1.0), mechanism.response(1.0, 0.0)
        whole, rest, part = map(self._measured, (free, clamped, free - clamped))
        numbers = {"t": self._value(whole), "b": self._value(rest), "h": self._value(part)}
        return numbers | {"r": self._tie(whole), "s": self._tie(rest)} | VERDICTS["route"][mechanism.outcome]

    def gate(self, mechanism: Mechanism) -> Words:
        """Read the effect under a low and under a high modifier."""
        low, high = (self._measured(mechanism.response(1.0, level)) for level in (0.0, 1.0))
        return {"p1": _percent(low), "p2": _percent(high)} | VERDICTS["gate"][mechanism.outcome]

    def pull(self, mechanism: Mechanism) -> Words:
        """Read what each cause does alone, and what is left of all of them without it."""
        count = len(self._relation.causes)
        alone = [self._measured(mechanism.response(*(float(i == j) for i in range(count)))) for j in range(count)]
        return {
            "effects": listed([_percent(change) for change in alone]),
            "weights": listed([f"{change / self._relation.large:+.2f}" for change in alone]),
            "remains": listed([self._value(sum(alone) - change) for change in alone]),
            "t": self._value(sum(alone)),
            "who": _who(mechanism),
        }

    def _measured(self, change: float) -> float:
        """Return a change as measured; noise in proportion leaves it its sign, and where there is none it strays."""
        return change * (1 + self._relation.noise * self._lots.bell()) if change else self._stray()

    def _stray(self) -> float:
        return self._relation.noise * STRAY * self._relation.large * self._lots.bell()

    def _value(self, change: float) -> str:
        return f"{self._rest * _factor(change):.1f}"

    def _tie(self, change: float) -> str:
        """Return a correlation: the change against half a large effect as what else varies."""
        return f"{change / sqrt(change**2 + (self._relation.large / 2) ** 2):+.2f}"


_READERS: dict[str, Callable[[Readings, Mechanism], Words]] = {
    "slope": Readings.slope,
    "step": Readings.step,
    "route": Readings.route,
    "gate": Readings.gate,
    "pull": Readings.pull,
}


def doses(relation: Relation, mechanism: Mechanism) -> Words:
    """Return the last dose that leaves the outcome as it is, and the next, which moves it if any does."""
    moving = (dose for dose in range(1, DOSES + 1) if mechanism.response(dose / DOSES))
    high = next(moving, DOSES)
    top = relation.causes[0].base
    return {"lo": f"{top * (high - 1) / DOSES:g}", "hi": f"{top * high / DOSES:g}"}


def direction(mechanism: Mechanism) -> str:
    """Return the outcome without what it numbers: ``up3`` is ``up``."""
    return mechanism.outcome.rstrip("0123456789")


def number_of(mechanism: Mechanism) -> int:
    """Return what the outcome numbers: ``up3`` has 3."""
    return int(mechanism.outcome.removeprefix(direction(mechanism)))


def listed(parts: list[str]) -> str:
    """Return ``a, b and c``."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _factor(change: float) -> float:
    """Return what a relative change multiplies by: a rise by 1 doubles, a fall by 1 halves, nothing falls below 0."""
    return 1 + change if change >= 0 else 1 / (1 - change)


def _percent(change: float) -> str:
    return f"{round(100 * (_factor(change) - 1)):+d}"


def _who(mechanism: Mechanism) -> str:
    way = direction(mechanism)
    if way == "null":
        return "none of them moved it"
    verb = "raised" if way.startswith("up") else "lowered"
    if way.endswith("all"):
        return f"every one of them {verb} it"
    return f"only the {_ORDINALS[number_of(mechanism)]} {verb} it"
