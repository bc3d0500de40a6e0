"""The hidden causal model: what moves what, how strongly, and what else might have been.

Every subtopic asks about one relation: causes, an outcome, and a mechanism between them. A mechanism answers a setting
of its causes, each from 0 (resting) to 1 (highest), with the change of the outcome relative to its resting value. For
each relation several mechanisms are drawn together, unlike in direction or size, and a lot decides which of them is
true of this world. The others are what fake results and false conclusions are made of. So nothing in a text can tell
true from fake: before the lot fell, each might have been either.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from inquitree_gym.trees.generator.vocabulary import Field

STRENGTHS = {3: 1.0, 2: 0.45, 1: 0.2}
"""Share of a large effect by strength: large, medium, small."""
DOSES = 5
"""Levels of a cause that studies look at, evenly spaced up to the highest."""
SHARES = {"all": 1.0, "most": 0.75, "half": 0.5, "quarter": 0.25, "against": -0.6}
"""Share of an influence that passes through a mediator; below 0 the mediator works against it."""
GATES = {"gone": 0.0, "weaker": 0.4, "double": 2.0, "triple": 3.0, "reversed": -1.0}
"""Size of an effect under a high modifier, relative to that under a low one."""


class Mechanism(Protocol):
    """One way in which causes may act on an outcome."""

    @property
    def outcome(self) -> str:
        """What it amounts to; two mechanisms of one relation never have the same."""

    def response(self, *levels: float) -> float:
        """Return the relative change of the outcome with the causes at ``levels``, each from 0 to 1."""


class Slope(NamedTuple):
    """The outcome rises or falls in proportion to one cause, or does not move."""

    outcome: str
    size: float

    def response(self, *levels: float) -> float:
        """See `Mechanism`: the level of the cause."""
        return self.size * levels[0]


class Step(NamedTuple):
    """The outcome moves at once where the cause reaches dose ``at`` of `DOSES`, or does not move."""

    outcome: str
    size: float
    at: int

    def response(self, *levels: float) -> float:
        """See `Mechanism`: the level of the cause."""
        return self.size if levels[0] * DOSES >= self.at - 0.5 else 0.0


class Route(NamedTuple):
    """A cause moves the outcome, a share of it through a mediator."""

    outcome: str
    size: float
    share: float

    def response(self, *levels: float) -> float:
        """See `Mechanism`: the level of the cause, and how free the mediator is, from 0 for clamped to 1."""
        return self.size * levels[0] * (1 - self.share * (1 - levels[1]))


class Gate(NamedTuple):
    """A cause moves the outcome; a modifier changes by how much."""

    outcome: str
    size: float
    factor: float

    def response(self, *levels: float) -> float:
        """See `Mechanism`: the levels of the cause and of the modifier."""
        return self.size * levels[0] * (1 + (self.factor - 1) * levels[1])


class Pull(NamedTuple):
    """Several causes act on the outcome at once, each with its own size."""

    outcome: str
    sizes: tuple[float, ...]

    def response(self, *levels: float) -> float:
        """See `Mechanism`: the level of every cause."""
        return sum(size * level for size, level in zip(self.sizes, levels, strict=True))


class Variable(NamedTuple):
    """Something that can be set or read: a quantity of a thing, or a factor from outside."""

    full: str
    short: str
    noun: str
    thing: str
    """What carries it; empty for a factor."""
    units: str
    unit: str
    base: int
    """Resting value; for a factor its highest dose."""

    @property
    def is_factor(self) -> bool:
        """Whether it acts from outside."""
        return not self.thing


class Relation(NamedTuple):
    """What one subtopic is about."""

    kind: str
    """``slope``, ``step``, ``route``, ``gate`` or ``pull``."""
    causes: tuple[Variable, ...]
    outcome: Variable
    mechanisms: tuple[Mechanism, ...]
    """What might be true; the first is."""
    large: float
    """Size of a large effect."""
    noise: float
    is_near: bool
    """Whether it asks what the relation before it asks, only of another name."""


class World(NamedTuple):
    """A hidden causal model: one relation per subtopic, in tree order."""

    field: Field
    place: str
    relations: tuple[Relation, ...]
