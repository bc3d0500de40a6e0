"""Where an inquiry of the discrete view can stand, and what an action does there, as integers.

A *place* is the phase of an inquiry together with what the agent was shown last, so it fixes the observation's text
and, but for the turn, the info. An *effect* is a `Move` and the place that it leads to.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.engine import Engine, Kind, Phase
from inquitree_gym.envs.observations import LIMIT, ObservationKey
from inquitree_gym.trees import HINT_LEVELS

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Move(IntEnum):
    """What comes with a change of place."""

    GO = 0
    """Nothing."""
    ACT = 1
    """A subtopic is entered or a study run: it is counted and marked."""
    SHOW = 2
    """As `ACT`; and a fake may be shown instead of the true result, whose place is named."""
    AIM = 3
    """The first hint is given: its target is to be found. Its place is that of the pool's first node."""
    END = 4
    """The conclusion is taken."""
    TRY = 5
    """The subtopic is no candidate, so another one counts: the reaction that is named instead of a place."""
    READ = 6
    """The conclusion is said where none was asked for, and what it means has yet to be read."""
    REFUSE = 7
    """The action is not accepted; what follows depends on where it was said."""


NAMED_BITS = 40
"""Bits of an effect for what it names; a move that is not `GO` makes it negative."""
NAMED = (1 << NAMED_BITS) - 1


def effect(move: Move, named: int = 0) -> int:
    """Return the effect of a move to a place; ``effect & NAMED`` is the place, ``effect >> NAMED_BITS`` is −move."""
    return named - (move << NAMED_BITS)


def moved(effects: Ints, places: int, reactions: Ints | None = None) -> Ints:
    """Return effects that name places ``places`` further on, and the n-th of ``reactions`` instead of n."""
    moves = -(effects >> NAMED_BITS)
    found: Ints = effects + np.where(moves < Move.TRY, places, 0)
    if reactions is not None:
        tries = moves == Move.TRY
        named = effects[tries] & NAMED
        found[tries] += reactions[named] - named
    return found


class Layout:
    """Where the places of one tree stand in their order."""

    START, TOPIC, CONCLUSION, LIMIT, END = 0, 1, 2, 3, 6
    """The limit prompt has three places: after a failure, after an accepted action and after a forced move."""

    def __init__(self, engine: Engine) -> None:
        """Lay out the places of ``engine``."""
        self.n, self.m = engine.n, len(engine.subtopic_of)
        self.fakes = engine.fakes_of
        self._before = [0]
        for fakes in self.fakes:
            self._before.append(self._before[-1] + 1 + fakes)
        self._hints = 7 + 2 * self.n
        self._studies = self._hints + HINT_LEVELS * self.n
        self._study_hints = self._studies + 2 * self.m
        self._asked_again = self._study_hints + HINT_LEVELS * self.m
        self._results = self._asked_again + self.m
        self.size = self._results + 4 * self._before[-1]

    def subtopic(self, i: int, forced: bool = False) -> int:
        """Return the place where subtopic ``i`` was entered."""
        return 7 + 2 * i + forced

    def hint(self, i: int, level: int) -> int:
        """Return the place where a hint to subtopic ``i`` was given; those of one subtopic follow each other."""
        return self._hints + HINT_LEVELS * i + level - 1

    def study(self, j: int, forced: bool = False) -> int:
        """Return the place where study ``j`` has a turn of its own."""
        return self._studies + 2 * j + forced

    def study_hint(self, j: int, level: int) -> int:
        """Return the place where a hint to study ``j`` was given; those of one study follow each other."""
        return self._study_hints + HINT_LEVELS * j + level - 1

    def asked_again(self, j: int) -> int:
        """Return the place where the decision after study ``j`` was asked for again."""
        return self._asked_again + j

    def result(self, j: int, fake: int = 0, limit: bool = False, forced: bool = False) -> int:
        """Return the place where a result was shown: `PER_RESULT` places on for every fake."""
        return self._results + PER_RESULT * (self._before[j] + fake) + 2 * limit + forced

    def spots(self) -> Iterator[Spot]:
        """Yield what every place is, in order."""
        yield Spot(ObservationKey(Kind.START))
        yield Spot(ObservationKey(Kind.TOPIC), accepted=True)
        yield Spot(ObservationKey(Kind.CONCLUSION), accepted=True)
        yield from (Spot(LIMIT), Spot(LIMIT, accepted=True), Spot(LIMIT, forced=True))
        yield Spot(ObservationKey(Kind.END), accepted=True)
        for i in range(self.n):
            yield from _taken(ObservationKey(Kind.SUBTOPIC, i))
        yield from _hints(Kind.SUBTOPIC_HINT, self.n)
        for j in range(self.m):
            yield from _taken(ObservationKey(Kind.STUDY, j))
        yield from _hints(Kind.STUDY_HINT, self.m)
        yield from (Spot(ObservationKey(Kind.ASK_AGAIN, j)) for j in range(self.m))
        for j in range(self.m):
            for fake in range(self.fakes[j] + 1):
                yield from _taken(ObservationKey(Kind.RESULT, j, 0, fake))
                yield from _taken(ObservationKey(Kind.RESULT, j, 0, fake, limit=True))


PER_RESULT = 4
"""Places of one result: before the limit and at it, accepted and forced."""


class Spot(NamedTuple):
    """What a place is."""

    view: ObservationKey
    accepted: bool = False
    forced: bool = False

    @property
    def phase(self) -> Phase:
        """The phase that the inquiry is in."""
        return phase_of(self.view)


_PHASES = {
    Kind.START: Phase.TOPIC,
    Kind.TOPIC: Phase.TOPIC,
    Kind.SUBTOPIC: Phase.SUBTOPIC,
    Kind.STUDY: Phase.STUDY,
    Kind.RESULT: Phase.RESULT,
    Kind.SUBTOPIC_HINT: Phase.TOPIC,
    Kind.STUDY_HINT: Phase.SUBTOPIC,
    Kind.ASK_AGAIN: Phase.RESULT,
    Kind.CONCLUSION: Phase.CONCLUSION,
    Kind.END: Phase.END,
}


def phase_of(view: ObservationKey) -> Phase:
    """Return the phase that an inquiry is in when ``view`` is shown."""
    return Phase.CONCLUSION if view.limit else _PHASES[view.kind]


def _taken(view: ObservationKey) -> Iterator[Spot]:
    yield from (Spot(view, accepted=True), Spot(view, forced=True))


def _hints(kind: Kind, nodes: int) -> Iterator[Spot]:
    for node in range(nodes):
        yield from (Spot(ObservationKey(kind, node, level)) for level in range(1, HINT_LEVELS + 1))
